//! Replies: their outcome and length, whether they are silenced, and the key that they name.

use crate::rows::each_row;
use proxima_wire::memcache::{Command, LINE, is_reply_whole, reply, reply_key, rewrite_reply_key, silenced};
use proxima_wire::message::{Outcome, Parsed, Reply};

fn read(name: &str, bytes: &[u8]) -> Parsed<Reply> {
    reply(Command::by_name(name).unwrap(), bytes)
}

#[test]
fn reply_heads_are_read_with_outcome_and_length() {
    use Outcome::*;
    let end = |outcome, body, trailer| Some((outcome, body, trailer));
    let rows = [
        ("get", "VALUE a 0 3\r\n", end(Found, 10, 5)),
        (
            "gets",
            "VALUE a 4294967295 0 18446744073709551615\r\n",
            end(Found, 7, 5),
        ),
        ("gat", "VALUE a\rb 1 67108864\r\n", end(Found, 67_108_871, 5)),
        ("gats", "END\r\n", end(NotFound, 0, 5)),
        ("config", "CONFIG cluster 0 147\r\n", end(Found, 154, 5)),
        ("config", "END\r\n", end(NotFound, 0, 5)),
        ("set", "STORED\r\n", end(Stored, 0, 0)),
        ("add", "NOT_STORED\r\n", end(NotStored, 0, 0)),
        ("cas", "EXISTS\r\n", end(Exists, 0, 0)),
        ("cas", "NOT_FOUND\r\n", end(NotFound, 0, 0)),
        ("delete", "DELETED\r\n", end(Deleted, 0, 0)),
        ("delete", "NOT_FOUND\r\n", end(NotFound, 0, 0)),
        ("touch", "TOUCHED\r\n", end(Touched, 0, 0)),
        ("incr", "18446744073709551615\r\n", end(Found, 0, 0)),
        ("decr", "NOT_FOUND\r\n", end(NotFound, 0, 0)),
        ("flush_all", "OK\r\n", end(Ok, 0, 0)),
        ("verbosity", "OK\r\n", end(Ok, 0, 0)),
        ("version", "VERSION 1.6.18\r\n", end(Ok, 0, 0)),
        ("mg", "VA 3 kfoo O1\r\n", end(Found, 5, 0)),
        ("mg", "VA 0\r\n", end(Found, 2, 0)),
        ("mg", "HD\r\n", end(Found, 0, 0)),
        ("mg", "HD t-1 W\r\n", end(Found, 0, 0)),
        ("mg", "EN\r\n", end(NotFound, 0, 0)),
        ("mg", "EN kfoo O1\r\n", end(NotFound, 0, 0)),
        ("ms", "HD\r\n", end(Stored, 0, 0)),
        ("ms", "NS O1\r\n", end(NotStored, 0, 0)),
        ("ms", "EX\r\n", end(Exists, 0, 0)),
        ("ms", "NF\r\n", end(NotFound, 0, 0)),
        ("md", "HD\r\n", end(Deleted, 0, 0)),
        ("md", "NF kfoo\r\n", end(NotFound, 0, 0)),
        ("ma", "VA 2 t-1\r\n", end(Found, 4, 0)),
        ("ma", "HD\r\n", end(Found, 0, 0)),
        ("ma", "NF\r\n", end(NotFound, 0, 0)),
        ("me", "ME foo exp=-1 la=0\r\n", end(Found, 0, 0)),
        ("me", "EN\r\n", end(NotFound, 0, 0)),
        ("mn", "MN\r\n", end(Ok, 0, 0)),
        ("stats", "STAT pid 1\r\n", end(Found, 0, 0)),
        ("stats", "END\r\n", end(Ok, 0, 0)),
        ("stats", "RESET\r\n", end(Ok, 0, 0)),
        ("lease-get", "VALUE a 0 3\r\n", end(Found, 10, 5)),
        ("lease-get", "LVALUE a 8 0 0\r\n", end(NotFound, 7, 5)),
        (
            "lease-get",
            "LVALUE a 18446744073709551615 4294967295 3\r\n",
            end(NotFound, 10, 5),
        ),
        ("lease-get", "NOT_FOUND_HOT\r\n", end(NotFound, 5, 5)),
        ("lease-get", "NOT_FOUND_HOT a\r\n", end(NotFound, 5, 5)),
        ("lease-get", "END\r\n", end(NotFound, 0, 5)),
        ("lease-get", "ERROR\r\n", end(ClientError, 0, 0)),
        ("lease-set", "STORED\r\n", end(Stored, 0, 0)),
        ("lease-set", "STALE_STORED\r\n", end(Stored, 0, 0)),
        ("lease-set", "NOT_STORED\r\n", end(NotStored, 0, 0)),
        ("lease-set", "NOT_FOUND\r\n", end(NotFound, 0, 0)),
        (
            "metaget",
            "META a age: unknown; exptime: 0; from: 127.0.0.1; is_transient: 0\r\n",
            end(Found, 5, 5),
        ),
        ("metaget", "END\r\n", end(NotFound, 0, 5)),
        ("get", "ERROR\r\n", end(ClientError, 0, 0)),
        (
            "shutdown",
            "ERROR: shutdown not enabled\r\n",
            end(ClientError, 0, 0),
        ),
        ("set", "ERROR Too many open connections\r\n", end(Busy, 0, 0)),
        ("set", "CLIENT_ERROR bad data chunk\r\n", end(ClientError, 0, 0)),
        ("mg", "CLIENT_ERROR invalid flag\r\n", end(ClientError, 0, 0)),
        ("get", "SERVER_ERROR out of memory\r\n", end(RemoteError, 0, 0)),
        ("get", "SERVER_ERROR\r\n", end(RemoteError, 0, 0)),
        ("get", "SERVER_ERROR 301 shutdown\r\n", end(Shutdown, 0, 0)),
        ("get", "SERVER_ERROR 302 try again\r\n", end(TryAgain, 0, 0)),
        ("set", "SERVER_ERROR 307 busy\r\n", end(Busy, 0, 0)),
        ("set", "SERVER_ERROR 308\r\n", end(RemoteError, 0, 0)),
        // These are replies, but not to this command.
        ("get", "STORED\r\n", None),
        ("set", "END\r\n", None),
        ("set", "EXISTS\r\n", None),
        ("delete", "5\r\n", None),
        ("mg", "NF\r\n", None),
        ("ms", "VA 1\r\n", None),
        ("mn", "OK\r\n", None),
        ("get", "LVALUE a 8 0 0\r\n", None),
        ("get", "NOT_FOUND_HOT\r\n", None),
        ("set", "STALE_STORED\r\n", None),
        ("lease-get", "LVALUE a 0 0\r\n", None),
        ("lease-get", "LVALUE a 8 0 0 1\r\n", None),
        ("lease-get", "LVALUE a -1 0 0\r\n", None),
        ("lease-get", "NOT_FOUND_HOTa\r\n", None),
        ("metaget", "VALUE a 0 1\r\n", None),
        ("metaget", "META a\r\n", None),
        ("get", "STAT pid 1\r\n", None),
        ("stats", "VALUE k 0 1\r\n", None),
        // These are no replies at all.
        ("get", "END\n", None),
        ("get", "\r\n", None),
        ("get", "VALUE a 0\r\n", None),
        ("get", "VALUE  0 1\r\n", None),
        ("get", "VALUE a 0 -1\r\n", None),
        ("get", "VALUE a 0 1 2 3\r\n", None),
        ("get", "VALUE a 0  1\r\n", None),
        ("get", "VALUE a 0 2147483646\r\n", None),
        ("get", "VALUE a 0 18446744073709551615\r\n", None),
        ("get", "VALUE a 0 18446744073709551616\r\n", None),
        ("mg", "VA\r\n", None),
        ("mg", "VA x\r\n", None),
        ("mg", "VA 2147483646\r\n", None),
        ("mg", "VA 18446744073709551615\r\n", None),
        ("mg", "HDx\r\n", None),
        ("incr", "5x\r\n", None),
        ("incr", "-5\r\n", None),
        ("get", "ERRORS\r\n", None),
        ("get", "SERVER_ERRORS x\r\n", None),
    ];
    each_row(rows, |&(name, line, expected)| {
        let read = read(name, line.as_bytes());
        let expected = expected.map(|(outcome, body, trailer)| {
            Parsed::Head(Reply {
                body,
                trailer,
                ..Reply::new(outcome, line.len())
            })
        });
        match expected {
            Some(expected) => assert_eq!(read, expected, "{name} {line}"),
            None => assert!(
                matches!(read, Parsed::Bad(bad) if bad.close),
                "{name} {line}: {read:?}"
            ),
        }
        for len in 0..line.len() {
            assert_eq!(
                reply(Command::by_name(name).unwrap(), &line.as_bytes()[..len]),
                Parsed::More,
                "{name} {line}"
            );
        }
    });
}

