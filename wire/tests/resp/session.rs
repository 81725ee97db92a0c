//! A minimal user of the codec, which turns bytes into messages as a connection does.

use proxima_wire::{
    message::{Bad, Message, Parse, Parsed},
    resp::{Expect, Frame, Limits, frame, reply, rest},
};

/// Every length that servers take.
pub(crate) const LIMITS: Limits = Limits { value: u64::MAX };

/// A client's message with all of its bytes.
#[derive(Debug, PartialEq)]
pub(crate) enum Asked {
    Good(Frame, Vec<u8>),
    Bad(Bad, Vec<u8>),
}

/// The requests in a connection's bytes, which come in these pieces. Each is held until it is complete.
pub(crate) fn requests<'a>(pieces: impl IntoIterator<Item = &'a [u8]>, limits: &Limits) -> Vec<Asked> {
    let (mut buffer, mut messages, mut parse) = (Vec::new(), Vec::new(), Parse::default());
    for piece in pieces {
        buffer.extend_from_slice(piece);
        while !buffer.is_empty() {
            match frame(&mut parse, &buffer, limits) {
                Parsed::More => break,
                Parsed::Head(frame) if frame.large > 0 => break,
                Parsed::Head(frame) => {
                    let bytes = buffer.drain(..frame.head as usize).collect();
                    messages.push(Asked::Good(frame, bytes));
                }
                Parsed::Bad(bad) => {
                    messages.push(Asked::Bad(bad, buffer.drain(..bad.head as usize).collect()));
                    if bad.close {
                        return messages;
                    }
                }
            }
            assert!(parse.is_new());
        }
    }
    messages
}

/// The bytes of a valid request with large arguments, passed on as they come, with the number of pieces.
pub(crate) fn streamed<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> (Vec<u8>, usize) {
    let (mut buffer, mut parse) = (Vec::new(), Parse::default());
    let (mut passed, mut count) = (Vec::new(), 0);
    let (mut due, mut begun, mut ended) = (0_u64, false, false);
    for piece in pieces {
        buffer.extend_from_slice(piece);
        loop {
            let here = due.min(buffer.len() as u64);
            due -= here;
            passed.extend(buffer.drain(..here as usize));
            if due > 0 || ended {
                break;
            }
            if begun {
                match rest(&mut parse, &buffer, &LIMITS) {
                    Parsed::Head(piece) => (due, ended) = (piece.len, piece.is_last),
                    Parsed::More => break,
                    Parsed::Bad(bad) => panic!("{bad:?}"),
                }
            } else {
                match frame(&mut parse, &buffer, &LIMITS) {
                    Parsed::Head(frame) => {
                        (due, begun) = (u64::from(frame.head) + frame.large, true);
                        ended = frame.large == 0;
                    }
                    Parsed::More => break,
                    Parsed::Bad(bad) => panic!("{bad:?}"),
                }
            }
            count += 1;
        }
    }
    assert!(ended && buffer.is_empty() && parse.is_new());
    (passed, count)
}

/// What a server has said: whole replies with the parts that they came in, and pushes, in order.
#[derive(Debug, PartialEq)]
pub(crate) enum Said {
    Reply(proxima_wire::message::Outcome, Vec<u8>),
    Push(Vec<u8>),
}

/// The messages in a server's bytes, which come in these pieces. Pushes stand before the reply in whose
/// middle they came. Panics on what is no message.
pub(crate) fn said<'a>(expect: Expect, pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<Said> {
    let (mut buffer, mut messages, mut parse) = (Vec::new(), Vec::new(), Parse::default());
    let (mut begun, mut pushed) = (Vec::new(), Vec::new());
    let mut skip = 0;
    for piece in pieces {
        buffer.extend_from_slice(piece);
        while !buffer.is_empty() {
            let here = skip.min(buffer.len());
            skip -= here;
            match messages.last_mut() {
                Some(Said::Reply(_, bytes)) if here > 0 => {
                    bytes.extend(buffer.drain(..here));
                    continue;
                }
                _ => {}
            }
            let message = match reply(&mut parse, expect, &buffer) {
                Parsed::More => break,
                Parsed::Head(message) => message,
                Parsed::Bad(bad) => panic!("{bad:?} at {}", buffer.escape_ascii()),
            };
            let head = message.head();
            match message {
                Message::Part(part) => {
                    assert!(part.len() <= 64 * 1024, "a part of {}", part.len());
                    begun.extend(buffer.drain(..part.len() as usize));
                }
                Message::PushPart(part) => {
                    assert!(part.len() <= 64 * 1024, "a part of {}", part.len());
                    pushed.extend(buffer.drain(..part.len() as usize));
                }
                Message::Push(push) => {
                    pushed.extend(buffer.drain(..push.len() as usize));
                    messages.push(Said::Push(std::mem::take(&mut pushed)));
                }
                Message::Last(last) => {
                    assert!(parse.is_new());
                    begun.extend(buffer.drain(..last.head as usize));
                    skip = last.body as usize;
                    messages.push(Said::Reply(head.outcome, std::mem::take(&mut begun)));
                }
            }
        }
    }
    assert!(
        buffer.is_empty() && begun.is_empty() && pushed.is_empty() && skip == 0,
        "half a reply is left"
    );
    messages
}
