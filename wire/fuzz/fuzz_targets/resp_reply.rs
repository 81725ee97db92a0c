//! The messages of a server are the same however their bytes come, and each takes at least one byte.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proxima_wire::{
    message::{Message, Parse, Parsed},
    resp::{Expect, reply, whole},
};

/// The bytes of each message with its kind, and of what breaks off. The parts of a reply are put together, as
/// they may be others in other pieces.
fn messages<'a>(expect: Expect, pieces: impl Iterator<Item = &'a [u8]>) -> Vec<(bool, Vec<u8>)> {
    let (mut buffer, mut parse, mut out) = (Vec::new(), Parse::default(), Vec::new());
    let (mut begun, mut pushed) = (Vec::new(), Vec::new());
    for piece in pieces {
        buffer.extend_from_slice(piece);
        while !buffer.is_empty() {
            let parsed = reply(&mut parse, expect, &buffer);
            let Parsed::Head(message) = parsed else {
                if matches!(parsed, Parsed::Bad(_)) {
                    return out;
                }
                break;
            };
            let head = message.head();
            assert!(head.head > 0 && head.head as usize <= buffer.len());
            if head.len() > buffer.len() as u64 {
                return out;
            }
            let bytes = buffer.drain(..head.len() as usize);
            match message {
                Message::Part(_) => begun.extend(bytes),
                Message::PushPart(_) => pushed.extend(bytes),
                Message::Push(_) => {
                    pushed.extend(bytes);
                    out.push((true, std::mem::take(&mut pushed)));
                }
                Message::Last(_) => {
                    begun.extend(bytes);
                    out.push((false, std::mem::take(&mut begun)));
                }
            }
        }
    }
    out
}

fuzz_target!(|input: (u8, u8, &[u8])| {
    let (expect, size, bytes) = input;
    let all = [
        Expect::Reply,
        Expect::Replies(3),
        Expect::Subscriber,
        Expect::Nothing,
    ];
    let expect = all[usize::from(expect) % all.len()];
    let once = messages(expect, std::iter::once(bytes));
    assert_eq!(messages(expect, bytes.chunks(usize::from(size).max(1))), once);
    if let (Expect::Reply, Some(short)) = (expect, whole(bytes)) {
        assert_eq!(once[0], (false, bytes[..short.len() as usize].to_vec()));
    }
});
