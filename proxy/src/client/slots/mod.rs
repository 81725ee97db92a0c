//! Replies leave in the order of the requests. There is one slot for each request that a client waits for.

mod early;
mod joined;
mod parts;
mod shared;
#[cfg(test)]
mod tests;

use std::ops::Range;

use proxima_wire::message::Reply;

pub(crate) use self::shared::SharedReply;
use self::{early::EarlyReplies, joined::JoinedReply, parts::SpreadRequests};
pub(super) use self::{joined::ReplyRole, shared::SharedReplyRest};
use crate::{micros::Micros, protocol::Join, queue::Queue, stream::append};

/// Room for this many slots is not charged to a client.
const USUAL: usize = 64;
/// Room for more slots than this is given back when no slot is used.
const KEPT: usize = 2048;

/// A request of a client that waits for its reply.
#[derive(Debug)]
pub(in crate::client) struct Slot {
    pub command: u16,
    /// The client asked for quiet: some replies are not sent.
    pub quiet: bool,
    pub role: ReplyRole,
    /// Bytes that may wait for servers because of the request.
    size: u32,
    /// When the request was taken.
    pub started: Micros,
    state: State,
}

#[derive(Debug)]
enum State {
    Waiting,
    /// The reply came before its turn. It is in this range of `early`.
    Early {
        range: Range<usize>,
        failed: bool,
    },
    /// The reply is large and has begun to leave. The slot stays first until the last byte.
    Streaming,
    /// The reply is large and comes before its turn.
    Large(Vec<u8>),
    /// The reply is large and came before its turn.
    Collected(Vec<u8>),
    /// The reply is large, and its bytes are others' as well. It leaves in pieces in its turn.
    Shared(SharedReplyRest),
    /// The number in the reply, which is all that counts.
    Number(i64),
    /// The slot closes the parts before it.
    Close(&'static Join),
    /// The slot makes one reply of the parts before it, whose request had so many keys.
    Assemble {
        join: &'static Join,
        keys: u32,
    },
}

/// The slots of one client.
#[derive(Debug, Default)]
pub(in crate::client) struct Slots {
    queue: Queue<Slot>,
    /// The number of the first slot. It wraps around.
    head: u32,
    /// Replies that wait for their turn.
    early: EarlyReplies,
    /// Bytes of large replies that are collected until their turn.
    collected: usize,
    /// The parts of one reply that have had their turn.
    joined: JoinedReply,
    /// The sum of the sizes of all slots.
    asked: usize,
    /// Requests that went to several members. Most clients make none.
    spread: Option<Box<SpreadRequests>>,
}

impl Slots {
    pub(in crate::client) fn len(&self) -> usize {
        self.queue.len()
    }

    pub(in crate::client) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Bytes that wait for their turn.
    pub(in crate::client) fn buffered(&self) -> usize {
        self.early.len() + self.collected
    }

    /// Bytes of memory, used or not, beyond the room that every client has.
    #[inline]
    pub(in crate::client) fn memory(&self) -> usize {
        let slots = self.queue.capacity().saturating_sub(USUAL);
        let spread = self.spread.as_ref().map_or(0, |spread| spread.memory());
        slots * size_of::<Slot>() + self.early.memory() + self.collected + spread
    }

    /// Bytes that may wait for servers because of requests without a reply.
    #[inline]
    pub(in crate::client) fn asked(&self) -> usize {
        self.asked
    }

    /// Adds a slot behind the last and returns its number. `size` is the number of bytes that may wait for
    /// servers until the request is answered.
    // The call alone would be a hundredth of the time of a pipelined request.
    #[inline(always)]
    pub(in crate::client) fn push(
        &mut self,
        command: u16,
        quiet: bool,
        role: ReplyRole,
        size: u32,
        started: Micros,
    ) -> u32 {
        self.asked += size as usize;
        self.queue.push(Slot {
            command,
            quiet,
            role,
            size,
            started,
            state: State::Waiting,
        });
        self.head.wrapping_add(self.queue.len() as u32 - 1)
    }

