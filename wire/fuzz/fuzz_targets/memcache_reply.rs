//! A reply's head lies within the bytes and does not depend on the bytes behind it. Another key or version in
//! it leaves the rest unchanged.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proxima_wire::memcache::{Command, is_reply_whole, mark_reply, reply, reply_key, rewrite_reply_key};
use proxima_wire::message::Parsed;

fuzz_target!(|input: (u16, &[u8])| {
    let (number, bytes) = input;
    let Some(command) = Command::from_number(number % Command::ALL.len() as u16) else {
        return;
    };
    let Parsed::Head(head) = reply(command, bytes) else {
        return;
    };
    assert!(head.head as usize <= bytes.len() && u64::from(head.trailer) <= head.len());
    assert_eq!(reply(command, &bytes[..head.head as usize]), Parsed::Head(head));
    assert_eq!(reply(command, &bytes[..head.head as usize - 1]), Parsed::More);
    is_reply_whole(&head, bytes);
    let mut out = Vec::new();
    rewrite_reply_key(command, b"own", bytes, &mut out);
    match reply_key(command, bytes) {
        None => assert_eq!(out, bytes),
        Some(key) => {
            assert!(key.end() < head.head as usize);
            assert_eq!(
                reply_key(command, &out).map(|key| key.of(&out)),
                Some(&b"own"[..])
            );
            let Parsed::Head(other) = reply(command, &out) else {
                panic!("{}", out.escape_ascii())
            };
            assert_eq!(
                (other.outcome, other.body, other.trailer),
                (head.outcome, head.body, head.trailer)
            );
        }
    }
    let mut marked = Vec::new();
    if mark_reply(command, bytes, 7, &mut marked) {
        let Parsed::Head(other) = reply(command, &marked) else {
            panic!("{}", marked.escape_ascii())
        };
        assert_eq!(
            (other.outcome, other.body, other.trailer),
            (head.outcome, head.body, head.trailer)
        );
    }
});
