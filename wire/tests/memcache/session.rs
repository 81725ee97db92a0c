//! A minimal user of the codec, which turns bytes into messages as a connection does.

use proxima_wire::memcache::{Limits, request};
use proxima_wire::message::{Bad, Parsed, Request};

/// A client's message with all of its bytes.
#[derive(Debug, PartialEq)]
pub(crate) enum Message {
    Good(Request, Vec<u8>),
    Bad(Bad, Vec<u8>),
}

/// The messages in a connection's bytes, which come in these pieces.
pub(crate) fn messages<'a>(pieces: impl IntoIterator<Item = &'a [u8]>, limits: &Limits) -> Vec<Message> {
    let (mut buffer, mut messages) = (Vec::new(), Vec::new());
    for piece in pieces {
        buffer.extend_from_slice(piece);
        loop {
            let (parsed, len) = match request(&buffer, limits) {
                Parsed::More => break,
                Parsed::Head(request) => (Ok(request), request.len()),
                Parsed::Bad(bad) => (Err(bad), u64::from(bad.head) + bad.swallow),
            };
            if (buffer.len() as u64) < len {
                break;
            }
            let bytes = buffer.drain(..len as usize).collect();
            messages.push(match parsed {
                Ok(request) => Message::Good(request, bytes),
                Err(bad) => Message::Bad(bad, bytes),
            });
            if matches!(messages.last(), Some(Message::Bad(bad, _)) if bad.close) {
                return messages;
            }
        }
    }
    messages
}
