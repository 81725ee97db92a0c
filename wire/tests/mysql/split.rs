//! The same events for any split of the bytes, and no panic on any bytes.

use proptest::{
    collection::vec,
    prelude::{Just, Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest},
};
use proxima_wire::{
    message::Parse,
    mysql::{Capabilities, ChangeUser, Fault, Greeting, Hello, ReplyPart, Shape, Status, find},
};

use crate::session::{ALL, PLAIN, Server, pieces, read};

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

/// Payloads that resemble those of servers.
fn payload() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        Just(b"\0\0\0\x02\0\0\0".to_vec()),
        Just(b"\0\0\0\x0a\0\0\0".to_vec()),
        Just(b"\xfe\0\0\x02\0".to_vec()),
        Just(b"\xfe\0\0\x0a\0\0\0".to_vec()),
        Just(b"\xff\x28\x04#42000wrong".to_vec()),
        Just(b"\0\0\0\x40\0\0\0\0\x06\x01\x04\x03abc".to_vec()),
        Just(b"\0\x01\0\0\0\x01\0\x01\0\0\0\0".to_vec()),
        (1_u8..4).prop_map(|columns| vec![columns]),
        Just(b"\x03def\x01a".to_vec()),
        vec(any::<u8>(), 0..12),
        (0_usize..70_000).prop_map(|len| vec![0x01; len]),
    ]
}

/// A valid reply of several results.
fn results() -> impl Strategy<Value = Vec<Vec<Vec<u8>>>> {
    let row = prop_oneof![
        8 => vec(0_u8..0xfc, 1..20),
        1 => (1_usize..30_000).prop_map(|len| vec![1; len]),
    ];
    vec(vec(row, 0..6), 1..5)
}

/// Does the reply end in a buffer that gets these pieces as it does where each byte is read once? What is longer
/// than one message may be is a fault there alone.
fn grows_as_it_is_read(shape: Shape, capabilities: Capabilities, bytes: &[u8], sizes: &[usize]) -> bool {
    let once = read(shape, capabilities, [bytes]);
    let (mut parse, mut buffer, mut passed, mut skipped) = (Parse::default(), Vec::new(), 0, 0);
    for piece in pieces(bytes, sizes) {
        let skip = piece.len().min(skipped);
        skipped -= skip;
        buffer.extend_from_slice(&piece[skip..]);
        loop {
            match find(&mut parse, shape, capabilities, Some(1), &buffer) {
                Ok(ReplyPart::More) => break,
                Ok(ReplyPart::Part { len, .. }) => {
                    let there = buffer.len().min(len as usize);
                    buffer.drain(..there);
                    skipped = len as usize - there;
                    passed += len as usize;
                    if skipped > 0 {
                        break;
                    }
                }
                Ok(ReplyPart::Last { len, end, .. }) => {
                    return parse == Parse::default()
                        && end <= len
                        && once.end == Some(passed + len as usize);
                }
                Err(fault) => {
                    return once.fault == Some(fault) || fault == Fault::TooLong("message of a reply");
                }
            }
        }
    }
    once.end.is_none() || shape == Shape::Nothing
}

proptest! {
    #[test]
    fn noise_is_the_same_events_for_any_split(
        payloads in vec(payload(), 0..12),
        shape in 0_usize..SHAPES.len(),
        sizes in vec(1_usize..50, 1..50),
    ) {
        for capabilities in [PLAIN, ALL] {
            let server = payloads.iter().fold(Server::new(capabilities), |server, all| server.raw(all));
            let whole = read(SHAPES[shape], capabilities, [&server.bytes[..]]);
            prop_assert_eq!(read(SHAPES[shape], capabilities, pieces(&server.bytes, &sizes)), whole);
        }
    }

    #[test]
    fn results_are_one_reply_for_any_split(results in results(), sizes in vec(1_usize..5000, 1..20)) {
        for capabilities in [PLAIN, ALL] {
            let mut server = Server::new(capabilities);
            for (at, rows) in results.iter().enumerate() {
                let rows: Vec<&[u8]> = rows.iter().map(Vec::as_slice).collect();
                let is_last = at + 1 == results.len();
                server = server.rows(&rows, if is_last { Status(0) } else { Status::MORE_RESULTS });
            }
            let whole = read(Shape::Results, capabilities, [&server.bytes[..]]);
            prop_assert_eq!(whole.end, Some(server.bytes.len()));
            prop_assert_eq!(read(Shape::Results, capabilities, pieces(&server.bytes, &sizes)), whole);
        }
    }

    #[test]
    fn a_buffer_that_grows_has_the_same_reply(
        payloads in vec(payload(), 0..12),
        results in results(),
        shape in 0_usize..SHAPES.len(),
        sizes in vec(1_usize..5000, 1..50),
    ) {
        for capabilities in [PLAIN, ALL] {
            let noise = payloads.iter().fold(Server::new(capabilities), |server, all| server.raw(all));
            prop_assert!(grows_as_it_is_read(SHAPES[shape], capabilities, &noise.bytes, &sizes));
            let mut server = Server::new(capabilities);
            for (at, rows) in results.iter().enumerate() {
                let rows: Vec<&[u8]> = rows.iter().map(Vec::as_slice).collect();
                let is_last = at + 1 == results.len();
                server = server.rows(&rows, if is_last { Status(0) } else { Status::MORE_RESULTS });
            }
            prop_assert!(grows_as_it_is_read(Shape::Results, capabilities, &server.bytes, &sizes));
        }
    }

    #[test]
    fn no_bytes_make_the_readers_panic(bytes in vec(any::<u8>(), 0..200), shape in 0_usize..SHAPES.len()) {
        for capabilities in [PLAIN, ALL] {
            let end = read(SHAPES[shape], capabilities, [&bytes[..]]).end;
            prop_assert!(end.is_none_or(|end| end <= bytes.len()));
            let _ = ChangeUser::read(&bytes, capabilities);
        }
        let _ = Greeting::read(&bytes);
        let _ = Hello::read(&bytes);
    }
}
