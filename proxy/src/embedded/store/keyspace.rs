//! The keys of one protocol.

/// A protocol's keys, with the form in which their items are kept. All keyspaces share the store's memory. A
/// key of one is never found in another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Keyspace {
    /// memcached's keys.
    Memcache,
    /// Redis' keys.
    Redis,
}

/// The number of keyspaces.
pub(super) const KEYSPACES: usize = 2;

impl Keyspace {
    /// The keyspaces, in the order of their numbers.
    pub const ALL: [Self; KEYSPACES] = [Self::Memcache, Self::Redis];

    /// The bytes before an item's key.
    #[inline]
    pub(super) const fn word(self) -> &'static [u8] {
        match self {
            Self::Memcache => b"VALUE ",
            Self::Redis => b"",
        }
    }

    /// The bytes behind an item's value.
    #[inline]
    pub(super) const fn end(self) -> &'static [u8] {
        match self {
            Self::Memcache => b"\r\nEND\r\n",
            Self::Redis => b"\r\n",
        }
    }

    /// The first of its epochs. Its other ones follow in steps of [`KEYSPACES`], so that an item's epoch
    /// tells its keyspace.
    pub(super) const fn first_epoch(self) -> u32 {
        self as u32
    }

    /// The keyspace to which this epoch belongs.
    #[inline]
    pub(super) const fn of_epoch(epoch: u32) -> Self {
        match epoch % KEYSPACES as u32 {
            0 => Self::Memcache,
            _ => Self::Redis,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Keyspace, Limits, Meta, Store};

    fn store() -> Store {
        let limits = Limits {
            memory: 256 << 10,
            item: 1 << 10,
        };
        Store::new(limits, [1, 2, 3, 4])
    }

    fn set(store: &Store, keyspace: Keyspace, key: &[u8], value: &[u8]) {
        let mut entry = store.entry(keyspace, key, 0);
        entry.put(Meta::default(), value).expect("a value that fits");
    }

    fn get(store: &Store, keyspace: Keyspace, key: &[u8]) -> Option<Vec<u8>> {
        let entry = store.entry(keyspace, key, 0);
        entry.item().map(|item| item.reply().to_vec())
    }

    #[test]
    fn a_key_has_a_value_of_its_own_in_each_keyspace() {
        let store = store();
        set(&store, Keyspace::Memcache, b"k", b"one");
        assert_eq!(get(&store, Keyspace::Redis, b"k"), None);
        set(&store, Keyspace::Redis, b"k", b"other");
        assert_eq!(
            get(&store, Keyspace::Memcache, b"k").as_deref(),
            Some(&b"VALUE k 0 3\r\none\r\nEND\r\n"[..])
        );
        assert_eq!(
            get(&store, Keyspace::Redis, b"k").as_deref(),
            Some(&b"$5\r\nother\r\n"[..])
        );
        assert!(store.entry(Keyspace::Memcache, b"k", 0).remove());
        assert!(get(&store, Keyspace::Redis, b"k").is_some());
    }

    /// The epoch that tells flushed items has 18 bits, one of which tells the keyspace.
    #[test]
    fn a_flush_leaves_the_other_keyspace_however_often_it_comes() {
        let store = store();
        for number in 0..20_u8 {
            set(&store, Keyspace::Memcache, &[b'm', number], b"stays");
        }
        for turn in 0..1_u32 << 17 {
            set(&store, Keyspace::Redis, b"k", b"goes");
            if turn % 1_000 == 0 || turn > (1 << 17) - 4 {
                assert_eq!(store.totals(Keyspace::Redis, 0).items, 1);
            }
            store.flush(Keyspace::Redis, 0, 0);
            assert_eq!(get(&store, Keyspace::Redis, b"k"), None, "flush {turn}");
        }
        assert_eq!(store.totals(Keyspace::Memcache, 0).items, 20);
        for number in 0..20_u8 {
            assert!(get(&store, Keyspace::Memcache, &[b'm', number]).is_some());
        }
    }

    #[test]
    fn both_keyspaces_share_one_limit_of_memory() {
        let store = store();
        for number in 0..5_000_u32 {
            let keyspace = Keyspace::ALL[number as usize % 2];
            set(&store, keyspace, &number.to_le_bytes(), &[b'v'; 500]);
            let totals = Keyspace::ALL.map(|keyspace| store.totals(keyspace, 0));
            assert!(totals[0].bytes <= store.limits().memory as u64);
            assert!((totals[0].items + totals[1].items) * 500 <= store.limits().memory as u64);
        }
    }
}
