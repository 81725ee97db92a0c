//! One lock's worth of the store: its entries, the fills that are under way, and who must go when the memory
//! is used up.
//!
//! **Eviction** goes from shard to shard, looks at [`SAMPLE`] entries of one, and takes the one that was not
//! used for the longest time, counted in operations of the shard and halved for each hit up to three, as the
//! embedded store does. Dead entries go first. Every eighth operation looks at one entry more, so that the
//! dead do not stay where nobody asks for them.

use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
    sync::{Arc, atomic::Ordering::Relaxed},
};

use proxima_wire::message::Reply;
use smallvec::SmallVec;

use super::{
    Answer, Gone, KeyHash, Question, Refusal, RuleUsage, Total,
    blocks::Blocks,
    entry::{Entry, Kept, MOST_FORMS},
    tally::Tally,
};
use crate::{
    micros::Micros,
    near::{Note, RuleSettings, Words},
};

/// Entries among which one eviction chooses.
const SAMPLE: usize = 16;
/// Operations for each entry that is looked at, whether it is dead.
const CRAWLS: u32 = 8;
/// There is room for one entry in so many more.
const SPARE: usize = 8;

pub(super) struct Shard {
    words: Arc<Words>,
    blocks: Arc<Blocks>,
    /// The place of each key's entry, by the key's hash. Two keys with one hash displace each other.
    index: HashMap<u64, u32, BuildHasherDefault<Hashed>>,
    entries: Vec<Option<Entry>>,
    /// Places without an entry.
    free: Vec<u32>,
    /// Fills that are under way, by identity: what they have noted, and their numbers.
    filling: HashMap<u64, (Note, u64), BuildHasherDefault<Hashed>>,
    serial: u64,
    /// Bytes of all entries.
    used: usize,
    /// What all shards take, and how many bytes of it are this one's.
    total: Arc<Total>,
    told: usize,
    tick: u32,
    /// The next place that eviction looks at.
    hand: usize,
    /// The next place at which a dead entry is looked for.
    crawl: usize,
    tally: Tally,
}

impl Shard {
    pub(super) fn new(words: Arc<Words>, blocks: Arc<Blocks>, total: Arc<Total>) -> Self {
        Self {
            words,
            blocks,
            index: HashMap::default(),
            entries: Vec::new(),
            free: Vec::new(),
            filling: HashMap::default(),
            serial: 0,
            used: 0,
            total,
            told: 0,
            tick: 0,
            hand: 0,
            crawl: 0,
            tally: Tally::default(),
        }
    }

    pub(super) fn keys(&self) -> u64 {
        self.index.len() as u64
    }

    /// What it keeps of the rule at this place, and what went.
    pub(super) fn usage_of(&self, slot: u16) -> RuleUsage {
        self.tally.get(slot)
    }

    /// Tells the bytes that it takes now, with what finds entries and room for more.
    fn tell(&mut self) {
        let spare = self.entries.capacity() - self.index.len();
        let tables = spare * size_of::<Option<Entry>>() + self.free.capacity() * size_of::<u32>();
        let now = self.used + tables;
        self.total.bytes.fetch_add(now.wrapping_sub(self.told), Relaxed);
        self.told = now;
    }

    pub(super) fn entries(&self) -> &[Option<Entry>] {
        &self.entries
    }

    pub(super) fn place_of(&self, hash: KeyHash, key: &[u8]) -> Option<u32> {
        let place = *self.index.get(&hash.0)?;
        let entry = self.entries.get(place as usize)?.as_ref()?;
        (*entry.key == *key).then_some(place)
    }

    pub(super) fn find(&mut self, hash: KeyHash, key: &[u8]) -> Option<&mut Entry> {
        let place = self.place_of(hash, key)?;
        self.entries.get_mut(place as usize)?.as_mut()
    }

    /// The kept reply to this question. The bytes of a small one are appended to `out`.
    #[inline]
    pub(super) fn look(
        &mut self,
        hash: KeyHash,
        question: &Question<'_>,
        settings: &RuleSettings,
        now: Micros,
        out: &mut Vec<u8>,
    ) -> Option<Answer> {
        self.tick = self.tick.wrapping_add(1);
        self.crawl(now);
        let (tick, number) = (self.tick, question.rule.number());
        let place = self.place_of(hash, question.key)?;
        let entry = self.entries.get_mut(place as usize)?.as_mut()?;
        let kept = entry
            .kept
            .iter_mut()
            .find(|kept| kept.answers(question, number))?;
        let bytes = kept.bytes.as_ref()?;
        let (age, fresh) = (now - kept.filled, kept.fresh(settings));
        let is_stale = age >= fresh;
        let may_be_stale = kept.may_be_stale() && age < fresh + settings.stale;
        if is_stale && !may_be_stale || !self.words.is_current(kept.everything) {
            return None;
        }
        kept.hits = kept.hits.saturating_add(1);
        entry.used = tick;
        entry.hits = entry.hits.saturating_add(1);
        let large = bytes.large().cloned();
        if large.is_none() {
            out.extend_from_slice(bytes);
        }
        Some(Answer {
            reply: kept.reply,
            age,
            is_stale,
            is_miss: kept.is_miss,
            bytes: large,
        })
    }

