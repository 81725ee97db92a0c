//! The embedded server where it differs from memcached 1.6.18 on purpose, or where memcached cannot show the
//! same.

use crate::server::Embedded;

/// Sends each command and compares its reply. `|` stands for a line end in both.
fn expect(server: &Embedded, dialogue: &[(&str, &str)]) {
    for (command, reply) in dialogue {
        let said = server.send((command.replace('|', "\r\n") + "\r\n").as_bytes());
        assert_eq!(
            String::from_utf8_lossy(&said).replace("\r\n", "|"),
            *reply,
            "to {command:?}"
        );
    }
}

#[test]
fn a_counter_that_grows_longer_keeps_its_new_expiry() {
    let server = Embedded::start();
    expect(
        &server,
        &[
            ("ms a 1|9", "HD|"),
            ("ma a T100 v", "VA 2|10|"),
            ("mg a t", "HD t100|"),
        ],
    );
}

#[test]
fn an_opaque_that_is_too_long_changes_no_item() {
    let server = Embedded::start();
    let opaque = "O12345678901234567890123456789012";
    let error = "CLIENT_ERROR opaque token too long|";
    expect(
        &server,
        &[
            ("ms a 1|9", "HD|"),
            (&format!("ma a {opaque}"), error),
            (&format!("mg a T100 {opaque}"), error),
            (&format!("mg b N100 {opaque}"), error),
            (&format!("md a {opaque}"), error),
            ("mg a t v", "VA 1 t-1|9|"),
            ("mg b", "EN|"),
        ],
    );
}

#[test]
fn flushed_items_stay_flushed_after_a_delayed_flush() {
    let server = Embedded::start();
    expect(
        &server,
        &[
            ("set a 0 0 1|1", "STORED|"),
            ("flush_all", "OK|"),
            ("flush_all 100", "OK|"),
            ("get a", "END|"),
        ],
    );
}

/// A key in base64 may contain a line end, so it must never appear decoded in a reply.
#[test]
fn a_base64_key_is_returned_in_base64() {
    let server = Embedded::start();
    // "a\r\nEND"
    let key = "YQ0KRU5E";
    expect(
        &server,
        &[
            (&format!("mg {key} b N0 k"), "HD kYQ0KRU5E b W|"),
            (&format!("mg {key} b k"), "HD kYQ0KRU5E b Z|"),
            (&format!("ms {key} 1 b MA k|9"), "HD kYQ0KRU5E b|"),
            (&format!("ma {key} b v k"), "VA 2 kYQ0KRU5E b|10|"),
            (&format!("mg {key} b k v"), "VA 2 kYQ0KRU5E b|10|"),
            (&format!("md {key} b"), "HD|"),
            (&format!("ma {key} b N0 k"), "HD kYQ0KRU5E b|"),
            (&format!("mg {key} b k"), "HD kYQ0KRU5E b|"),
        ],
    );
}

#[test]
fn a_meta_set_with_e_chooses_the_cas_id() {
    let server = Embedded::start();
    expect(
        &server,
        &[
            ("ms a 1 E77|9", "HD|"),
            ("gets a", "VALUE a 0 1 77|9|END|"),
            ("ms a 1 C77 E80 c|8", "HD c80|"),
            ("ma a E81 c", "HD c81|"),
            ("ms a 1 MA E82 c|0", "HD c82|"),
            ("md a I E83", "HD|"),
            ("mg a c", "HD c83 X W|"),
            ("mg b N0 E5 c", "HD c5 W|"),
            ("ma c N0 E6 c", "HD c6|"),
            ("ms a 1 Ex|1", "CLIENT_ERROR bad token in command line format|"),
            ("md a Ex", "CLIENT_ERROR bad token in command line format|"),
        ],
    );
}

/// One short line cannot make the server hold a hundred times what it stores.
#[test]
fn an_embedded_reply_to_many_keys_is_bounded() {
    let server = Embedded::start();
    let value = "x".repeat(1_000_000);
    server.send(format!("set a 0 0 1000000\r\n{value}\r\n").as_bytes());
    let fits = server.send(format!("get{}\r\n", " a".repeat(60)).as_bytes());
    assert!(fits.ends_with(b"\r\nEND\r\n") && fits.len() > 60_000_000);
    for name in ["get", "gets", "gat 0", "gats 0"] {
        let refused = server.send(format!("{name}{}\r\n", " a".repeat(100)).as_bytes());
        assert_eq!(refused, b"SERVER_ERROR out of memory writing get response\r\n");
    }
}

#[test]
fn embedded_store_takes_its_time_from_the_caller() {
    let mut server = Embedded::start();
    expect(
        &server,
        &[
            ("set a 0 50 1|1", "STORED|"),
            ("set b 0 0 1|1", "STORED|"),
            ("mg b h l", "HD h0 l0|"),
        ],
    );
    server.ahead += 49_000;
    expect(
        &server,
        &[
            ("get a", "VALUE a 0 1|1|END|"),
            ("mg b h l u", "HD h1 l49|"),
            ("flush_all 1000", "OK|"),
        ],
    );
    server.ahead += 1_000;
    expect(
        &server,
        &[("get a", "END|"), ("mg b l", "HD l50|"), ("mg b l", "HD l0|")],
    );
    server.ahead += 998_000;
    expect(&server, &[("get b", "VALUE b 0 1|1|END|")]);
    server.ahead += 1_000;
    expect(&server, &[("get b", "END|")]);
}
