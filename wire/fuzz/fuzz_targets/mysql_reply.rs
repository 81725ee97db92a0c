//! A reply says the same and ends at the same place however its bytes come.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proxima_wire::mysql::{Capabilities, Event, Fault, OkPacket, ReplyReader, Shape};

const SHAPES: [Shape; 8] = [
    Shape::Nothing,
    Shape::Done,
    Shape::Text,
    Shape::Results,
    Shape::Prepared,
    Shape::Rows,
    Shape::Columns,
    Shape::Login,
];

/// What is read: events with the bytes up to each, the end of the reply, and the fault.
type Read = (Vec<(usize, String)>, Option<usize>, Option<Fault>);

fn read<'a>(shape: Shape, capabilities: Capabilities, pieces: impl Iterator<Item = &'a [u8]>) -> Read {
    let mut reader = ReplyReader::new(shape, capabilities, 1);
    let (mut events, mut seen) = (Vec::new(), 0);
    for mut piece in pieces {
        while !piece.is_empty() {
            let step = match reader.read(piece) {
                Ok(step) => step,
                Err(fault) => return (events, None, Some(fault)),
            };
            assert!(step.taken > 0 || step.is_last);
            seen += step.taken;
            piece = &piece[step.taken..];
            if let Event::Ok(ok) = step.event {
                is_written_as_it_was_read(ok, capabilities);
            }
            if step.event != Event::Bytes {
                events.push((seen, format!("{:?}", step.event)));
            }
            if step.is_last {
                return (events, Some(seen), None);
            }
        }
    }
    (events, None, None)
}

/// Another layout of the packet says the same.
fn is_written_as_it_was_read(ok: OkPacket<'_>, capabilities: Capabilities) {
    let mut out = Vec::new();
    ok.append(capabilities, 1, &mut out);
    let again = OkPacket::read(&out[4..], capabilities, false).expect("what was written");
    assert_eq!(
        (again.affected_rows, again.last_insert_id),
        (ok.affected_rows, ok.last_insert_id)
    );
    assert_eq!((again.info, again.trackers), (ok.info, ok.trackers));
}

fuzz_target!(|input: (u8, bool, bool, u8, &[u8])| {
    let (shape, deprecates_eof, tracks, size, bytes) = input;
    let shape = SHAPES[usize::from(shape) % SHAPES.len()];
    let mut capabilities = Capabilities::PROTOCOL_41;
    if deprecates_eof {
        capabilities = capabilities.with(Capabilities::DEPRECATE_EOF);
    }
    if tracks {
        capabilities = capabilities.with(Capabilities::SESSION_TRACK);
    }
    let once = read(shape, capabilities, std::iter::once(bytes));
    assert_eq!(
        read(shape, capabilities, bytes.chunks(usize::from(size).max(1))),
        once
    );
});