    /// The reply that may stand for an error: of any age that the rule allows.
    pub(super) fn look_on_error(
        &mut self,
        hash: KeyHash,
        question: &Question<'_>,
        settings: &RuleSettings,
        now: Micros,
    ) -> Option<(Reply, Arc<[u8]>)> {
        let words = Arc::clone(&self.words);
        let number = question.rule.number();
        let entry = self.find(hash, question.key)?;
        let kept = entry.kept.iter().find(|kept| kept.answers(question, number))?;
        let limit = kept.fresh(settings) + settings.stale_on_error;
        let is_fit = kept.may_be_stale() && now - kept.filled < limit && words.is_current(kept.everything);
        let bytes = kept.bytes.as_ref().filter(|_| is_fit)?;
        Some((kept.reply, bytes.share()))
    }

    /// Is the reply to this question known not to be kept?
    pub(super) fn is_unkept(
        &mut self,
        hash: KeyHash,
        question: &Question<'_>,
        settings: &RuleSettings,
        now: Micros,
    ) -> bool {
        let number = question.rule.number();
        let Some(entry) = self.find(hash, question.key) else {
            return false;
        };
        let kept = entry.kept.iter().find(|kept| kept.answers(question, number));
        kept.is_some_and(|kept| kept.bytes.is_none() && now - kept.filled < kept.fresh(settings))
    }

    /// Begins a fill, and returns its number. `None`: one is under way that has noted the same.
    pub(super) fn begin_fill(&mut self, identity: u64, note: Note) -> Option<u64> {
        if self
            .filling
            .get(&identity)
            .is_some_and(|(noted, _)| *noted == note)
        {
            return None;
        }
        self.serial += 1;
        self.filling.insert(identity, (note, self.serial));
        Some(self.serial)
    }

    /// Ends this fill; a later one of the same question goes on.
    pub(super) fn end_fill(&mut self, identity: u64, serial: u64) {
        if self
            .filling
            .get(&identity)
            .is_some_and(|&(_, number)| number == serial)
        {
            self.filling.remove(&identity);
        }
    }

    /// Keeps a reply in place of the one to the same question, if nothing has changed since the note.
    pub(super) fn insert(
        &mut self,
        hash: KeyHash,
        key: &[u8],
        mut kept: Kept,
        note: Note,
        now: Micros,
    ) -> Result<(), Refusal> {
        // Another key with this hash goes.
        let displaced = self.index.get(&hash.0).copied();
        let place = self.place_of(hash, key);
        if let (Some(other), None) = (displaced, place) {
            self.remove_at(other, Gone::Evicted);
        }
        if !self.words.admit(hash, note, place.is_none()) {
            self.tell();
            return Err(Refusal::Changed);
        }
        let place = place.unwrap_or_else(|| self.new_entry(hash, key));
        let Self { words, tally, .. } = self;
        if let Some(entry) = self.entries.get_mut(place as usize).and_then(Option::as_mut) {
            self.used -= entry.memory();
            let is_same = |old: &&Kept| old.number == kept.number && old.form == kept.form;
            // What is renewed was asked for all the while.
            kept.hits = entry.kept.iter().find(is_same).map_or(0, |old| old.hits);
            entry.kept.retain(|old| {
                let is_replaced = old.number == kept.number && (old.form == kept.form || old.is_error());
                let why = why_dead(old, words, now).filter(|_| !is_replaced);
                let goes = is_replaced || why.is_some();
                if goes {
                    tally.went(old, why);
                }
                !goes
            });
            if entry.kept.len() >= MOST_FORMS {
                tally.went(&entry.kept.remove(0), Some(Gone::Evicted));
            }
            tally.came(&kept);
            entry.kept.push(kept);
            self.used += entry.memory();
        }
        self.tell();
        Ok(())
    }

    fn new_entry(&mut self, hash: KeyHash, key: &[u8]) -> u32 {
        let entry = Entry {
            hash,
            key: self.blocks.copy(key),
            used: self.tick,
            hits: 0,
            kept: SmallVec::new(),
        };
        self.used += entry.memory();
        let place = self.free.pop().unwrap_or_else(|| {
            let count = self.entries.len();
            if count == self.entries.capacity() {
                self.entries.reserve_exact(count / SPARE + 1);
            }
            self.entries.push(None);
            count as u32
        });
        if let Some(free) = self.entries.get_mut(place as usize) {
            *free = Some(entry);
        }
        self.index.insert(hash.0, place);
        place
    }

