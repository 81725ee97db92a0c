//! The entries of several keys whose shards are all locked: a decision about all of them is one step.

use parking_lot::MutexGuard;

use super::{Entry, Keyspace, Store, shard::Shard, table::Hash};

/// Locked shards. A thread that holds some asks for no others: shards are locked in their order, so that no
/// two threads wait for each other.
pub struct Several<'s> {
    store: &'s Store,
    keyspace: Keyspace,
    now: u64,
    /// The shards in their order. `None`: an entry has it.
    shards: Vec<(usize, Option<MutexGuard<'s, Shard>>)>,
}

impl Store {
    /// Locks the shards of these keys.
    pub fn several<'k>(
        &self,
        keyspace: Keyspace,
        keys: impl Iterator<Item = &'k [u8]>,
        now: u64,
    ) -> Several<'_> {
        let mut numbers: Vec<_> = keys.map(|key| self.number(self.hash(key))).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let shards = numbers
            .into_iter()
            .map(|number| (number, Some(self.shard(number))));
        Several {
            store: self,
            keyspace,
            now,
            shards: shards.collect(),
        }
    }

    fn number(&self, hash: Hash) -> usize {
        hash.shard() & (self.shards.len() - 1)
    }
}

impl<'s> Several<'s> {
    /// Lets `act` use the entry of one of the keys. `None`: its shard is not among the locked ones.
    pub fn entry<'k, T>(&mut self, key: &'k [u8], act: impl FnOnce(&mut Entry<'s, 'k>) -> T) -> Option<T> {
        let hash = self.store.hash(key);
        let number = self.store.number(hash);
        let at = self.shards.binary_search_by_key(&number, |(shard, _)| *shard);
        let place = &mut self.shards.get_mut(at.ok()?)?.1;
        let mut entry = self
            .store
            .entry_in(place.take()?, self.keyspace, (hash, key), self.now);
        let result = act(&mut entry);
        *place = Some(entry.shard);
        Some(result)
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::super::{Keyspace, Limits, Meta, Store};

    #[test]
    fn threads_that_lock_several_keys_neither_wait_for_ever_nor_see_half_a_change() {
        let store = Store::new(Limits::default(), [1, 2, 3, 4]);
        let keys: Vec<String> = (0..8).map(|number| format!("key{number}")).collect();
        thread::scope(|scope| {
            for number in 0..4_u8 {
                let (store, keys) = (&store, &keys);
                scope.spawn(move || {
                    for turn in 0..2_000_u32 {
                        let mut own: Vec<&[u8]> = keys.iter().map(|key| key.as_bytes()).collect();
                        own.rotate_left((turn as usize + usize::from(number)) % 8);
                        let mut all = store.several(Keyspace::Redis, own.iter().copied(), 0);
                        let values = own.iter().map(|key| {
                            all.entry(key, |entry| entry.item().map(|item| item.value().to_vec()))
                                .expect("a locked shard")
                        });
                        let values: Vec<_> = values.collect();
                        assert!(values.windows(2).all(|pair| pair[0] == pair[1]));
                        for key in &own {
                            let value = [number, turn as u8];
                            all.entry(key, |entry| entry.put(Meta::default(), &value).is_ok());
                        }
                    }
                });
            }
        });
    }

    #[test]
    fn a_key_of_another_shard_has_no_entry() {
        let store = Store::new(Limits::default(), [1, 2, 3, 4]);
        let mut one = store.several(Keyspace::Redis, [&b"key"[..]].into_iter(), 0);
        assert!(one.entry(b"key", |_| ()).is_some());
        let others = (0..100_u8).filter(|&number| one.entry(&[number], |_| ()).is_none());
        assert!(others.count() > 50);
    }
}
