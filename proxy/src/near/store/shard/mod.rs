//! One lock's worth of the store: its entries, the fills under way, and the choice of replies to evict when
//! the memory is used up.
//!
//! A key that is changed leaves a **vacant** entry in the place of its only reply: no question finds it, and
//! the next reply to the same question is written into it.

mod evict;
mod remove;
#[cfg(test)]
mod tests;

use std::{
    collections::HashMap,
    sync::{Arc, atomic::Ordering::Relaxed},
};

use proxima_wire::message::Reply;

use self::evict::why_dead;
use super::{
    Answer, KeyHash, Question, Refusal, RemovalReason, RuleUsage, Total,
    blocks::{Blocks, FreeBlockBudget},
    candidate::Candidate,
    entry::Entry,
    ghosts::Ghosts,
    priority::Priority,
    queue::Queues,
    slab_index::SlabIndex,
    table::Table,
    tally::Tally,
};
use crate::{
    micros::Micros,
    near::{BuildKeyHasher, Note, Words},
};

/// The most replies that are kept for one key. A form is chosen by the client: without a limit, one key could
/// have any number.
const MOST_FORMS: usize = 64;
/// Operations for each entry that is looked at, whether it is dead.
const CRAWLS: u32 = 16;
/// Replies that went in a row without having been asked for again, after which new ones are turned away.
/// Where a tenth of the requests are hits, that comes to pass once in 10¹² replies.
const UNASKED: u32 = 256;

pub(super) struct Shard {
    words: Arc<Words>,
    table: Table,
    queues: Queues,
    /// Vacant entries. Invariant: each is the only one of its key, and its word does not count it.
    vacant: usize,
    ghosts: Ghosts,
    /// Replies that went in a row without having been asked for again.
    unasked: u32,
    blocks: Blocks,
    /// Fills that are under way, by identity.
    filling: HashMap<u64, Filling, BuildKeyHasher>,
    serial: u64,
    /// The memory of all shards, and this shard's bytes of it.
    total: Arc<Total>,
    told: usize,
    tick: u32,
    /// The index at which a dead entry is looked for next.
    crawl: usize,
    tally: Tally,
}

/// A fill that is under way.
#[derive(Clone, Copy)]
struct Filling {
    note: Note,
    serial: u64,
    /// Others have asked for the same meanwhile.
    is_wanted: bool,
}

/// The result of a lookup in a shard.
pub(super) enum ShardLookup {
    Answer(Answer),
    /// The reply is known not to be kept.
    Unkept,
    Nothing,
}

impl Shard {
    pub(super) fn new(words: Arc<Words>, share: Arc<FreeBlockBudget>, total: Arc<Total>) -> Self {
        Self {
            words,
            table: Table::default(),
            queues: Queues::default(),
            vacant: 0,
            ghosts: Ghosts::default(),
            unasked: 0,
            blocks: Blocks::new(share),
            filling: HashMap::default(),
            serial: 0,
            total,
            told: 0,
            tick: 0,
            crawl: 0,
            tally: Tally::default(),
        }
    }

    pub(super) const fn table(&self) -> &Table {
        &self.table
    }

    /// The number of keys that have replies.
    pub(super) fn keys(&self) -> usize {
        self.table.keys() - self.vacant
    }

    /// The replies that it keeps of the rule at this place, and those that went.
    pub(super) fn usage_of(&self, slot: u16) -> RuleUsage {
        self.tally.get(slot)
    }

    /// Bytes of its entries with what finds them, as they were last told.
    pub(super) const fn told(&self) -> usize {
        self.told
    }

    /// Bytes of its entries with what finds them.
    fn memory(&self) -> usize {
        self.queues.bytes() + self.table.memory() + self.ghosts.memory()
    }

    /// Reports the bytes that it takes now. What goes and comes in between costs no access to memory that
    /// others write.
    pub(super) fn tell(&mut self) {
        self.blocks.tell();
        let now = self.memory();
        if now != self.told {
            self.total.bytes.fetch_add(now.wrapping_sub(self.told), Relaxed);
            self.told = now;
        }
    }

