//! Ends of requests, and what is refused.

use proxima_wire::{
    message::{Parse, Parsed},
    resp::{Args, Kind, Limits, error, frame},
};

use crate::session::{LIMITS, streamed};

#[test]
fn requests_end_where_their_last_argument_ends() {
    for (text, kind, args, head) in [
        ("*2\r\n$3\r\nGET\r\n$1\r\nk\r\nmore", Kind::Array, 2, 20),
        ("*1\r\n$0\r\n\r\n", Kind::Array, 1, 10),
        ("*1\r\n$2\r\n\r\n\r\n", Kind::Array, 1, 12),
        ("get k\r\nmore", Kind::Inline, 0, 7),
        ("get k\nmore", Kind::Inline, 0, 6),
    ] {
        let parsed = frame(&mut Parse::default(), text.as_bytes(), &LIMITS);
        let Parsed::Head(frame) = parsed else {
            panic!("{text:?}: {parsed:?}")
        };
        assert_eq!(
            (frame.kind, frame.args, frame.head, frame.large),
            (kind, args, head, 0),
            "{text:?}"
        );
    }
}

#[test]
fn what_only_some_servers_take_is_refused() {
    for (text, reply) in [
        ("*1\r\n$4\r\nPINGxx", error::NO_CRLF),
        ("*1\r\n$4\r\nPING\rx", error::NO_CRLF),
        ("*1\rx", error::MULTIBULK_LENGTH),
        ("*1\n", error::MULTIBULK_LENGTH),
        ("*1\r\n$4\n", error::BULK_LENGTH),
        ("*1\r\n$1001\r\n", error::BULK_LENGTH),
        ("ping\0x\r\n", error::INLINE_SIZE),
    ] {
        let mut parse = Parse::default();
        match frame(&mut parse, text.as_bytes(), &Limits { value: 1000 }) {
            Parsed::Bad(bad) => assert_eq!((bad.reply, bad.close), (reply, true), "{text:?}"),
            other => panic!("{text:?}: {other:?}"),
        }
        assert!(parse.is_new(), "{text:?}");
    }
}

#[test]
fn an_incomplete_request_is_read_on_from_where_it_stopped() {
    let request = [b"*5001\r\n$4\r\nMGET\r\n".to_vec(), b"$2\r\nkk\r\n".repeat(5000)].concat();
    let mut parse = Parse::default();
    let mut last = 0;
    for end in (1..request.len()).step_by(97) {
        assert_eq!(frame(&mut parse, &request[..end], &LIMITS), Parsed::More);
        // What is read again is at most one argument.
        assert!(
            parse.seen >= last && end - (parse.seen as usize) < 18,
            "{end}: {parse:?}"
        );
        last = parse.seen;
    }
    assert!(matches!(frame(&mut parse, &request, &LIMITS), Parsed::Head(frame) if frame.args == 5001));
}

#[test]
fn a_large_argument_passes_before_it_has_come() {
    let value = "v".repeat(100_000);
    let request = format!(
        "*6\r\n$3\r\nSET\r\n$1\r\nk\r\n$100000\r\n{value}\r\n$2\r\nEX\r\n$20000\r\n{}\r\n$2\r\nNX\r\n",
        &value[..20_000]
    );
    for size in [1, 7, 1000, 16 * 1024, 99_999, 200_000] {
        let (passed, pieces) = streamed(request.as_bytes().chunks(size));
        assert!(passed == request.as_bytes(), "in pieces of {size}");
        assert!(size > 50_000 || pieces > 2, "in pieces of {size}: {pieces}");
    }
    let mut parse = Parse::default();
    let Parsed::Head(begun) = frame(&mut parse, &request.as_bytes()[..50], &LIMITS) else {
        panic!("{parse:?}")
    };
    assert_eq!((begun.large, begun.head), (100_000, 29));
}

#[test]
fn arguments_are_those_that_have_come() {
    let message = b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$5\r\nval";
    let words: Vec<_> = Args::of(message).map(|span| span.of(message)).collect();
    assert_eq!(words, [&b"SET"[..], b"k"]);
    assert_eq!(Args::of(b"get k\r\n").count(), 0);
}
