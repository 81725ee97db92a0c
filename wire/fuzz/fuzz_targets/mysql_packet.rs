//! Messages are the same however their bytes come, and all bytes belong to one.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proxima_wire::mysql::{Fault, Packets};

/// The payloads of whole messages, and the fault that ends them.
fn messages<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> (Vec<Vec<u8>>, Option<Fault>) {
    let mut packets = Packets::from(0);
    let (mut out, mut payload) = (Vec::new(), Vec::new());
    for mut piece in pieces {
        while !piece.is_empty() {
            let read = match packets.next(piece) {
                Ok(read) => read,
                Err(fault) => return (out, Some(fault)),
            };
            assert!(read.taken > 0 && read.payload.len() <= read.taken);
            assert!(!read.is_first || payload.is_empty());
            payload.extend_from_slice(read.payload);
            if read.is_last {
                assert!(packets.is_between());
                out.push(std::mem::take(&mut payload));
            }
            piece = &piece[read.taken..];
        }
    }
    (out, None)
}

fuzz_target!(|input: (u8, &[u8])| {
    let (size, bytes) = input;
    let once = messages(std::iter::once(bytes));
    assert_eq!(messages(bytes.chunks(usize::from(size).max(1))), once);
});
