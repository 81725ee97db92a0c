//! Visits many entries, for operators. Each step locks one shard for a slice of its entries.

use super::{Question, RemovalReason, Store, entry::Entry, shard::Shard, slab_index::SlabIndex};
use crate::{
    micros::Micros,
    near::{Near, Rule},
};

/// Entries that are looked at while a shard is locked.
const SLICE: usize = 512;

/// Looks at all entries of a near cache.
pub struct Entries<'a>(pub &'a Near);

/// A kept reply, as an operator sees it.
#[derive(Clone, Debug)]
pub struct EntryReport {
    /// The rule's name.
    pub rule: Box<str>,
    /// Bytes of the reply. `None`: it is known not to be kept.
    pub bytes: Option<usize>,
    /// The time since it was kept.
    pub age: Micros,
    /// The times that it was an answer.
    pub hits: u32,
}

/// A key that was asked for often.
#[derive(Clone, Debug)]
pub struct HotKey {
    /// The key.
    pub key: Box<[u8]>,
    /// Its reply.
    pub shown: EntryReport,
}

impl Store {
    /// Frees the free blocks.
    fn clear_blocks(&self) {
        for line in &self.shards {
            line.0.lock().clear_blocks();
        }
    }

    /// Calls `step` with each index of each shard.
    fn each(&self, mut step: impl FnMut(&mut Shard, usize)) {
        for line in &self.shards {
            let mut begin = 0;
            loop {
                let mut shard = line.0.lock();
                let end = shard.table().end().min(begin + SLICE);
                if begin >= end {
                    break;
                }
                for index in begin..end {
                    step(&mut shard, index);
                }
                begin = end;
            }
        }
    }
}

fn show(entry: &Entry, now: Micros) -> EntryReport {
    EntryReport {
        rule: entry.rule.name.clone(),
        bytes: (!entry.is_unkept()).then(|| entry.len()),
        age: now - entry.filled,
        hits: entry.hits,
    }
}

impl Entries<'_> {
    /// Frees dead replies, replies above the limit, and free blocks.
    pub fn sweep(&self, now: Micros) {
        self.0.store.each(|shard, index| shard.bury(index, now));
        self.0.store.make_room(0, now);
        self.0.store.clear_blocks();
    }

    /// Drops the key in this rule, or in all of them. Returns how many replies went. Fills that are under way
    /// are not kept.
    pub fn drop_key(&self, rule: Option<&Rule>, key: &[u8]) -> usize {
        let hash = self.0.store.hash(key);
        self.0.words.begin(hash);
        let mut shard = self.0.store.shard(hash);
        let gone = shard.remove_of(hash, key, |entry| {
            is_of(entry, rule).then_some(RemovalReason::Dropped)
        });
        self.0.words.end(hash.word() as u16);
        gone
    }

    /// Drops all keys of this rule that begin with these bytes. Returns how many replies went. No fill of the
    /// rule that is under way is kept.
    pub fn drop_prefix(&self, rule: &Rule, prefix: &[u8]) -> usize {
        self.drop_those(rule, |entry| entry.record.key().starts_with(prefix))
    }

    /// Drops what this rule would not keep by its present settings, and forgets which replies were too large.
    /// Returns how many replies went.
    pub fn drop_unfit(&self, rule: &Rule) -> usize {
        let largest = rule.settings().largest;
        let is_fit = |entry: &Entry| !entry.is_unkept() && entry.len() as u64 <= largest;
        self.drop_those(rule, |entry| !is_fit(entry))
    }

    fn drop_those(&self, rule: &Rule, is_meant: impl Fn(&Entry) -> bool) -> usize {
        rule.begin_drop();
        let mut gone = 0;
        self.0.store.each(|shard, index| {
            gone += usize::from(shard.remove_if(index, |_, entry| {
                (is_of(entry, Some(rule)) && is_meant(entry)).then_some(RemovalReason::Dropped)
            }));
        });
        gone
    }

    /// Is a change of this key under way?
    pub fn is_changing(&self, key: &[u8]) -> bool {
        self.0.words.note(self.0.store.hash(key)).is_none()
    }

    /// The kept reply to this question, or what is known of it.
    pub fn of(&self, question: &Question<'_>, now: Micros) -> Option<EntryReport> {
        let hash = self.0.store.hash(question.key);
        let shard = self.0.store.shard(hash);
        let entry = shard.find(hash, question)?;
        entry.why_dead(now).is_none().then(|| show(entry, now))
    }

    /// The replies that are kept for this key.
    pub fn of_key(&self, key: &[u8], now: Micros) -> Vec<EntryReport> {
        let hash = self.0.store.hash(key);
        let shard = self.0.store.shard(hash);
        let is_alive =
            |entry: &&Entry| self.0.words.is_current(entry.everything) && entry.why_dead(now).is_none();
        let entries = shard.table().of_key(hash, key).map(|(_, entry)| entry);
        entries.filter(is_alive).map(|entry| show(entry, now)).collect()
    }

    /// The replies of this rule, or of all of them, that were answers most often.
    pub fn top(&self, rule: Option<&Rule>, count: usize, now: Micros) -> Vec<HotKey> {
        let mut top: Vec<HotKey> = Vec::new();
        self.0.store.each(|shard, index| {
            let entry = SlabIndex::new(index).and_then(|place| shard.table().get(place));
            let Some(entry) = entry.filter(|entry| is_of(entry, rule)) else {
                return;
            };
            let least = top.last().map_or(0, |hot| hot.shown.hits);
            if entry.hits > 0 && (top.len() < count || entry.hits > least) {
                let at = top.partition_point(|hot| hot.shown.hits >= entry.hits);
                let key = entry.record.key().into();
                let shown = show(entry, now);
                top.insert(at, HotKey { key, shown });
                top.truncate(count);
            }
        });
        top
    }
}

fn is_of(entry: &Entry, rule: Option<&Rule>) -> bool {
    !entry.is_vacant() && rule.is_none_or(|rule| entry.number == rule.number())
}
