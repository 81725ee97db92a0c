//! Frames in a stream of bytes.

use super::{
    Ack, Answer, Ask, Change, Confirm,
    bytes::Reader,
    kind::{ACK, ANSWER, ASK, CHANGE, CONFIRM},
};

/// The most bytes of a message or reply inside a frame.
pub const MESSAGE_LIMIT: usize = 16 << 20;
/// The most bytes that a frame has beside its message: the longest head, with the longest key.
const HEAD_LIMIT: usize = 64 + u16::MAX as usize;

/// One frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each variant holds the frame of its name")]
pub enum Frame<'a> {
    Change(Change<'a>),
    Ack(Ack<'a>),
    Confirm(Confirm),
    Ask(Ask<'a>),
    Answer(Answer<'a>),
}

/// The other end does not keep to this form: the channel is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The length that a frame announces is beyond every limit.
    #[error("a frame of {0} bytes; at most {limit} are allowed", limit = MESSAGE_LIMIT + HEAD_LIMIT)]
    TooLong(u32),
    /// A body that does not fit its kind, or an unknown kind.
    #[error("a malformed frame of kind {0}")]
    Malformed(u8),
}

/// The first frame of `bytes`, and the number of bytes that it takes. `None`: more bytes are needed.
///
/// # Errors
/// The bytes are no frame, and never will be.
pub fn read(bytes: &[u8]) -> Result<Option<(Frame<'_>, usize)>, FrameError> {
    let Some((length, rest)) = bytes.split_first_chunk::<4>() else {
        return Ok(None);
    };
    let length = u32::from_le_bytes(*length);
    if length as usize > MESSAGE_LIMIT + HEAD_LIMIT {
        return Err(FrameError::TooLong(length));
    }
    if length == 0 {
        return Err(FrameError::Malformed(0));
    }
    let Some((&kind, body)) = rest.get(..length as usize).and_then(<[u8]>::split_first) else {
        return Ok(None);
    };
    let mut body = Reader(body);
    let frame = match kind {
        CHANGE => Change::read(&mut body).map(Frame::Change),
        ACK => Ack::read(&mut body).map(Frame::Ack),
        CONFIRM => Confirm::read(&mut body).map(Frame::Confirm),
        ASK => Ask::read(&mut body).map(Frame::Ask),
        ANSWER => Answer::read(&mut body).map(Frame::Answer),
        _ => None,
    };
    match frame {
        Some(frame) if body.0.is_empty() => Ok(Some((frame, 4 + length as usize))),
        _ => Err(FrameError::Malformed(kind)),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::fleet::{AnswerBody, AskKind, Verdict};

    fn frames() -> Vec<Frame<'static>> {
        let change = Change {
            view: 7,
            sequence: 1,
            stamp: u64::MAX,
            pool: 3,
            key: b"k",
            message: b"set k 0 0 1\r\nv\r\n",
        };
        let ask = Ask {
            view: 7,
            number: 9,
            pool: 3,
            kind: AskKind::Home,
            form: 2,
            message: b"incr k 1\r\n",
        };
        let mut all = vec![Frame::Change(change), Frame::Ask(ask)];
        all.push(Frame::Change(Change {
            key: b"",
            message: b"",
            ..change
        }));
        all.push(Frame::Ask(Ask {
            kind: AskKind::Look,
            ..ask
        }));
        all.push(Frame::Confirm(Confirm { view: 1, up_to: 2 }));
        for verdict in [
            Verdict::Applied(b"STORED\r\n"),
            Verdict::Superseded,
            Verdict::Missed,
            Verdict::View(8),
            Verdict::Decided(9),
        ] {
            all.push(Frame::Ack(Ack {
                sequence: 1,
                clock: 2,
                verdict,
            }));
        }
        for said in [
            AnswerBody::Reply(b"1\r\n"),
            AnswerBody::NotHere(b"later"),
            AnswerBody::Failed(b""),
        ] {
            all.push(Frame::Answer(Answer {
                number: 5,
                clock: 6,
                said,
            }));
        }
        all
    }

    fn write(frame: &Frame<'_>, out: &mut Vec<u8>) {
        match frame {
            Frame::Change(frame) => frame.write(out),
            Frame::Ack(frame) => frame.write(out),
            Frame::Confirm(frame) => frame.write(out),
            Frame::Ask(frame) => frame.write(out),
            Frame::Answer(frame) => frame.write(out),
        }
    }

    #[test]
    fn frame_is_read_as_it_was_written() {
        for frame in frames() {
            let mut bytes = Vec::new();
            write(&frame, &mut bytes);
            assert_eq!(read(&bytes), Ok(Some((frame, bytes.len()))));
        }
    }

    #[test]
    fn cut_frame_is_waited_for_at_every_length() {
        for frame in frames() {
            let mut bytes = Vec::new();
            write(&frame, &mut bytes);
            for end in 0..bytes.len() {
                assert_eq!(read(&bytes[..end]), Ok(None), "{frame:?} cut at {end}");
            }
        }
    }

    #[test]
    fn frame_of_four_gigabytes_is_refused_by_its_first_bytes() {
        assert_eq!(read(&[255; 4]), Err(FrameError::TooLong(u32::MAX)));
    }

    #[test]
    fn frame_that_is_too_short_or_too_long_for_its_kind_is_refused() {
        for frame in frames() {
            let mut bytes = Vec::new();
            write(&frame, &mut bytes);
            let kind = bytes[4];
            let fixed = matches!(frame, Frame::Confirm(_));
            if fixed {
                bytes.push(0);
                let length = (bytes.len() - 4) as u32;
                bytes[..4].copy_from_slice(&length.to_le_bytes());
                assert_eq!(read(&bytes), Err(FrameError::Malformed(kind)));
            }
            bytes.truncate(6);
            bytes[..4].copy_from_slice(&2_u32.to_le_bytes());
            assert_eq!(read(&bytes), Err(FrameError::Malformed(kind)));
        }
        assert_eq!(read(&[1, 0, 0, 0, 99]), Err(FrameError::Malformed(99)));
        assert_eq!(read(&[0, 0, 0, 0, 1]), Err(FrameError::Malformed(0)));
    }
}
