//! Some item of a keyspace.

use super::{Item, Keyspace, Store};

impl Store {
    /// Shows some living item of the keyspace, which one by the number `random`. Returns false if the
    /// keyspace is empty.
    pub fn pick(&self, keyspace: Keyspace, random: u64, now: u64, show: &mut dyn FnMut(Item<'_>)) -> bool {
        let all = self.totals(keyspace, now).items;
        let mut skip = random.checked_rem(all).unwrap_or(0);
        let count = self.shards.len();
        let counts = (0..count).map(|number| self.shard(number).items(keyspace) as u64);
        // A shard is chosen as often as it has items.
        let first = counts.take_while(|&items| {
            let is_before = skip >= items;
            skip = skip.saturating_sub(items);
            is_before
        });
        let first = first.count();
        (first..first + count).any(|number| {
            let shard = self.shard(number);
            let item = shard.pick(keyspace, (random >> 32) as usize, now);
            item.map(&mut *show).is_some()
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::super::{Keyspace, Limits, Meta, Store};

    #[test]
    fn every_living_item_of_the_keyspace_is_picked_and_no_other() {
        let store = Store::new(Limits::default(), [1, 2, 3, 4]);
        let put = |keyspace, key: &str, expires| {
            let meta = Meta {
                expires,
                ..Meta::default()
            };
            let mut entry = store.entry(keyspace, key.as_bytes(), 0);
            entry.put(meta, b"v").expect("a value that fits");
        };
        let pick = |random: u64, now| {
            let mut picked = None;
            let is_one = store.pick(Keyspace::Redis, random, now, &mut |item| {
                picked = Some(item.key().to_vec())
            });
            assert_eq!(is_one, picked.is_some());
            picked
        };
        assert_eq!(pick(7, 0), None);
        for number in 0..20 {
            put(Keyspace::Redis, &format!("r{number}"), 0);
            put(Keyspace::Redis, &format!("gone{number}"), 5);
            put(Keyspace::Memcache, &format!("m{number}"), 0);
        }
        let step = |turn: u64| turn.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let picked: HashSet<_> = (0..2_000).filter_map(|turn| pick(step(turn), 10)).collect();
        assert_eq!(picked.len(), 20);
        assert!(picked.iter().all(|key| key.starts_with(b"r")));
    }
}