#[test]
fn an_endless_reply_line_closes_the_connection() {
    assert_eq!(read("get", &[b'x'; LINE]), Parsed::More);
    assert!(matches!(read("get", &[b'x'; LINE + 1]), Parsed::Bad(bad) if bad.close));
}

#[test]
fn a_reply_must_end_as_its_head_says() {
    let whole = |name, bytes: &[u8]| match read(name, bytes) {
        Parsed::Head(reply) => is_reply_whole(&reply, bytes),
        other => panic!("{other:?}"),
    };
    assert!(whole("get", b"VALUE a 0 1\r\nx\r\nEND\r\n") && whole("get", b"END\r\n"));
    assert!(whole("mg", b"VA 1\r\nx\r\n") && whole("mg", b"HD\r\n"));
    assert!(!whole("get", b"VALUE a 0 1\r\nxy\r\nEND\r"));
    assert!(!whole("get", b"VALUE a 0 1\r\nx\r\nVALUE"));
    assert!(!whole("mg", b"VA 1\r\nxy\r"));
}

#[test]
fn quiet_commands_silence_only_their_expected_outcomes() {
    let rows = [
        (
            "mg",
            vec![Outcome::NotFound],
            vec![Outcome::Found, Outcome::ClientError, Outcome::RemoteError],
        ),
        (
            "ms",
            vec![Outcome::Stored],
            vec![Outcome::NotStored, Outcome::Exists, Outcome::NotFound],
        ),
        (
            "md",
            vec![Outcome::Deleted],
            vec![Outcome::NotFound, Outcome::Exists, Outcome::Timeout],
        ),
        (
            "ma",
            vec![Outcome::Found],
            vec![Outcome::NotFound, Outcome::NotStored, Outcome::ClientError],
        ),
        ("mn", vec![], vec![Outcome::Ok]),
        (
            "set",
            vec![
                Outcome::Stored,
                Outcome::NotStored,
                Outcome::ClientError,
                Outcome::RemoteError,
            ],
            vec![],
        ),
        ("delete", vec![Outcome::NotFound, Outcome::Timeout], vec![]),
    ];
    each_row(rows, |(name, silent, told)| {
        let command = Command::by_name(name).unwrap();
        assert!(silent.iter().all(|&outcome| silenced(command, outcome)), "{name}");
        assert!(!told.iter().any(|&outcome| silenced(command, outcome)), "{name}");
    });
}

