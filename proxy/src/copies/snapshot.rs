//! One worker's snapshot of the states of copies.

use proxima_wire::message::Class;

use super::{CopyState, MissedKeys};
use crate::members::MemberId;

/// The states of copies as they were proposed to one worker, and the changes that it has seen since.
#[derive(Debug, Default)]
pub struct Snapshot {
    /// By member number; a copy that is not there is current.
    copies: Vec<CopyEntry>,
}

#[derive(Debug, Default)]
struct CopyEntry {
    state: CopyState,
    /// This worker itself marked it stale: proposals made before that was heard are not followed.
    is_stale: bool,
    /// How often it was seen to be out.
    outs: u32,
    missed: MissedKeys,
}

impl CopyEntry {
    fn set(&mut self, state: CopyState) {
        self.state = state;
        self.outs = self.outs.wrapping_add(u32::from(state == CopyState::Out));
    }
}

impl Snapshot {
    /// The state of this copy, as this worker knows it.
    #[inline]
    pub fn state(&self, member: MemberId) -> CopyState {
        self.copies
            .get(member.0 as usize)
            .map_or(CopyState::Current, |entry| entry.state)
    }

    /// May it be asked a request of this class?
    #[inline]
    pub fn admits(&self, member: MemberId, class: Class) -> bool {
        let state = self.state(member);
        match class {
            Class::Read => state.is_read(),
            _ => state.is_written(),
        }
    }

    fn entry(&mut self, member: MemberId) -> &mut CopyEntry {
        let number = member.0 as usize;
        if self.copies.len() <= number {
            self.copies.resize_with(number + 1, CopyEntry::default);
        }
        &mut self.copies[number]
    }

    /// Follows a proposal; returns the keys that the copy was seen to miss, for the acknowledgement. `None`:
    /// this worker has marked it stale since the proposal was made, and another proposal will come.
    pub fn follow(&mut self, member: MemberId, state: CopyState) -> Option<MissedKeys> {
        let entry = self.entry(member);
        if entry.is_stale && state != CopyState::Leaving {
            return None;
        }
        entry.is_stale = false;
        entry.set(state);
        Some(std::mem::take(&mut entry.missed))
    }

    /// This worker saw the copy miss a write and stops reading it at once. Returns whether the control thread
    /// is to be told.
    pub fn mark_stale(&mut self, member: MemberId) -> bool {
        let entry = self.entry(member);
        let first = entry.state.is_written();
        if first {
            entry.state = CopyState::Leaving;
            entry.is_stale = true;
        }
        first
    }

    /// The copy misses a write of this key; an empty key: of an unknown one. Returns what
    /// [`Snapshot::is_settled`] asks for.
    pub fn miss(&mut self, member: MemberId, key: &[u8]) -> u32 {
        let entry = self.entry(member);
        entry.missed.add(key);
        // No worker reads a copy that is out or joining: it is repaired before any does.
        match entry.state.is_required() {
            true => entry.outs,
            false => entry.outs.wrapping_sub(1),
        }
    }

    /// Has the copy been out since it missed the write for which [`Snapshot::miss`] returned `outs`? It may
    /// be back by now: then that write is repaired.
    pub fn is_settled(&self, member: MemberId, outs: u32) -> bool {
        self.copies
            .get(member.0 as usize)
            .is_some_and(|entry| entry.outs != outs)
    }

    /// The copy misses a write of this key, if it is not written.
    pub fn miss_if_out(&mut self, member: MemberId, key: &[u8]) {
        if !self.state(member).is_written() {
            self.miss(member, key);
        }
    }

    /// Sets a state without a proposal.
    pub fn set(&mut self, member: MemberId, state: CopyState) {
        self.entry(member).set(state);
    }

    /// The member is gone: whatever it missed is settled, and nothing is left for the next member with this
    /// number.
    pub fn forget(&mut self, member: MemberId) {
        let entry = self.entry(member);
        *entry = CopyEntry {
            outs: entry.outs.wrapping_add(1),
            ..CopyEntry::default()
        };
    }
}
