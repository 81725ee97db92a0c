//! A change of all copies, and a keeper's answer to it.

use super::{
    bytes::{Reader, frame, put},
    kind::{ACK, CHANGE, CONFIRM},
};

/// A change, from its coordinator to a keeper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change<'a> {
    /// The number of the coordinator's view.
    pub view: u64,
    /// Its number on this channel, which the acknowledgement repeats.
    pub sequence: u64,
    /// The bits of its timestamp.
    pub stamp: u64,
    /// The hash of the pool's name.
    pub pool: u64,
    /// The key; empty: all keys of the pool.
    pub key: &'a [u8],
    /// The request for the server.
    pub message: &'a [u8],
}

impl<'a> Change<'a> {
    /// Appends the frame.
    pub fn write(&self, out: &mut Vec<u8>) {
        frame(out, CHANGE, |out| {
            for number in [self.view, self.sequence, self.stamp, self.pool] {
                put(out, number);
            }
            out.extend_from_slice(&(self.key.len() as u16).to_le_bytes());
            out.extend_from_slice(self.key);
            out.extend_from_slice(self.message);
        });
    }

    pub(super) fn read(body: &mut Reader<'a>) -> Option<Self> {
        let (view, sequence, stamp, pool) = (body.u64()?, body.u64()?, body.u64()?, body.u64()?);
        let length = body.u16()?;
        Some(Self {
            view,
            sequence,
            stamp,
            pool,
            key: body.take(usize::from(length))?,
            message: body.rest(),
        })
    }
}

/// A keeper's answer to a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict<'a> {
    /// Its server has answered with these bytes.
    Applied(&'a [u8]),
    /// A later change of the key came first; this one was not applied, and need not be.
    Superseded,
    /// The keeper has no copy that may be read, and remembers that it has missed this change.
    Missed,
    /// The keeper is in a later view, of this number.
    View(u64),
    /// The keeper has a decided change of the key with this later timestamp.
    Decided(u64),
}

/// A keeper's acknowledgement of a change, or its refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack<'a> {
    /// The number of the change on this channel.
    pub sequence: u64,
    /// The latest timestamp that the keeper has seen: the coordinator's next one is later.
    pub clock: u64,
    /// The outcome of the change.
    pub verdict: Verdict<'a>,
}

impl<'a> Ack<'a> {
    /// Appends the frame.
    pub fn write(&self, out: &mut Vec<u8>) {
        frame(out, ACK, |out| {
            put(out, self.sequence);
            put(out, self.clock);
            match self.verdict {
                Verdict::Applied(reply) => {
                    out.push(0);
                    out.extend_from_slice(reply);
                }
                Verdict::Superseded => out.push(1),
                Verdict::Missed => out.push(2),
                Verdict::View(view) => {
                    out.push(3);
                    put(out, view);
                }
                Verdict::Decided(stamp) => {
                    out.push(4);
                    put(out, stamp);
                }
            }
        });
    }

    pub(super) fn read(body: &mut Reader<'a>) -> Option<Self> {
        let (sequence, clock) = (body.u64()?, body.u64()?);
        let verdict = match body.u8()? {
            0 => Verdict::Applied(body.rest()),
            1 => Verdict::Superseded,
            2 => Verdict::Missed,
            3 => Verdict::View(body.u64()?),
            4 => Verdict::Decided(body.u64()?),
            _ => return None,
        };
        Some(Self {
            sequence,
            clock,
            verdict,
        })
    }
}

/// All changes of this channel up to a number are complete: every keeper of their view has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Confirm {
    /// The number of the coordinator's view.
    pub view: u64,
    /// The number of the last of these changes.
    pub up_to: u64,
}

impl Confirm {
    /// Appends the frame.
    pub fn write(&self, out: &mut Vec<u8>) {
        frame(out, CONFIRM, |out| {
            put(out, self.view);
            put(out, self.up_to);
        });
    }

    pub(super) fn read(body: &mut Reader<'_>) -> Option<Self> {
        Some(Self {
            view: body.u64()?,
            up_to: body.u64()?,
        })
    }
}