    /// Adds a slot whose reply is already known.
    pub(in crate::client) fn push_answer(&mut self, reply: &[u8], out: &mut Vec<u8>) {
        if self.queue.is_empty() {
            return out.extend_from_slice(reply);
        }
        let state = State::Early {
            range: self.early.keep(reply),
            failed: false,
        };
        self.push_known(state, out);
    }

    /// Adds bytes that no request has asked for. They leave between two replies, and before those that have
    /// not begun to leave.
    pub(in crate::client) fn push_between(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        let front = self.queue.first();
        if front.is_some_and(|slot| slot.role == ReplyRole::Whole && matches!(slot.state, State::Waiting)) {
            return out.extend_from_slice(bytes);
        }
        self.push_answer(bytes, out);
    }

    /// Adds the slot of a message that no request has asked for and that comes in parts. It leaves before
    /// replies that have not begun to leave, unless it belongs behind all of them.
    pub(in crate::client) fn push_message(&mut self, is_behind: bool) -> u32 {
        let front = self.queue.first();
        if !is_behind
            && front.is_some_and(|slot| slot.role == ReplyRole::Whole && matches!(slot.state, State::Waiting))
        {
            self.head = self.head.wrapping_sub(1);
            self.queue.insert(
                0,
                Slot {
                    command: 0,
                    quiet: false,
                    role: ReplyRole::Whole,
                    size: 0,
                    started: Micros::ZERO,
                    state: State::Streaming,
                },
            );
            return self.head;
        }
        let seq = self.push(0, false, ReplyRole::Whole, 0, Micros::ZERO);
        self.begin(seq);
        seq
    }

    /// Adds the slot that closes several parts, behind the last of them.
    pub(in crate::client) fn close(&mut self, join: &'static Join, out: &mut Vec<u8>) {
        self.push_known(State::Close(join), out);
    }

    fn push_known(&mut self, state: State, out: &mut Vec<u8>) {
        self.queue.push(Slot {
            command: 0,
            quiet: false,
            role: ReplyRole::Whole,
            size: 0,
            started: Micros::ZERO,
            state,
        });
        self.release(out);
    }

    #[inline]
    pub(in crate::client) fn get(&self, seq: u32) -> Option<&Slot> {
        self.queue.get(seq.wrapping_sub(self.head) as usize)
    }

    /// Returns whether this slot is the next to leave.
    #[inline]
    pub(in crate::client) fn is_first(&self, seq: u32) -> bool {
        seq == self.head
    }

    /// Returns whether a failure of slot `seq` is the first of its request, and the client is told of it.
    pub(in crate::client) fn fails_first(&self, seq: u32) -> bool {
        let at = seq.wrapping_sub(self.head) as usize;
        let Some(slot) = self.queue.get(at).filter(|slot| !slot.quiet) else {
            return false;
        };
        match slot.role {
            ReplyRole::Whole => return true,
            ReplyRole::Part => return self.is_first_failure(seq),
            ReplyRole::Body | ReplyRole::Number => {}
        }
        let is_part = |slot: &&Slot| slot.role != ReplyRole::Whole;
        let has_failed = |slot: &Slot| matches!(slot.state, State::Early { failed: true, .. });
        let mut before = self.queue[..at].iter().rev().take_while(is_part);
        let mut behind = self.queue[at + 1..].iter().take_while(is_part);
        let is_of_first = || self.queue[..at].iter().all(|slot| is_part(&slot));
        !(before.any(has_failed) || behind.any(has_failed) || self.joined.has_failed() && is_of_first())
    }

    /// Removes slot `seq` if it is the only one and waits for a whole reply. The caller then sends the reply
    /// itself.
    #[inline]
    pub(in crate::client) fn answer_alone(&mut self, seq: u32) -> bool {
        let alone = self.queue.len() == 1 && self.is_first(seq);
        let whole = alone
            && self
                .queue
                .first()
                .is_some_and(|slot| slot.role == ReplyRole::Whole && matches!(slot.state, State::Waiting));
        if whole {
            self.pop();
        }
        whole
    }