    /// Removes a key that a request changes.
    pub(super) fn remove_changed(&mut self, hash: KeyHash, key: &[u8]) {
        if let Some(place) = self.place_of(hash, key) {
            self.remove_at(place, Gone::Changed);
            self.tell();
        }
    }

    fn remove_at(&mut self, place: u32, why: Gone) {
        let Some(entry) = self.entries.get_mut(place as usize).and_then(Option::take) else {
            return;
        };
        for kept in &entry.kept {
            self.tally.went(kept, Some(why));
        }
        let memory = entry.memory();
        self.used -= memory;
        self.total.freed.fetch_add(memory, Relaxed);
        self.index.remove(&entry.hash.0);
        self.free.push(place);
        self.words.discount(entry.hash);
    }

    /// Removes what of this entry `goes` names with a reason, and the entry if nothing is left. Returns how
    /// many replies went.
    pub(super) fn thin(&mut self, place: usize, goes: &mut dyn FnMut(&[u8], &Kept) -> Option<Gone>) -> usize {
        let Some(entry) = self.entries.get_mut(place).and_then(Option::as_mut) else {
            return 0;
        };
        let memory = entry.memory();
        let before = entry.kept.len();
        let (Entry { key, kept, .. }, tally) = (&mut *entry, &mut self.tally);
        kept.retain(|kept| {
            let why = goes(key, kept);
            if why.is_some() {
                tally.went(kept, why);
            }
            why.is_none()
        });
        let gone = before - kept.len();
        if gone == 0 {
            return 0;
        }
        self.used = self.used + entry.memory() - memory;
        if entry.kept.is_empty() {
            // None of its replies is left that could be counted with this reason.
            self.remove_at(place as u32, Gone::Dropped);
        }
        self.shrink();
        self.tell();
        gone
    }

    /// Looks whether the next entry is dead, once in a few operations.
    #[inline]
    fn crawl(&mut self, now: Micros) {
        if !self.tick.is_multiple_of(CRAWLS) {
            return;
        }
        if self.crawl >= self.entries.len() {
            self.crawl = 0;
        }
        self.bury(self.crawl, now);
        self.crawl += 1;
    }

    /// Removes the dead of this entry.
    pub(super) fn bury(&mut self, place: usize, now: Micros) {
        let entry = self.entries.get(place).and_then(Option::as_ref);
        let is_dead = |kept: &Kept| why_dead(kept, &self.words, now).is_some();
        if !entry.is_some_and(|entry| entry.kept.iter().any(is_dead)) {
            return;
        }
        let words = Arc::clone(&self.words);
        self.thin(place, &mut |_, kept| why_dead(kept, &words, now));
    }

    /// Evicts one entry, if there is any.
    pub(super) fn evict(&mut self, now: Micros) {
        if let Some(place) = self.victim(now) {
            self.remove_at(place, Gone::Evicted);
        }
        self.shrink();
        self.tell();
    }

    /// Frees what finds entries, where there are none.
    fn shrink(&mut self) {
        if self.index.is_empty() {
            (self.entries, self.free) = (Vec::new(), Vec::new());
        }
    }

    fn victim(&mut self, now: Micros) -> Option<u32> {
        let (mut best, mut seen) = (None, 0);
        for _ in 0..self.entries.len() {
            self.hand = (self.hand + 1) % self.entries.len();
            let Some(entry) = &self.entries[self.hand] else {
                continue;
            };
            if entry
                .kept
                .iter()
                .all(|kept| why_dead(kept, &self.words, now).is_some())
            {
                return Some(self.hand as u32);
            }
            let age = self.tick.wrapping_sub(entry.used) >> entry.hits.min(3);
            if best.is_none_or(|(oldest, _)| age > oldest) {
                best = Some((age, self.hand as u32));
            }
            seen += 1;
            if seen == SAMPLE {
                break;
            }
        }
        best.map(|(_, place)| place)
    }
}

/// Why this reply is of no use to anybody any more. `None`: it still is.
fn why_dead(kept: &Kept, words: &Words, now: Micros) -> Option<Gone> {
    match kept.why_dead(now) {
        None if !words.is_current(kept.everything) => Some(Gone::Flushed),
        why => why,
    }
}

/// The hash of what is hashed already.
#[derive(Default)]
pub(super) struct Hashed(u64);

impl Hasher for Hashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(byte);
        }
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}
