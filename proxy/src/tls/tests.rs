//! Certificates are exchanged while handshakes go on.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
};

use rcgen::{CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::{ClientConfig, ClientConnection, Connection, RootCertStore};

use super::{Acceptor, Certificates, TlsError, provider};
use crate::config::schema::{Identity, ServerTls};

/// A certificate and its key as texts.
struct Pair {
    certificate: String,
    key: String,
    /// The certificate as it is shown.
    shown: Vec<u8>,
}

/// An authority, and two pairs that it has signed.
fn pairs() -> (RootCertStore, [Pair; 2]) {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(authority.der().clone()).unwrap();
    let pairs = [0, 1].map(|number| {
        let mut params = CertificateParams::new(vec!["a.test".to_owned()]).unwrap();
        params
            .distinguished_name
            .push(DnType::CommonName, format!("{number}"));
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &authority).unwrap();
        Pair {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
            shown: certificate.der().to_vec(),
        }
    });
    (roots, pairs)
}

/// The certificate that a client is shown who connects now, and that proves its name.
fn shown(acceptor: &Acceptor, config: &Arc<ClientConfig>) -> Vec<u8> {
    let mut server = acceptor.accept();
    let client = ClientConnection::new(Arc::clone(config), "a.test".try_into().unwrap());
    let mut client = Connection::from(client.unwrap());
    let (mut wire, mut plain) = (Vec::new(), Vec::new());
    while client.is_handshaking() {
        while client.wants_write() {
            client.write_tls(&mut wire).unwrap();
        }
        let mut answer = Vec::new();
        server.open(&wire, &mut plain, &mut answer).unwrap();
        wire.clear();
        let mut answer = &answer[..];
        while !answer.is_empty() {
            client.read_tls(&mut answer).unwrap();
            client.process_new_packets().unwrap();
        }
    }
    client.peer_certificates().unwrap()[0].to_vec()
}

struct Files {
    certificate: PathBuf,
    key: PathBuf,
}

impl Files {
    fn tls(&self) -> ServerTls {
        ServerTls {
            identity: Identity {
                certificate: self.certificate.clone(),
                key: self.key.clone(),
            },
            ca: None,
        }
    }

    fn put(&self, pair: &Pair) {
        fs::write(&self.certificate, &pair.certificate).unwrap();
        fs::write(&self.key, &pair.key).unwrap();
    }
}

/// Puts something in the place of a file that is no certificate and no key.
fn spoil(number: usize, file: &Path, text: &str) {
    let _ = fs::remove_file(file);
    match number % 5 {
        0 => fs::write(file, &text[..text.len() / 2]).unwrap(),
        1 => fs::File::create(file).unwrap().set_len(1 << 30).unwrap(),
        2 => assert!(Command::new("mkfifo").arg(file).status().unwrap().success()),
        3 => fs::write(file, "").unwrap(),
        _ => {}
    }
}

#[test]
fn a_hundred_exchanges_under_handshakes_never_show_a_mixed_pair() {
    let (roots, pairs) = pairs();
    let folder = tempfile::tempdir().unwrap();
    let files = Files {
        certificate: folder.path().join("tls.crt"),
        key: folder.path().join("tls.key"),
    };
    files.put(&pairs[0]);
    let certificates = Certificates::default();
    let acceptor = certificates.acceptor(&files.tls()).unwrap();
    let client = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let client = Arc::new(client);
    let ends = AtomicBool::new(false);
    thread::scope(|scope| {
        // Whatever is shown belongs to its key, or the handshake would fail.
        let connecting = scope.spawn(|| {
            let mut count = 0;
            while !ends.load(Relaxed) {
                let shown = shown(&acceptor, &client);
                assert!(pairs.iter().any(|pair| pair.shown == shown));
                count += 1;
            }
            count
        });
        let now = || shown(&acceptor, &client);
        for number in 0..100 {
            let (old, new) = (&pairs[number % 2], &pairs[(number + 1) % 2]);
            if number % 4 < 2 {
                // In the wrong order, with something else meanwhile: a look between any two steps.
                let (first, second) = match number % 4 {
                    0 => ((&files.certificate, &new.certificate), (&files.key, &new.key)),
                    _ => ((&files.key, &new.key), (&files.certificate, &new.certificate)),
                };
                spoil(number / 4, first.0, first.1);
                certificates.look();
                assert!(now() == old.shown, "{number}");
                let _ = fs::remove_file(first.0);
                fs::write(first.0, first.1).unwrap();
                certificates.look();
                assert!(now() == old.shown, "{number}");
                fs::write(second.0, second.1).unwrap();
            } else {
                files.put(new);
            }
            certificates.look();
            assert!(now() == new.shown, "{number}");
        }
        ends.store(true, Relaxed);
        assert!(connecting.join().unwrap() > 100);
    });
    let [renewed, refused] = certificates.looks();
    assert_eq!(renewed, 100);
    assert!(refused >= 50, "{refused}");
}

#[test]
fn files_that_have_changed_are_used_once() {
    let (_, pairs) = pairs();
    let folder = tempfile::tempdir().unwrap();
    let files = Files {
        certificate: folder.path().join("tls.crt"),
        key: folder.path().join("tls.key"),
    };
    files.put(&pairs[0]);
    let certificates = Certificates::default();
    let _acceptor = certificates.acceptor(&files.tls()).unwrap();
    files.put(&pairs[1]);
    let looks = |certificates: &Certificates| {
        (0..3).for_each(|_| certificates.look());
        certificates.looks()
    };
    assert_eq!(looks(&certificates), [1, 0]);
    assert_eq!(looks(&certificates), [1, 0]);
}

#[test]
fn files_that_do_not_fit_each_other_are_refused_by_name() {
    let (_, pairs) = pairs();
    let folder = tempfile::tempdir().unwrap();
    let files = Files {
        certificate: folder.path().join("tls.crt"),
        key: folder.path().join("tls.key"),
    };
    files.put(&pairs[0]);
    fs::write(&files.key, &pairs[1].key).unwrap();
    let refusal = || Certificates::default().acceptor(&files.tls()).unwrap_err();
    assert!(matches!(refusal(), TlsError::Mismatch { .. }));
    assert!(refusal().to_string().contains("tls.key: this is not the key of"));
    fs::write(&files.key, &pairs[0].certificate).unwrap();
    assert!(refusal().to_string().contains("tls.key"));
    fs::write(&files.certificate, "nothing").unwrap();
    assert!(
        refusal()
            .to_string()
            .contains("tls.crt: there is no certificate in it")
    );
}
