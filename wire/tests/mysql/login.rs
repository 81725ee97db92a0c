//! What both ends say at a login, read as it was written, and what is a fault.

use proxima_wire::mysql::{
    Attributes, AuthMore, AuthSwitch, Capabilities, ChangeUser, Fault, Greeting, Hello, LONGEST_HELLO, Login,
    SPOKEN, Status, TlsRequest,
};

use crate::rows::each_row;

const MARIADB: Capabilities = Capabilities(SPOKEN.without(Capabilities::MYSQL).0 | 0x1d << 32);

fn greeting() -> Greeting<'static> {
    Greeting {
        version: b"5.5.5-10.11.19-MariaDB",
        connection: 0x1234_5678,
        salt: *b"abcdefghijklmnopqrst",
        capabilities: MARIADB,
        collation: 45,
        status: Status::AUTOCOMMIT,
        method: b"mysql_native_password",
    }
}

fn login() -> Login<'static> {
    Login {
        capabilities: SPOKEN.without(Capabilities::TLS),
        largest_packet: 1 << 24,
        collation: 45,
        user: b"user",
        answer: b"\0\x01answer",
        database: b"db",
        method: b"caching_sha2_password",
        attributes: Attributes::of(b"\x04_pid\x0242\x03_os\x05Linux").unwrap(),
    }
}

#[test]
fn a_greeting_is_read_as_it_was_written() {
    let mysql = Greeting {
        capabilities: SPOKEN,
        ..greeting()
    };
    let old = Greeting {
        capabilities: SPOKEN.without(Capabilities::PLUGIN_AUTH),
        method: b"",
        ..greeting()
    };
    for greeting in [greeting(), mysql, old] {
        let mut out = Vec::new();
        greeting.append(&mut out);
        assert_eq!(Greeting::read(&out[4..]), Ok(greeting));
        for end in 4..out.len() - 25 {
            assert!(Greeting::read(&out[4..end]).is_err(), "{end}");
        }
    }
}

#[test]
fn a_login_is_read_as_it_was_written_in_each_of_its_forms() {
    let without = |what: Capabilities| login().capabilities.without(what);
    each_row(
        [
            login(),
            Login {
                database: b"",
                ..login()
            },
            Login {
                capabilities: without(Capabilities::CONNECT_WITH_DB),
                database: b"",
                ..login()
            },
            Login {
                capabilities: without(Capabilities::PLUGIN_AUTH),
                method: b"",
                ..login()
            },
            Login {
                capabilities: without(Capabilities::LONG_AUTH),
                ..login()
            },
            Login {
                capabilities: without(Capabilities::LONG_AUTH.with(Capabilities::SECURE_CONNECTION)),
                answer: b"answer",
                ..login()
            },
            Login {
                capabilities: without(Capabilities::CONNECT_ATTRIBUTES),
                attributes: Attributes::default(),
                ..login()
            },
            Login {
                capabilities: MARIADB.without(Capabilities::TLS),
                ..login()
            },
            // TLS is going on already.
            Login {
                capabilities: SPOKEN,
                ..login()
            },
        ],
        |login| {
            let mut out = Vec::new();
            assert_eq!(out.len(), 0);
            login.append(1, &mut out);
            assert_eq!(Hello::read(&out[4..]), Ok(Hello::Login(*login)));
        },
    );
    let attributes: Vec<_> = login().attributes.collect();
    assert_eq!(attributes, [(&b"_pid"[..], &b"42"[..]), (b"_os", b"Linux")]);
}

#[test]
fn the_wish_for_tls_is_told_from_a_login() {
    let tls = TlsRequest {
        capabilities: SPOKEN,
        largest_packet: 1 << 24,
        collation: 8,
    };
    let mut out = Vec::new();
    tls.append(&mut out);
    assert_eq!(out.len(), 36);
    assert_eq!(Hello::read(&out[4..]), Ok(Hello::Tls(tls)));
}

#[test]
fn a_login_of_another_protocol_or_without_end_is_a_fault() {
    let mut out = Vec::new();
    login().append(1, &mut out);
    let good = &out[4..];
    let old = [&[0x85, 0xa4][..], &good[2..]].concat();
    let long_name = [&good[..32], &[b'u'; 2000], &good[36..]].concat();
    let no_end = [&good[..32], &[b'u'; 20]].concat();
    let lying = [&good[..32], b"user\0\xfe\xff\xff\xff\xff\xff\xff\xff\xff"].concat();
    let long = [good, &vec![0; LONGEST_HELLO]].concat();
    for (bytes, fault) in [
        (old, Fault::Version("login")),
        (long_name, Fault::TooLong("name in a login")),
        (no_end, Fault::Truncated("login")),
        (lying, Fault::Truncated("login")),
        (long, Fault::TooLong("login")),
        (b"GET / HTTP/1.1\r\n\r\n".to_vec(), Fault::Version("login")),
        (b"".to_vec(), Fault::Truncated("login")),
    ] {
        assert_eq!(
            Hello::read(&bytes),
            Err(fault),
            "{}",
            bytes[..bytes.len().min(60)].escape_ascii()
        );
    }
}

#[test]
fn a_greeting_of_another_protocol_is_a_fault() {
    for (bytes, fault) in [
        (&b"\x0910.0\0"[..], Fault::Version("greeting")),
        (b"\x0a5.0\0\x01\0\0\0saltsalt\0\0\0", Fault::Version("greeting")),
        (b"\x0a5.0", Fault::Truncated("greeting")),
        (b"HTTP/1.1 400 Bad Request", Fault::FirstByte(b'H')),
        (b"", Fault::Truncated("greeting")),
    ] {
        assert_eq!(Greeting::read(bytes), Err(fault), "{}", bytes.escape_ascii());
    }
}

#[test]
fn a_change_of_the_user_is_read_as_it_was_written() {
    let change = ChangeUser {
        user: b"user",
        answer: b"answer",
        database: b"db",
        collation: Some(255),
        method: b"mysql_native_password",
        attributes: login().attributes,
    };
    let short = ChangeUser {
        collation: None,
        method: b"",
        attributes: Attributes::default(),
        ..change
    };
    for change in [change, short] {
        let mut out = Vec::new();
        change.append(SPOKEN, &mut out);
        assert_eq!(ChangeUser::read(&out[4..], SPOKEN), Ok(change));
    }
    assert!(ChangeUser::read(b"\x11user\0\x05ab", SPOKEN).is_err());
}

#[test]
fn questions_of_a_login_are_read_as_they_were_written() {
    let (mut out, switch) = (
        Vec::new(),
        AuthSwitch {
            method: b"client_ed25519",
            data: b"salt",
        },
    );
    switch.append(2, &mut out);
    assert_eq!(AuthSwitch::read(&out[4..]), Ok(switch));
    let (mut out, more) = (Vec::new(), AuthMore { data: b"\x04" });
    more.append(2, &mut out);
    assert_eq!(AuthMore::read(&out[4..]), Ok(more));
}