    /// Takes the reply of slot `seq`. It goes to `out` when it is its turn, with all that waited behind it;
    /// otherwise it is held.
    #[inline(always)]
    pub(in crate::client) fn answer(
        &mut self,
        seq: u32,
        reply: &Reply,
        bytes: &[u8],
        silenced: bool,
        out: &mut Vec<u8>,
    ) {
        let at = seq.wrapping_sub(self.head) as usize;
        let Some(slot) = self.queue.get_mut(at) else {
            return;
        };
        let (is_whole, failed) = (slot.role == ReplyRole::Whole, reply.outcome.is_error());
        let visible = match () {
            () if silenced => &[],
            () if !is_whole && !failed => bytes
                .get(..bytes.len() - reply.trailer as usize)
                .unwrap_or_default(),
            () => bytes,
        };
        if matches!(slot.state, State::Streaming | State::Large(_)) {
            // These bytes are the last part of a reply that came in parts.
            self.more(seq, visible, out);
            return self.finish(seq, out);
        }
        if at == 0 && is_whole {
            out.extend_from_slice(visible);
            self.pop();
            if !self.queue.is_empty() {
                self.release(out);
            }
            return;
        }
        slot.state = State::Early {
            range: self.early.keep(visible),
            failed: failed && !is_whole,
        };
        let is_part = slot.role == ReplyRole::Part;
        if is_part {
            self.part_came(seq, failed);
        }
        if at == 0 || is_part {
            self.release(out);
        }
        if (at > 0 || is_part) && self.early.is_sparse() {
            self.compact();
        }
    }

    /// Takes the large reply of this slot, whose bytes are others' as well.
    pub(in crate::client) fn answer_shared(&mut self, seq: u32, shared: SharedReplyRest, out: &mut Vec<u8>) {
        let at = seq.wrapping_sub(self.head) as usize;
        if let Some(slot) = self.queue.get_mut(at) {
            self.collected += shared.charged();
            slot.state = State::Shared(shared);
        }
        if at == 0 {
            self.release(out);
        }
    }

    /// Takes the number in the reply of this slot; only the number counts.
    pub(in crate::client) fn count(&mut self, seq: u32, number: i64, out: &mut Vec<u8>) {
        let at = seq.wrapping_sub(self.head) as usize;
        if let Some(slot) = self.queue.get_mut(at) {
            if let State::Large(collected) = &slot.state {
                self.collected -= collected.len();
            }
            slot.state = State::Number(number);
        }
        if at == 0 {
            self.release(out);
        }
    }

    /// Notes that the reply of this slot comes in pieces. They leave as they come when it is its turn;
    /// otherwise they are collected.
    pub(in crate::client) fn begin(&mut self, seq: u32) {
        let first = self.is_first(seq);
        let Some(slot) = self.queue.get_mut(seq.wrapping_sub(self.head) as usize) else {
            return;
        };
        if matches!(slot.state, State::Waiting) {
            slot.state = if first && self.joined.passes(slot.role) {
                State::Streaming
            } else {
                State::Large(Vec::new())
            };
        }
    }

    /// Takes more of a large reply.
    pub(in crate::client) fn more(&mut self, seq: u32, bytes: &[u8], out: &mut Vec<u8>) {
        let is_first = self.is_first(seq);
        let is_part = self.get(seq).is_some_and(|slot| slot.role == ReplyRole::Part);
        match self
            .queue
            .get_mut(seq.wrapping_sub(self.head) as usize)
            .map(|slot| &mut slot.state)
        {
            Some(State::Streaming) => append(bytes, out),
            // A slot that does not leave although it is its turn never will.
            Some(State::Large(_)) if is_first && !is_part => {}
            Some(State::Large(collected)) => {
                append(bytes, collected);
                self.collected += bytes.len();
            }
            _ => {}
        }
    }

    /// Notes that the last byte of a large reply has come.
    pub(in crate::client) fn finish(&mut self, seq: u32, out: &mut Vec<u8>) {
        let first = self.is_first(seq);
        let Some(slot) = self.queue.get_mut(seq.wrapping_sub(self.head) as usize) else {
            return;
        };
        match &mut slot.state {
            State::Streaming if first => {
                self.pop();
                self.release(out);
            }
            State::Large(collected) => {
                slot.state = State::Collected(std::mem::take(collected));
                let is_part = slot.role == ReplyRole::Part;
                if is_part {
                    self.part_came(seq, false);
                }
                if first || is_part {
                    // The reply does not pass, so it is the turn of what waits behind it.
                    self.release(out);
                }
            }
            _ => {}
        }
    }

