//! shard_split: hot shards have several copies, each under a name of its own, and each host uses one of them.
//! Child 0 leaves the key as it is; child `n` asks for copy `n`.

use std::{collections::HashMap, time::Duration};

use proxima_wire::{
    hash::{routing_key, shard},
    message::Class,
};

use super::{Insert, Place, Random};
use crate::{
    config::{
        routes::{self, Spec},
        schema::{Route, ShardCopies},
    },
    micros::Micros,
    route::{
        compile::{Build, CompileError, Maker},
        tree::{Fan, NodeId, Query},
    },
};

/// The copies of one shard.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::route) struct Split {
    /// The number of copies before the change, and after it.
    pub(in crate::route) copies: [usize; 2],
    /// The time since 1970 at which the number begins to change.
    pub(in crate::route) start: Micros,
    /// The time in which one host after the other takes the new number.
    pub(in crate::route) period: Duration,
    /// Do deletes go to all copies?
    pub(in crate::route) all_deletes: bool,
}

/// The route `shard_split`.
#[derive(Debug)]
pub(in crate::route) struct ShardSplit {
    /// The shards that are split.
    pub(in crate::route) splits: HashMap<Vec<u8>, Split>,
    /// A number that stays the same on this host.
    pub(in crate::route) host: u64,
}

/// Hosts are told apart by so many numbers while a number of copies changes.
const HOSTS: u64 = 1 << 14;
/// The longest key of which a copy can have a name.
const LONGEST: usize = 248;

impl Split {
    /// The number of copies for a host at this time.
    fn copies(&self, host: u64, unix: Micros) -> usize {
        let [old, new] = self.copies;
        let passed = match unix < self.start {
            true => return old,
            false => Duration::from(unix - self.start),
        };
        if passed >= self.period {
            return new;
        }
        let share = passed.as_secs_f64() / self.period.as_secs_f64();
        let place = (host % HOSTS) as f64 / HOSTS as f64;
        if place < share { new } else { old }
    }
}

impl ShardSplit {
    fn split(&self, key: &[u8]) -> Option<&Split> {
        let shard = shard(routing_key(key, true)).filter(|_| key.len() <= LONGEST)?;
        self.splits.get(&key[shard])
    }

    /// The two letters behind the shard of copy `number`, which is at least 1.
    pub(in crate::route) fn letters(number: usize) -> Vec<u8> {
        let offset = number.saturating_sub(1);
        let letter = |number: usize| b'a' + (number % 26) as u8;
        vec![letter(offset), letter(offset / 26)]
    }
}

impl Fan for ShardSplit {
    fn name(&self) -> &'static str {
        routes::ShardSplit::NAME
    }

    fn choose(&self, query: &Query<'_>, _: &mut Random, others: &mut Vec<u32>) -> usize {
        let Some(split) = self.split(query.key) else {
            return 0;
        };
        if query.class == Class::Delete && split.all_deletes {
            let most = split.copies.into_iter().max().unwrap_or(1);
            others.extend(1..most as u32);
            return 0;
        }
        let copies = split.copies(self.host, query.unix).max(1);
        (self.host % copies as u64) as usize
    }

    fn why(&self, query: &Query<'_>) -> String {
        match self.split(query.key) {
            Some(split) => format!(
                "this shard has {} copies for this host",
                split.copies(self.host, query.unix)
            ),
            None => "this key has no split shard".into(),
        }
    }
}

impl<'a> Build<'a, &'a Route> for routes::ShardSplit {
    fn build(&'a self, child: &'a Route, maker: &mut Maker<'_, 'a>) -> Result<NodeId, CompileError> {
        let child = maker.node(child)?;
        let most = self
            .splits
            .values()
            .map(|split| split.copies.max(split.before))
            .max();
        let mut children = vec![child];
        for copy in 1..most.unwrap_or(1) as usize {
            let insert = Insert {
                place: Place::Shard,
                text: ShardSplit::letters(copy),
                of: Self::NAME,
            };
            children.push(maker.wrap(insert, child));
        }
        let split = |split: &ShardCopies| Split {
            copies: [split.before as usize, split.copies as usize],
            start: Micros::secs(split.start),
            period: split.period,
            all_deletes: split.all_deletes,
        };
        let splits = self
            .splits
            .iter()
            .map(|(shard, copies)| (shard.clone().into_bytes(), split(copies)));
        let handle = ShardSplit {
            splits: splits.collect(),
            host: maker.host_number(""),
        };
        Ok(maker.fan(handle, children))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTLED: Split = Split {
        copies: [3, 3],
        start: Micros::ZERO,
        period: Duration::ZERO,
        all_deletes: true,
    };

    #[test]
    fn copies_have_the_names_that_mcrouter_gives_them() {
        for (number, letters) in [(1, "aa"), (2, "ba"), (26, "za"), (27, "ab"), (676, "zz")] {
            assert_eq!(ShardSplit::letters(number), letters.as_bytes(), "{number}");
        }
    }

    #[test]
    fn a_host_uses_its_copy_and_deletes_reach_all() {
        let alone = Split {
            all_deletes: false,
            ..SETTLED
        };
        let route = ShardSplit {
            splits: HashMap::from([(b"12".to_vec(), SETTLED), (b"x".to_vec(), alone)]),
            host: 7,
        };
        let long = format!("p:12:{}", "x".repeat(250));
        for (class, key, first, others) in [
            (Class::Read, "p:12:a", 1, &[][..]),
            (Class::Write, "p:12:a", 1, &[]),
            (Class::Read, "p:13:a", 0, &[]),
            (Class::Read, "p:12", 0, &[]),
            (Class::Delete, "p:12:a", 0, &[1, 2]),
            (Class::Delete, "p:x:a", 1, &[]),
            (Class::Delete, &long, 0, &[]),
        ] {
            let query = Query {
                class,
                key: key.as_bytes(),
                unix: Micros::secs(5),
                ..Query::example()
            };
            let mut found = Vec::new();
            let chosen = route.choose(&query, &mut Random(0), &mut found);
            assert_eq!((chosen, &found[..]), (first, others), "{class:?} {key}");
        }
    }

    #[test]
    fn hosts_take_a_new_number_of_copies_one_after_the_other() {
        let split = Split {
            copies: [1, 4],
            start: Micros::secs(1000),
            period: Duration::from_secs(100),
            all_deletes: true,
        };
        let changed = |secs| {
            let hosts = 0..HOSTS;
            hosts
                .filter(|&host| split.copies(host, Micros::secs(secs)) == 4)
                .count()
        };
        assert_eq!(changed(999), 0);
        assert_eq!(changed(1025), HOSTS as usize / 4);
        assert_eq!(changed(1100), HOSTS as usize);
    }
}
