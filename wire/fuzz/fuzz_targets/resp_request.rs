//! A request ends at the same place however its bytes come, its arguments fill it, and a large one that is
//! passed on as it comes loses no byte.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proxima_wire::{
    message::{Parse, Parsed},
    resp::{Args, Command, Kind, Limits, TRANSACTION, each_key, frame, inline, request, rest},
};

fuzz_target!(|input: (u16, &[u8])| {
    let (split, bytes) = input;
    let limits = Limits { value: 100_000 };
    let mut parse = Parse::default();
    let whole = frame(&mut parse, bytes, &limits);
    let mut again = Parse::default();
    let first = frame(&mut again, &bytes[..bytes.len().min(usize::from(split))], &limits);
    let is_open = matches!(first, Parsed::More) || matches!(first, Parsed::Head(frame) if frame.large > 0);
    if is_open {
        assert_eq!(frame(&mut again, bytes, &limits), whole);
    } else {
        assert_eq!(first, whole);
    }
    let Parsed::Head(begun) = whole else { return };
    if let Parsed::Head(head) = request(&mut Parse::default(), bytes, &limits) {
        assert!(head.head as usize <= bytes.len());
        assert!(head.key.end() <= head.head as usize || head.key.end() as u64 <= head.len());
        if head.command < TRANSACTION {
            assert_eq!(head.is_open, begun.large > 0);
            assert_eq!(head.len(), u64::from(begun.head) + begun.large);
        }
        if let (Some(command), false) = (Command::of(head.command), head.is_open) {
            let message = &bytes[..begun.head as usize];
            each_key(command, message, false, &mut |key| {
                assert!(key.end() <= message.len())
            });
        }
    }
    assert!(begun.head as usize <= bytes.len());
    if begun.large > 0 {
        let mut at = begun.head as usize + begun.large as usize;
        while let Some(left) = bytes.get(at..) {
            match rest(&mut parse, left, &limits) {
                Parsed::Head(piece) if piece.is_last => return assert!(parse.is_new()),
                Parsed::Head(piece) => {
                    assert!(piece.len > 0);
                    at += piece.len as usize;
                }
                Parsed::More => return,
                Parsed::Bad(bad) => return assert!(bad.close && parse.is_new()),
            }
        }
        return;
    }
    assert!(parse.is_new());
    let message = &bytes[..begun.head as usize];
    let mut array = Vec::new();
    let message = match begun.kind {
        Kind::Array => message,
        Kind::Inline => {
            assert!(inline::append_array(&message[..message.len() - 1], &mut array));
            &array
        }
    };
    let mut args = Args::of(message);
    while args.next().is_some() {}
    assert_eq!(args.position(), message.len());
});