#[test]
fn the_key_in_a_reply_is_replaced_by_the_clients() {
    let rows = [
        (
            "get",
            "VALUE p:a 0 1\r\nk\r\nEND\r\n",
            "VALUE own 0 1\r\nk\r\nEND\r\n",
        ),
        ("gats", "VALUE p:a 0 1 7\r\n", "VALUE own 0 1 7\r\n"),
        ("get", "END\r\n", "END\r\n"),
        ("get", "SERVER_ERROR k x\r\n", "SERVER_ERROR k x\r\n"),
        ("mg", "VA 3 Okkk kp:a W\r\n kb\r\n", "VA 3 Okkk kown W\r\n kb\r\n"),
        ("mg", "EN kp:a\r\n", "EN kown\r\n"),
        ("mg", "HD t-1\r\n", "HD t-1\r\n"),
        ("ms", "HD kp:a b\r\n", "HD kown b\r\n"),
        ("md", "CLIENT_ERROR k k\r\n", "CLIENT_ERROR k k\r\n"),
        ("me", "ME p:a exp=-1\r\n", "ME own exp=-1\r\n"),
        ("me", "EN\r\n", "EN\r\n"),
        ("me", "ME x\r\n y", "ME x\r\n y"),
        ("set", "STORED\r\n", "STORED\r\n"),
        ("lease-get", "VALUE p:a 0 1\r\n", "VALUE own 0 1\r\n"),
        ("lease-get", "LVALUE p:a 7 0 1\r\n", "LVALUE own 7 0 1\r\n"),
        (
            "lease-get",
            "NOT_FOUND_HOT p:a\r\nEND\r\n",
            "NOT_FOUND_HOT own\r\nEND\r\n",
        ),
        (
            "lease-get",
            "NOT_FOUND_HOT\r\nEND\r\n",
            "NOT_FOUND_HOT\r\nEND\r\n",
        ),
        ("metaget", "META p:a age: 1\r\n", "META own age: 1\r\n"),
    ];
    each_row(rows, |&(name, reply, expected)| {
        let command = Command::by_name(name).unwrap();
        let mut out = b">".to_vec();
        rewrite_reply_key(command, b"own", reply.as_bytes(), &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), format!(">{expected}"));
        let key = reply_key(command, reply.as_bytes()).map(|key| key.of(reply.as_bytes()));
        assert_eq!(key, (reply != expected).then_some(&b"p:a"[..]), "{name} {reply}");
    });
}
