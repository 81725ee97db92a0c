//! Frames of a peer: whatever comes, a frame is read again as it was written, and takes no more than there
//! is.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proxima_wire::fleet::{self, Frame};

fuzz_target!(|bytes: &[u8]| {
    let mut at = 0;
    while let Ok(Some((frame, size))) = fleet::read(&bytes[at..]) {
        assert!(size > 4 && at + size <= bytes.len());
        let mut again = Vec::new();
        match frame {
            Frame::Change(frame) => frame.write(&mut again),
            Frame::Ack(frame) => frame.write(&mut again),
            Frame::Confirm(frame) => frame.write(&mut again),
            Frame::Ask(frame) => frame.write(&mut again),
            Frame::Answer(frame) => frame.write(&mut again),
        }
        assert_eq!(again, &bytes[at..at + size]);
        at += size;
    }
});