    /// Returns whether the next piece of this slot's reply may leave at once, without going through the
    /// client's buffer. The reply must have begun to leave, and the piece must not be the last one if others
    /// wait behind it.
    #[inline]
    pub(in crate::client) fn passes(&self, seq: u32, is_last: bool) -> bool {
        let streams = matches!(self.get(seq).map(|slot| &slot.state), Some(State::Streaming));
        streams && self.is_first(seq) && (self.queue.len() == 1 || !is_last)
    }

    /// Forgets what was collected of a reply that broke off. Returns `false` if it has begun to leave and
    /// cannot be replaced.
    #[must_use]
    pub(in crate::client) fn forget(&mut self, seq: u32) -> bool {
        match self
            .queue
            .get_mut(seq.wrapping_sub(self.head) as usize)
            .map(|slot| &mut slot.state)
        {
            Some(State::Streaming) => false,
            Some(State::Large(collected)) => {
                self.collected -= collected.len();
                if let Some(slot) = self.queue.get_mut(seq.wrapping_sub(self.head) as usize) {
                    slot.state = State::Waiting;
                }
                true
            }
            _ => true,
        }
    }

    /// Lets every reply leave whose turn has come.
    fn release(&mut self, out: &mut Vec<u8>) {
        while let Some(slot) = self.queue.first_mut() {
            if slot.role == ReplyRole::Part {
                match self.assemble(out) {
                    true => continue,
                    false => return,
                }
            }
            match &mut slot.state {
                State::Waiting | State::Streaming => return,
                // The reply will not leave: no number is as long as this reply, or a part before it has
                // failed.
                State::Large(collected) if !self.joined.passes(slot.role) => {
                    self.collected -= collected.len();
                    *collected = Vec::new();
                    return;
                }
                // The beginning of the reply may leave now, and the rest as it comes.
                State::Large(collected) => {
                    self.collected -= collected.len();
                    hand_over(collected, out);
                    slot.state = State::Streaming;
                    return;
                }
                State::Collected(collected) => {
                    self.collected -= collected.len();
                    if self.joined.passes(slot.role) {
                        hand_over(collected, out);
                    }
                    self.pop();
                }
                State::Early { range, failed } => {
                    let bytes = self.early.take(range.clone());
                    if *failed {
                        self.joined.fail(bytes);
                    } else if self.joined.passes(slot.role) {
                        out.extend_from_slice(bytes);
                    }
                    self.pop();
                }
                State::Shared(shared) => {
                    let charged = shared.charged();
                    let passes = self.joined.passes(slot.role);
                    if passes && !shared.leave(out) {
                        // The head has left.
                        self.collected -= charged - shared.charged();
                        return;
                    }
                    self.collected -= charged;
                    self.pop();
                }
                State::Number(number) => {
                    self.joined.add(*number);
                    self.pop();
                }
                State::Assemble { .. } => self.pop(),
                State::Close(join) => {
                    self.joined.close(join, out);
                    self.pop();
                }
            }
        }
    }

    fn pop(&mut self) {
        if let Some(slot) = self.queue.first_mut() {
            self.asked -= slot.size as usize;
            // A large reply is freed now.
            slot.state = State::Waiting;
        }
        self.queue.drop_first();
        self.head = self.head.wrapping_add(1);
        if self.queue.is_empty() && self.queue.capacity() > KEPT {
            self.queue = Queue::default();
        }
        self.early.settle();
    }

    fn compact(&mut self) {
        let ranges = self.queue.iter_mut().filter_map(|slot| match &mut slot.state {
            State::Early { range, .. } => Some(range),
            _ => None,
        });
        self.early.compact(ranges);
    }
}

/// Moves collected bytes behind those that leave before them, without a copy where there are none.
fn hand_over(collected: &mut Vec<u8>, out: &mut Vec<u8>) {
    if out.is_empty() {
        *out = std::mem::take(collected);
    } else {
        append(collected, out);
    }
}
