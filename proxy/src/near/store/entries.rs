//! Looks at many entries, for operators. Each step locks one shard for a slice of its entries.

use super::{Gone, Question, Store, bytes::Bytes, entry::Kept, shard::Shard};
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
pub struct Shown {
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
pub struct Hot {
    /// The key.
    pub key: Box<[u8]>,
    /// Its reply.
    pub shown: Shown,
}

impl Store {
    /// Calls `step` with each place of each shard.
    fn each(&self, mut step: impl FnMut(&mut Shard, usize)) {
        for line in &self.shards {
            let mut place = 0;
            loop {
                let mut shard = line.0.lock();
                let end = shard.entries().len().min(place + SLICE);
                if place >= end {
                    break;
                }
                for place in place..end {
                    step(&mut shard, place);
                }
                place = end;
            }
        }
    }
}

fn show(kept: &Kept, now: Micros) -> Shown {
    Shown {
        rule: kept.rule.name.clone(),
        bytes: kept.bytes.as_ref().map(|bytes| bytes.len()),
        age: now - kept.filled,
        hits: kept.hits,
    }
}

impl Entries<'_> {
    /// Frees what is dead, what is above the limit, and what waits to be used again.
    pub fn sweep(&self, now: Micros) {
        self.0.store.each(|shard, place| shard.bury(place, now));
        self.0.store.make_room(0, now);
        self.0.store.blocks.clear();
    }

    /// Drops the key in this rule, or in all of them. Returns how many replies went. Fills that are under way
    /// are not kept.
    pub fn drop_key(&self, rule: Option<&Rule>, key: &[u8]) -> usize {
        let hash = self.0.store.hash(key);
        self.0.words.begin(hash);
        let mut shard = self.0.store.shard(hash);
        let gone = shard.place_of(hash, key).map_or(0, |place| {
            shard.thin(place as usize, &mut |_, kept| {
                is_of(kept, rule).then_some(Gone::Dropped)
            })
        });
        self.0.words.end(hash.word() as u16);
        gone
    }

    /// Drops all keys of this rule that begin with these bytes. Returns how many replies went. No fill of the
    /// rule that is under way is kept.
    pub fn drop_prefix(&self, rule: &Rule, prefix: &[u8]) -> usize {
        self.drop_those(rule, |key, _| key.starts_with(prefix))
    }

    /// Drops what this rule would not keep by its present settings, and forgets which replies were too large.
    /// Returns how many replies went.
    pub fn drop_unfit(&self, rule: &Rule) -> usize {
        let largest = rule.settings().largest;
        let is_fit = |bytes: &Bytes| bytes.len() as u64 <= largest;
        self.drop_those(rule, |_, kept| !kept.bytes.as_ref().is_some_and(is_fit))
    }

    fn drop_those(&self, rule: &Rule, is_meant: impl Fn(&[u8], &Kept) -> bool) -> usize {
        rule.begin_drop();
        let mut gone = 0;
        self.0.store.each(|shard, place| {
            gone += shard.thin(place, &mut |key, kept| {
                (is_of(kept, Some(rule)) && is_meant(key, kept)).then_some(Gone::Dropped)
            });
        });
        gone
    }

    /// Is a change of this key under way?
    pub fn is_changing(&self, key: &[u8]) -> bool {
        self.0.words.note(self.0.store.hash(key)).is_none()
    }

    /// The kept reply to this question, or what is known of it.
    pub fn of(&self, question: &Question<'_>, now: Micros) -> Option<Shown> {
        let hash = self.0.store.hash(question.key);
        let mut shard = self.0.store.shard(hash);
        let number = question.rule.number();
        let kept = shard.find(hash, question.key)?.kept.iter();
        let mut its = kept.filter(|kept| kept.answers(question, number));
        let kept =
            its.find(|kept| self.0.words.is_current(kept.everything) && kept.why_dead(now).is_none())?;
        Some(show(kept, now))
    }

    /// The replies that are kept for this key.
    pub fn of_key(&self, key: &[u8], now: Micros) -> Vec<Shown> {
        let hash = self.0.store.hash(key);
        let mut shard = self.0.store.shard(hash);
        let entry = shard.find(hash, key);
        let is_current =
            |kept: &&Kept| self.0.words.is_current(kept.everything) && kept.why_dead(now).is_none();
        entry.map_or(Vec::new(), |entry| {
            let kept = entry.kept.iter().filter(is_current);
            kept.map(|kept| show(kept, now)).collect()
        })
    }

    /// The replies of this rule, or of all of them, that were answers most often.
    pub fn top(&self, rule: Option<&Rule>, count: usize, now: Micros) -> Vec<Hot> {
        let mut top: Vec<Hot> = Vec::new();
        self.0.store.each(|shard, place| {
            let Some(entry) = shard.entries().get(place).and_then(Option::as_ref) else {
                return;
            };
            for kept in entry.kept.iter().filter(|kept| is_of(kept, rule)) {
                let least = top.last().map_or(0, |hot| hot.shown.hits);
                if kept.hits > 0 && (top.len() < count || kept.hits > least) {
                    let at = top.partition_point(|hot| hot.shown.hits >= kept.hits);
                    top.insert(
                        at,
                        Hot {
                            key: (*entry.key).into(),
                            shown: show(kept, now),
                        },
                    );
                    top.truncate(count);
                }
            }
        });
        top
    }
}

fn is_of(kept: &Kept, rule: Option<&Rule>) -> bool {
    rule.is_none_or(|rule| kept.number == rule.number())
}