    /// The kept reply to this question. The bytes of a small one are appended to `out`.
    #[inline]
    pub(super) fn look(
        &mut self,
        hash: KeyHash,
        question: &Question<'_>,
        now: Micros,
        out: &mut Vec<u8>,
    ) -> ShardLookup {
        self.tick = self.tick.wrapping_add(1);
        if self.tick.is_multiple_of(CRAWLS) {
            self.crawl(now);
        }
        let number = question.rule.number();
        let mut at = self.table.first(hash, question.key);
        while let Some(entry) = at.and_then(|at| self.table.get_mut(at)) {
            if !entry.answers(question, number) {
                at = entry.next;
                continue;
            }
            let settings = question.rule.settings();
            let (age, fresh) = (now - entry.filled, entry.fresh(&settings));
            let is_stale = age >= fresh;
            if entry.is_unkept() {
                return if is_stale {
                    ShardLookup::Nothing
                } else {
                    ShardLookup::Unkept
                };
            }
            let may_be_stale = || entry.may_be_stale() && age < fresh + settings.stale;
            if is_stale && !may_be_stale() || !self.words.is_current(entry.everything) {
                return ShardLookup::Nothing;
            }
            self.unasked = 0;
            entry.hits = entry.hits.saturating_add(1);
            entry.priority.hit();
            let large = entry.large().cloned();
            if large.is_none() {
                out.extend_from_slice(entry.record.reply());
            }
            return ShardLookup::Answer(Answer {
                reply: entry.reply,
                age,
                is_stale,
                is_miss: entry.is_miss(),
                bytes: large,
            });
        }
        ShardLookup::Nothing
    }

    /// The kept reply to this question, whatever its age.
    pub(super) fn find(&self, hash: KeyHash, question: &Question<'_>) -> Option<&Entry> {
        let number = question.rule.number();
        let mut own = self.table.of_key(hash, question.key);
        let (_, entry) = own.find(|(_, entry)| entry.answers(question, number))?;
        self.words.is_current(entry.everything).then_some(entry)
    }

    /// The reply that may stand for an error: of any age that the rule allows.
    pub(super) fn look_on_error(
        &self,
        hash: KeyHash,
        question: &Question<'_>,
        now: Micros,
    ) -> Option<(Reply, Arc<[u8]>)> {
        let settings = question.rule.settings();
        let entry = self.find(hash, question)?;
        let limit = entry.fresh(&settings) + settings.stale_on_error;
        let is_fit = entry.may_be_stale() && !entry.is_unkept() && now - entry.filled < limit;
        is_fit.then(|| (entry.reply, entry.share()))
    }

    /// Begins a fill, and returns its number. `None`: one is under way that has noted the same.
    pub(super) fn begin_fill(&mut self, identity: u64, note: Note) -> Option<u64> {
        let serial = self.serial + 1;
        let own = Filling {
            note,
            serial,
            is_wanted: false,
        };
        match self.filling.insert(identity, own) {
            Some(other) if other.note == note => {
                let is_wanted = true;
                self.filling.insert(identity, Filling { is_wanted, ..other });
                return None;
            }
            _ => self.serial = serial,
        }
        Some(serial)
    }

    /// Ends this fill; a later one of the same question goes on.
    pub(super) fn end_fill(&mut self, identity: u64, serial: u64) {
        if let Some(later) = self.filling.remove(&identity).filter(|of| of.serial != serial) {
            self.filling.insert(identity, later);
        }
    }

    /// Is the reply to this fill turned away, because another one would have to go for it? It is turned away
    /// while nobody asks again for any kept reply, unless other requests wait for it. Its key is remembered:
    /// the reply to the next question is kept.
    pub(super) fn turns_away(&mut self, hash: KeyHash, identity: u64) -> bool {
        self.unasked >= UNASKED
            && self.filling.get(&identity).is_none_or(|fill| !fill.is_wanted)
            && self.turns_away_key(hash)
    }

    /// Would the reply to this question be turned away, so that it need not be fetched for others? Its key is
    /// remembered: who asks next fetches it for all. `identity` is called if fills are under way. `is_full`:
    /// that many bytes of this shard have no room, if all shards take as many.
    #[inline]
    pub(super) fn turns_away_early(
        &mut self,
        hash: KeyHash,
        identity: impl FnOnce() -> u64,
        is_full: impl FnOnce(usize) -> bool,
    ) -> bool {
        self.unasked >= UNASKED
            && is_full(self.told / self.table.keys().max(1) * (1 + self.filling.len()))
            && (self.filling.is_empty() || !self.filling.contains_key(&identity()))
            && self.turns_away_key(hash)
    }

