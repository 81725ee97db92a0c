//! The reply to one command in a buffer that holds it from its beginning, or from the end of a part that was
//! passed on.
//!
//! The state between two calls fits into a [`Parse`]: the reader looks at each packet once, and keeps no byte
//! of it.

use super::{
    Capabilities, Event, Fault, Header, Shape, Status,
    packet::LARGEST_PACKET,
    stage::{Role, Stage},
};
use crate::message::Parse;

/// A reply of more bytes is passed on in parts.
const PORTION: u32 = 32 * 1024;

/// A row or a definition of more bytes is passed on before its last byte has come.
const LARGE: u32 = PORTION;

/// A message that is to be understood has no more bytes: it is held as a whole.
const LONGEST: u32 = 60 * 1024;

/// The packet that was read last is continued by the next.
const CONTINUED: u32 = 1 << 8;
/// The reply has begun.
const BEGUN: u32 = 1 << 9;
/// The first packet may have any number.
const FRESH: u32 = 1 << 10;

/// The meaning of the first bytes of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyPart<'a> {
    /// More bytes are needed.
    More,
    /// A part of the reply, some bytes of which may still have to come.
    Part {
        /// Bytes of the part.
        len: u32,
        /// Bytes of its last packet, with the header, if that is the head of a prepared statement, or tells that
        /// the session has changed or of an id. All of the part is there then. 0: it is neither.
        end: u32,
    },
    /// The reply ends.
    Last {
        /// Bytes up to its end.
        len: u32,
        /// Bytes of its last packet, with the header.
        end: u32,
        /// The content of the last packet; nothing for replies without a mark.
        event: Event<'a>,
    },
}

/// Reads on in the reply to a command with this shape. `capabilities`: what both ends have agreed on. `parse`
/// is what an earlier call has left for these bytes, or for those before them; the last part leaves it new.
/// `first`: the number of the reply's first packet, which is that of the command's last one and 1; `None`: it may
/// be any.
///
/// # Errors
/// The bytes are no reply; no later byte of the connection can be understood.
pub fn find<'a>(
    parse: &mut Parse,
    shape: Shape,
    capabilities: Capabilities,
    first: Option<u8>,
    bytes: &'a [u8],
) -> Result<ReplyPart<'a>, Fault> {
    let mut at = ReplyPosition::of(parse, shape, first);
    while at.stage != Stage::End {
        if at.seen >= PORTION {
            return Ok(at.part(parse));
        }
        let rest = bytes.get(at.seen as usize..).unwrap_or_default();
        let Some((header, payload)) = rest.split_first_chunk() else {
            return Ok(at.wait(parse));
        };
        let header = Header::of(*header);
        if header.len == 0 {
            at.pass(header, capabilities)?;
            continue;
        }
        let Some(&first) = payload.first() else {
            return Ok(at.wait(parse));
        };
        let role = match at.flags & CONTINUED {
            0 => at.stage.role(first, header.len, capabilities)?,
            _ => Role::Bytes,
        };
        if role == Role::Bytes {
            if payload.len() >= header.len as usize {
                at.pass(header, capabilities)?;
                continue;
            }
            if header.len < LARGE {
                return Ok(at.wait(parse));
            }
            if at.seen == 0 {
                at.pass(header, capabilities)?;
            }
            return Ok(at.part(parse));
        }
        if header.len > LONGEST {
            return Err(Fault::TooLong("message of a reply"));
        }
        if at.seen > 0 && at.seen + header.len > LONGEST {
            return Ok(at.part(parse));
        }
        let Some(payload) = payload.get(..header.len as usize) else {
            return Ok(at.wait(parse));
        };
        // What the end of definitions tells was so before the statement ran, and the end of its rows tells it
        // again, with what the statement has changed.
        let is_before = matches!(at.stage, Stage::DefinitionsEnd(_));
        let (stage, event) = at.stage.understood(role, payload, false, capabilities)?;
        at.count(header)?;
        at.stage = stage;
        let end = header.len + Header::LEN as u32;
        if stage == Stage::End {
            *parse = Parse::default();
            let len = at.seen;
            return Ok(ReplyPart::Last { len, end, event });
        }
        if !is_before && is_telling(&event) {
            let part = at.part(parse);
            return Ok(match part {
                ReplyPart::Part { len, .. } => ReplyPart::Part { len, end },
                other => other,
            });
        }
    }
    *parse = Parse::default();
    let (len, end, event) = (at.seen, 0, Event::Bytes);
    Ok(ReplyPart::Last { len, end, event })
}

/// Is this a message within a reply that a reader must not miss?
const fn is_telling(event: &Event<'_>) -> bool {
    match event {
        Event::Prepared(_) => true,
        Event::Ok(ok) => ok.status.has(Status::SESSION_CHANGED) || ok.last_insert_id > 0,
        Event::Eof(eof) => eof.status.has(Status::SESSION_CHANGED),
        _ => false,
    }
}

/// The position of the reader in a reply.
#[derive(Clone, Copy, Debug)]
struct ReplyPosition {
    stage: Stage,
    /// Bytes of the buffer that were read.
    seen: u32,
    sequence: u8,
    flags: u32,
}

impl ReplyPosition {
    fn of(parse: &Parse, shape: Shape, first: Option<u8>) -> Self {
        match parse.is_new() {
            true => Self {
                stage: Stage::of(shape),
                seen: 0,
                sequence: first.unwrap_or_default(),
                flags: if first.is_some() { BEGUN } else { BEGUN | FRESH },
            },
            false => Self {
                stage: Stage::unpacked(parse.progress),
                seen: parse.seen,
                sequence: parse.left as u8,
                flags: parse.left & !0xff,
            },
        }
    }

    fn keep(&self, parse: &mut Parse) {
        *parse = Parse {
            seen: self.seen,
            left: self.flags | u32::from(self.sequence),
            progress: self.stage.packed(),
        };
    }

    /// More bytes are needed.
    fn wait<'a>(self, parse: &mut Parse) -> ReplyPart<'a> {
        self.keep(parse);
        ReplyPart::More
    }

    /// The bytes that were read are passed on.
    fn part<'a>(&mut self, parse: &mut Parse) -> ReplyPart<'a> {
        let len = std::mem::take(&mut self.seen);
        self.keep(parse);
        ReplyPart::Part { len, end: 0 }
    }

    /// A packet of bytes to pass on, all or the first of which are there.
    fn pass(&mut self, header: Header, capabilities: Capabilities) -> Result<(), Fault> {
        if header.len == 0 && self.flags & CONTINUED == 0 {
            return Err(Fault::Empty);
        }
        self.count(header)?;
        self.flags &= !CONTINUED;
        match header.len == LARGEST_PACKET {
            true => self.flags |= CONTINUED,
            false => self.stage = self.stage.passed(capabilities),
        }
        Ok(())
    }

    /// Counts a packet.
    fn count(&mut self, header: Header) -> Result<(), Fault> {
        let is_fresh = self.flags & FRESH != 0;
        self.flags &= !FRESH;
        if is_fresh {
            self.sequence = header.sequence;
        }
        if header.sequence != self.sequence {
            return Err(Fault::Sequence {
                expected: self.sequence,
                found: header.sequence,
            });
        }
        self.sequence = self.sequence.wrapping_add(1);
        self.seen += header.len + Header::LEN as u32;
        Ok(())
    }
}
