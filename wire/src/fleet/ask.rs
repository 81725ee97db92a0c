//! A request that another peer answers, and its answer.

use super::{
    bytes::{Reader, frame, put},
    kind::{ANSWER, ASK},
};

/// Why a peer is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AskKind {
    /// The asker's own copy may not be read.
    Look,
    /// The peer is the key's home: it decides the change, or knows the version of the value.
    Home,
}

/// A request to a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask<'a> {
    /// The number of the asker's view.
    pub view: u64,
    /// The number of the request, which the answer repeats.
    pub number: u64,
    /// The hash of the pool's name.
    pub pool: u64,
    /// Why it is asked.
    pub kind: AskKind,
    /// The client's form of replies; its meaning is the protocol's.
    pub form: u16,
    /// The request.
    pub message: &'a [u8],
}

impl<'a> Ask<'a> {
    /// Appends the frame.
    pub fn write(&self, out: &mut Vec<u8>) {
        frame(out, ASK, |out| {
            for number in [self.view, self.number, self.pool] {
                put(out, number);
            }
            out.push(match self.kind {
                AskKind::Look => 0,
                AskKind::Home => 1,
            });
            out.extend_from_slice(&self.form.to_le_bytes());
            out.extend_from_slice(self.message);
        });
    }

    pub(super) fn read(body: &mut Reader<'a>) -> Option<Self> {
        let (view, number, pool) = (body.u64()?, body.u64()?, body.u64()?);
        let kind = match body.u8()? {
            0 => AskKind::Look,
            1 => AskKind::Home,
            _ => return None,
        };
        Some(Self {
            view,
            number,
            pool,
            kind,
            form: body.u16()?,
            message: body.rest(),
        })
    }
}

/// A peer's answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerBody<'a> {
    /// The reply.
    Reply(&'a [u8]),
    /// The peer did nothing: another one is to be asked, or the same one later.
    NotHere(&'a [u8]),
    /// The peer failed, for this reason. A change may have been done.
    Failed(&'a [u8]),
}

/// The answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer<'a> {
    /// The number of the request.
    pub number: u64,
    /// The latest timestamp that the peer has seen.
    pub clock: u64,
    /// The peer's answer.
    pub said: AnswerBody<'a>,
}

impl<'a> Answer<'a> {
    /// Appends the frame.
    pub fn write(&self, out: &mut Vec<u8>) {
        frame(out, ANSWER, |out| {
            put(out, self.number);
            put(out, self.clock);
            let (kind, text) = match self.said {
                AnswerBody::Reply(reply) => (0, reply),
                AnswerBody::NotHere(why) => (1, why),
                AnswerBody::Failed(why) => (2, why),
            };
            out.push(kind);
            out.extend_from_slice(text);
        });
    }

    pub(super) fn read(body: &mut Reader<'a>) -> Option<Self> {
        let (number, clock) = (body.u64()?, body.u64()?);
        let said = match body.u8()? {
            0 => AnswerBody::Reply(body.rest()),
            1 => AnswerBody::NotHere(body.rest()),
            2 => AnswerBody::Failed(body.rest()),
            _ => return None,
        };
        Some(Self { number, clock, said })
    }
}