    fn turns_away_key(&mut self, hash: KeyHash) -> bool {
        let is_away = self.table.first_with(hash).is_none() && !self.ghosts.has(hash);
        if is_away {
            self.ghosts.add(hash, self.table.end());
        }
        is_away
    }

    /// Keeps a reply in place of the one to the same question, if nothing has changed since the note.
    pub(super) fn insert(
        &mut self,
        hash: KeyHash,
        candidate: Candidate<'_>,
        note: Note,
    ) -> Result<(), Refusal> {
        let mut first = self.table.first(hash, candidate.question.key);
        if let Some(place) = first
            && let Some(entry) = self.table.get(place).filter(|entry| entry.is_vacant())
        {
            if candidate.fits(entry) {
                return self.revive(place, candidate, note);
            }
            self.remove(place, None);
            first = None;
        }
        if first.is_none() {
            // Another key with this hash goes.
            self.remove_chain(self.table.first_with(hash), RemovalReason::Evicted);
        }
        let Some(place) = self.table.vacant() else {
            self.tell();
            return Err(Refusal::TooLarge);
        };
        if !self.words.admit(hash, note, first.is_none()) {
            self.tell();
            return Err(Refusal::Changed);
        }
        let now = candidate.now;
        let block = self.blocks.take(candidate.block());
        let mut entry = candidate.entry(hash, block, note);
        let renewed = self
            .table
            .chain(first)
            .map(|(_, old)| old)
            .find(|old| entry.is_to_same_question(old));
        match renewed.map(|old| (old.hits, old.priority)) {
            // What is renewed was asked for all the while.
            Some(priority) => (entry.hits, entry.priority) = priority,
            None if self.ghosts.take(hash) => {
                entry.priority = Priority::in_main(0);
                self.unasked = 0;
            }
            None => {}
        }
        self.tally.came(&entry);
        let before = self.table.memory();
        self.table.insert(place, entry);
        if self.table.memory() != before {
            // The table's memory from before it grew is free, in the heap of the worker that has grown it
            // last.
            self.total.freed.fetch_add(before, Relaxed);
        }
        self.queues.push(&mut self.table, place);
        self.remove_replaced(place, now);
        self.tell();
        Ok(())
    }

    /// Keeps a reply in a vacant entry, whose memory it fits, if nothing has changed since the note.
    fn revive(&mut self, place: SlabIndex, candidate: Candidate<'_>, note: Note) -> Result<(), Refusal> {
        let entry = self.table.get_mut(place);
        let entry = entry.filter(|entry| self.words.admit(entry.hash, note, true));
        let kept = entry.map(|entry| {
            candidate.revive(entry, note);
            self.tally.came(entry);
            self.vacant -= 1;
            self.unasked = 0;
        });
        // Others may have made room for it.
        self.tell();
        kept.ok_or(Refusal::Changed)
    }

    /// Removes what this reply, which is the first of its key, replaces, with those that are dead.
    fn remove_replaced(&mut self, first: SlabIndex, now: Micros) {
        let Some(entry) = self.table.get(first) else {
            return;
        };
        let (mut count, mut at) = (1, entry.next);
        while let Some((place, old)) = at.and_then(|at| Some((at, self.table.get(at)?))) {
            at = old.next;
            let is_replaced = self.table.get(first).is_some_and(|entry| entry.replaces(old));
            let why = match why_dead(old, &self.words, now) {
                None if count >= MOST_FORMS => Some(RemovalReason::Evicted),
                why => why,
            };
            match (is_replaced, why) {
                (true, _) => self.remove(place, None),
                (false, Some(_)) => self.remove(place, why),
                (false, None) => count += 1,
            }
        }
    }

    /// Begins to load what keeping a reply of this key will read.
    pub(super) fn preload_insert(&self, hash: KeyHash) {
        self.table.preload_slot(hash);
        self.ghosts.preload(hash);
    }
}
