//! Messages of a stream of server-sent events, as the HTML standard divides it. `id` and `retry` are not
//! needed: an event says its number itself, and the pause is ours.

/// The most bytes of a message, and of a line.
pub(super) const MOST: usize = 16 << 20;

/// A message is longer than any that a proxy sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a message is longer than {} MiB", MOST >> 20)]
pub(in crate::cli) struct TooLong;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Message {
    /// `message` where the stream names none.
    pub(super) kind: String,
    pub(super) data: String,
}

/// Divides bytes, which come in any pieces, into messages.
#[derive(Default)]
pub(super) struct Messages {
    line: Vec<u8>,
    /// The last byte was a CR: a LF behind it belongs to the same end of a line.
    is_behind_cr: bool,
    kind: String,
    data: Option<String>,
}

impl Messages {
    /// Takes the next bytes, and returns the messages that they complete.
    ///
    /// # Errors
    /// A message has no end.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<Vec<Message>, TooLong> {
        let mut messages = Vec::new();
        for &byte in bytes {
            let is_behind_cr = std::mem::replace(&mut self.is_behind_cr, byte == b'\r');
            match byte {
                b'\n' if is_behind_cr => {}
                b'\n' | b'\r' => {
                    let line = std::mem::take(&mut self.line);
                    messages.extend(self.end_line(&String::from_utf8_lossy(&line))?);
                }
                _ if self.line.len() == MOST => return Err(TooLong),
                byte => self.line.push(byte),
            }
        }
        Ok(messages)
    }

    fn end_line(&mut self, line: &str) -> Result<Option<Message>, TooLong> {
        if line.is_empty() {
            let kind = std::mem::take(&mut self.kind);
            let kind = if kind.is_empty() {
                "message".to_owned()
            } else {
                kind
            };
            return Ok(self.data.take().map(|data| Message { kind, data }));
        }
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match (name, &mut self.data) {
            ("event", _) => value.clone_into(&mut self.kind),
            ("data", Some(data)) if data.len() + value.len() >= MOST => return Err(TooLong),
            ("data", Some(data)) => {
                data.push('\n');
                data.push_str(value);
            }
            ("data", data) => *data = Some(value.to_owned()),
            // A line with no name is a comment, which keeps the connection open.
            _ => {}
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: &str, data: &str) -> Message {
        Message {
            kind: kind.to_owned(),
            data: data.to_owned(),
        }
    }

    #[test]
    fn messages_are_the_same_for_any_split_and_any_end_of_lines() {
        let stream = ": hello\n\nevent: state\ndata: {\"a\":1}\n\n\
                      id: 7\nretry: 5\nevent:log\ndata: x\ndata:  y\ndata\n\n\
                      data: ä\n\nevent: nothing\n\ndata: begun";
        let expected = [
            message("state", "{\"a\":1}"),
            message("log", "x\n y\n"),
            message("message", "ä"),
        ];
        for end in ["\n", "\r", "\r\n"] {
            let bytes = stream.replace('\n', end).into_bytes();
            for size in [1, 2, 3, 7, bytes.len()] {
                let mut messages = Messages::default();
                let found: Vec<Message> = bytes
                    .chunks(size)
                    .flat_map(|piece| messages.push(piece).unwrap())
                    .collect();
                assert_eq!(found, expected, "{end:?} in pieces of {size}");
            }
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_replaced() {
        let found = Messages::default().push(b"data: a\xff\x1b[2Jb\n\n").unwrap();
        assert_eq!(found, [message("message", "a\u{fffd}\u{1b}[2Jb")]);
    }

    #[test]
    fn a_line_or_message_without_an_end_is_an_error() {
        let piece = vec![b'x'; 1 << 20];
        let line = [b"data: ", &piece[..], b"\n"].concat();
        for pieces in [&piece, &line] {
            let mut messages = Messages::default();
            let most = MOST / piece.len();
            let taken = (0..=most).take_while(|_| messages.push(pieces).is_ok());
            assert!(taken.count() >= most - 1, "what is shorter is taken");
            assert_eq!(messages.push(pieces), Err(TooLong));
        }
    }
}
