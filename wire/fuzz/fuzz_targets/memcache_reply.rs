//! A reply's head lies within the bytes and does not depend on the bytes behind it. Another key or version in
//! it leaves the rest unchanged.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proxima_wire::memcache::{
    Command, LINE, is_reply_whole, mark_reply, reply, reply_key, rewrite_reply_key,
};
use proxima_wire::message::{Parsed, Reply};

/// Checks that `out`, the reply with another key or version in its first line, is read as the same reply. A
/// line that has become longer than a line may be is read as none. What a server writes (a key, an opaque of
/// 32 bytes, numbers) stays far below that length, and who changes a reply knows its new length without
/// reading it again.
fn check_changed(command: Command, (head, bytes): (Reply, &[u8]), out: &[u8]) {
    let line = head.head as usize + out.len() - bytes.len();
    match reply(command, out) {
        Parsed::Head(other) => {
            assert_eq!(other.head as usize, line);
            assert_eq!(
                (other.outcome, other.body, other.trailer),
                (head.outcome, head.body, head.trailer)
            );
            assert!(line <= LINE + 1);
        }
        Parsed::Bad(_) => assert!(line > LINE + 1, "{}", out.escape_ascii()),
        Parsed::More => panic!("{}", out.escape_ascii()),
    }
}

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
            check_changed(command, (head, bytes), &out);
        }
    }
    let mut marked = Vec::new();
    if mark_reply(command, bytes, 7, &mut marked) {
        check_changed(command, (head, bytes), &marked);
    }
});
