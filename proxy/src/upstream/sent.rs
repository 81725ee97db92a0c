//! Requests that a lane has sent are kept until they are answered: a reply must name the key that was asked
//! for, and reads are sent again when the connection is lost (`again.rs`).
//!
//! Invariant: a lane keeps no more of its sent requests than [`MOST`] bytes.

use proxima_wire::message::Parsed;

use super::{Lane, Phase, Waiter};
use crate::{
    engine::{Engine, LaneId},
    stream::BufferPool,
};

/// Answered requests are dropped once at least this many bytes are kept.
const WORTHWHILE: usize = 16 * 1024;
/// Beyond this many bytes at once, only small reads are kept.
const LARGE: usize = 8 * 1024;
/// Requests up to this size are small.
const SMALL: usize = 4 * 1024;
/// A lane keeps this much at most. Keys in replies to requests that are not kept are not compared, and such
/// reads are not sent again.
const MOST: usize = 256 * 1024;

impl Engine {
    /// Is what this lane sends next kept? If it is not, nothing that was sent before is kept any more.
    #[inline]
    pub fn keeps_sent(&mut self, id: LaneId) -> bool {
        let lane = self.servers.lanes.get_mut(id);
        lane.is_some_and(|lane| lane.keeps_sent(&mut self.buffers))
    }

    /// This lane, which [keeps](Self::keeps_sent) it, has sent all that it had.
    #[inline]
    pub fn note_sent(&mut self, id: LaneId) {
        let Some(lane) = self.servers.lanes.get_mut(id) else {
            return;
        };
        let sent = lane.unsent();
        lane.stream.kept = lane.stream.out.len();
        // To look through what is kept for small requests is worthwhile where most bytes are those of others.
        let is_large = sent >= LARGE && sent / SMALL > lane.waiters.len() / 4;
        if is_large || lane.stream.kept > MOST {
            lane.keep_small(&mut self.scratch);
        }
    }
}

impl Lane {
    #[inline]
    fn keeps_sent(&mut self, buffers: &mut BufferPool) -> bool {
        let is_shared = matches!(self.phase, Phase::Ready) && !self.bulk && !self.dedicated;
        let is_kept = is_shared
            && !self.waiters.is_empty()
            && (self.unsent() < LARGE || self.waiters.iter().any(Waiter::is_needed));
        if !is_kept && self.stream.kept > 0 {
            self.stream.drop_kept(buffers);
        }
        if self.stream.kept >= WORTHWHILE {
            self.drop_answered();
        }
        is_kept
    }

    /// Drops what is answered, if that is worth moving the rest.
    #[cold]
    fn drop_answered(&mut self) {
        let bytes = &mut self.stream.out;
        let behind = self.waiters.first().map_or(0, |waiter| waiter.behind(self.given));
        let answered = bytes.len().saturating_sub(behind).min(self.stream.kept);
        if answered >= bytes.len() / 2 {
            bytes.drain(..answered);
            self.stream.kept -= answered;
        }
    }

    /// Keeps of what was sent small requests alone, and only those that are needed. `small`: a scratch
    /// buffer.
    #[cold]
    fn keep_small(&mut self, small: &mut Vec<u8>) {
        let sent = &mut self.stream.out;
        let protocol = self.member.protocol;
        small.clear();
        for waiter in self.waiters.iter_mut() {
            let position = sent.len().checked_sub(waiter.behind(self.given));
            let request = position.filter(|_| waiter.is_needed()).and_then(|position| {
                let rest = sent.get(position..)?;
                match protocol.head(rest) {
                    Parsed::Head(head) if head.len() <= SMALL as u64 => rest.get(..head.len() as usize),
                    _ => None,
                }
            });
            // A request that is not kept would be before all that are.
            waiter.at = request.map_or(u32::MAX, |_| small.len() as u32);
            small.extend_from_slice(request.unwrap_or_default());
        }
        if small.len() > MOST / 2 {
            small.clear();
            self.waiters.iter_mut().for_each(|waiter| waiter.at = u32::MAX);
        }
        let before = (self.given as u32).wrapping_sub(small.len() as u32);
        for waiter in self.waiters.iter_mut() {
            waiter.at = waiter.at.wrapping_add(before);
        }
        sent.clear();
        sent.append(small);
        self.stream.kept = sent.len();
    }

    /// The key that the reply to this request must name. If empty, the reply may name any key.
    #[inline]
    pub(super) fn asked(&self, waiter: &Waiter) -> &[u8] {
        if waiter.key_len == 0 {
            return b"";
        }
        let held = if self.holding { self.held.len() } else { 0 };
        let given = &self.stream.out;
        let end = given.len().wrapping_add(held);
        let begin = end.wrapping_sub(waiter.behind(self.given));
        let start = begin.wrapping_add(usize::from(waiter.key_start));
        given
            .get(start..start.wrapping_add(usize::from(waiter.key_len)))
            .unwrap_or_default()
    }
}

impl Waiter {
    /// Is the request needed after it was sent?
    fn is_needed(&self) -> bool {
        self.effects.reads() || self.key_len > 0
    }

    /// The number of bytes that the lane was given from the first one of this request on. `given`: those of
    /// the lane in all.
    #[inline]
    pub(super) fn behind(&self, given: u64) -> usize {
        (given as u32).wrapping_sub(self.at) as usize
    }
}
