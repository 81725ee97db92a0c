//! How passwords are proved: by themselves, by what another implementation says, and at the installed server.

use proptest::prelude::*;
use proxima_wire::mysql::{
    SALT,
    password::{NativeHash, NativeKey, Sha2Key, hide, reveal, salt},
};

use crate::server::Server;

const ABC: &[u8; SALT] = b"abcdefghijklmnopqrst";

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// PyMySQL 1.2 answers this.
#[test]
fn answers_are_those_of_another_implementation() {
    let native = NativeKey::of(b"s3cret");
    assert_eq!(
        hex(&native.answer(ABC)),
        "8510605a5ec0d3d958058636e0a2ebdfcf34be4c"
    );
    assert_eq!(
        hex(&Sha2Key::of(b"s3cret").answer(ABC)),
        "5661ac17cec0e6001d3747b3aaa0d0c1927fdc43c56deeab05d4c42d73b2b642"
    );
}

#[test]
fn a_hash_is_read_as_servers_show_it_and_nothing_else_is() {
    let shown = b"*B865CAE8F340F6CE1485A06F4492BB49718DF1EC";
    let read = NativeHash::read(shown);
    assert_eq!(read, Some(NativeKey::of(b"s3cret").hash()));
    assert_eq!(read, NativeHash::read(&shown.to_ascii_lowercase()));
    for wrong in [
        &shown[1..],
        &shown[..40],
        b"*",
        b"",
        b"invalid",
        &[shown, &b"0"[..]].concat(),
    ] {
        assert_eq!(NativeHash::read(wrong), None, "{}", wrong.escape_ascii());
    }
    assert_eq!(
        NativeHash::read(&shown.map(|byte| if byte == b'F' { b'G' } else { byte })),
        None
    );
}

#[test]
fn no_secret_is_shown() {
    let (native, sha2) = (NativeKey::of(b"s3cret"), Sha2Key::of(b"s3cret"));
    let shown = format!("{native:?} {:?} {sha2:?} {:?}", native.hash(), sha2.hash());
    assert_eq!(
        shown,
        "NativeKey { .. } NativeHash { .. } Sha2Key { .. } Sha2Hash { .. }"
    );
}

proptest! {
    #[test]
    fn who_knows_the_password_is_verified_and_gives_the_key(
        password in "[^\\x00]{1,40}", other in "[^\\x00]{1,40}", random in any::<[u64; 3]>()
    ) {
        let (password, other, salt) = (password.as_bytes(), other.as_bytes(), salt(random));
        prop_assert!(salt.iter().all(|&byte| byte != 0 && byte != b'$' && byte < 0x80));
        let native = NativeKey::of(password);
        prop_assert_eq!(native.hash().verify(&salt, &native.answer(&salt)), Some(native.clone()));
        let sha2 = Sha2Key::of(password);
        prop_assert_eq!(sha2.hash().verify(&salt, &sha2.answer(&salt)), Some(sha2.clone()));
        prop_assert_eq!(reveal(&hide(password, &salt), &salt), Some(password.to_vec()));
        if password != other {
            let (wrong, wrong2) = (NativeKey::of(other), Sha2Key::of(other));
            prop_assert_eq!(native.hash().verify(&salt, &wrong.answer(&salt)), None);
            prop_assert_eq!(sha2.hash().verify(&salt, &wrong2.answer(&salt)), None);
        }
        // Neither is an answer to another salt, or a part of one.
        let mut late = salt;
        late[0] ^= 1;
        prop_assert_eq!(native.hash().verify(&late, &native.answer(&salt)), None);
        prop_assert_eq!(sha2.hash().verify(&salt, &sha2.answer(&salt)[1..]), None);
        prop_assert_eq!(native.hash().verify(&salt, b""), None);
    }

    #[test]
    fn what_is_not_hidden_well_is_refused(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
        if let Some(password) = reveal(&bytes, ABC) {
            prop_assert_eq!(hide(&password, ABC), bytes);
        }
    }
}

/// The key that the proxy gets from a client's answer logs in at the server, and another one does not.
#[test]
fn keys_log_in_at_the_installed_server() {
    const DENIED: Option<u16> = Some(1045);
    let Some(server) = Server::start() else {
        return;
    };
    let mut root = server.connect();
    assert_eq!(root.ask(b"CREATE USER ann IDENTIFIED BY 's3cret'").error, None);
    assert_eq!(root.ask(b"GRANT ALL ON test.* TO ann").error, None);
    let key = NativeKey::of(b"s3cret");
    assert_eq!(
        server.log_in(b"ann", |salt| key.answer(salt).to_vec()).error,
        None
    );
    // As a proxy does it, which has the hash alone.
    let known = key.hash().verify(ABC, &key.answer(ABC)).unwrap();
    assert_eq!(
        server.log_in(b"ann", |salt| known.answer(salt).to_vec()).error,
        None
    );
    let wrong = NativeKey::of(b"secret");
    assert_eq!(
        server.log_in(b"ann", |salt| wrong.answer(salt).to_vec()).error,
        DENIED
    );
    assert_eq!(server.log_in(b"ann", |_| Vec::new()).error, DENIED);
    // The server keeps what is the hash here.
    assert_eq!(
        root.ask(b"CREATE USER bob IDENTIFIED BY PASSWORD '*14E65567ABDB5135D0CFD9A70B3032C179A49EE7'")
            .error,
        None
    );
    assert_eq!(root.ask(b"GRANT ALL ON test.* TO bob").error, None);
    let bobs = NativeKey::of(b"secret");
    assert_eq!(
        Some(bobs.hash()),
        NativeHash::read(b"*14E65567ABDB5135D0CFD9A70B3032C179A49EE7")
    );
    assert_eq!(
        server.log_in(b"bob", |salt| bobs.answer(salt).to_vec()).error,
        None
    );
}
