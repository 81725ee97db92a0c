//! The store's promises: memory, time, eviction, threads.

use std::{
    collections::HashMap,
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use proptest::{collection::vec, prelude::*};

use super::{Counter, Item, Keyspace, Limits, Marks, Meta, Miss, Prefetch, Store, Walk};

const SEED: [u64; 4] = [1, 2, 3, 4];
const MIB: usize = 1 << 20;

fn store(memory: usize) -> Store {
    Store::new(
        Limits {
            memory,
            ..Limits::default()
        },
        SEED,
    )
}

fn set(store: &Store, key: &str, value: &[u8], expires: u64, now: u64) {
    let meta = Meta {
        expires,
        ..Meta::default()
    };
    store
        .entry(Keyspace::Memcache, key.as_bytes(), now)
        .put(meta, value)
        .expect("a value that fits");
}

fn get(store: &Store, key: &str, now: u64) -> Option<Vec<u8>> {
    store
        .entry(Keyspace::Memcache, key.as_bytes(), now)
        .read()
        .map(|item| item.value().to_vec())
}

/// Pseudo-random numbers, the same at each run (xorshift).
fn numbers(mut state: u64) -> impl FnMut() -> u64 {
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    }
}

#[test]
fn an_item_says_what_was_stored() {
    let store = store(MIB);
    let meta = Meta {
        flags: 7,
        expires: 5_000,
        marks: Marks::STALE,
        cas: Some(99),
    };
    store
        .entry(Keyspace::Memcache, b"key", 1_000)
        .put(meta, b"value")
        .expect("a value that fits");
    let mut entry = store.entry(Keyspace::Memcache, b"key", 3_000);
    let item = entry.item().expect("an item");
    assert_eq!(
        (item.key(), item.value(), item.flags()),
        (&b"key"[..], &b"value"[..], 7)
    );
    assert_eq!(
        (item.cas(), item.expires(), item.seen(), item.marks()),
        (99, 5_000, 1, Marks::STALE)
    );
    assert_eq!(item.reply(), b"VALUE key 7 5\r\nvalue\r\nEND\r\n");
    assert_eq!(&item.reply()[item.line_length()..], b"value\r\nEND\r\n");
    let item = entry.read().expect("an item");
    assert_eq!(
        (item.seen(), item.marks()),
        (3, Marks::STALE.with(Marks::FETCHED))
    );
}

#[test]
fn time_is_the_callers() {
    let store = store(MIB);
    set(&store, "short", b"1", 1_000, 0);
    set(&store, "long", b"1", 10_000, 0);
    set(&store, "ever", b"1", 0, 0);
    assert!(get(&store, "short", 999).is_some());
    assert!(get(&store, "short", 1_000).is_none());
    store
        .entry(Keyspace::Memcache, b"long", 9_999)
        .set_expires(20_000);
    assert!(get(&store, "long", 19_999).is_some());
    assert!(get(&store, "long", 20_000).is_none());
    assert!(get(&store, "ever", u64::MAX >> 20).is_some());
}

#[test]
fn a_flush_takes_what_was_there_before_and_nothing_else() {
    let store = store(MIB);
    set(&store, "a", b"1", 0, 0);
    store.flush(Keyspace::Memcache, 0, 0);
    assert_eq!(
        store.entry(Keyspace::Memcache, b"a", 0).miss(),
        Some(Miss::Flushed)
    );
    set(&store, "a", b"2", 0, 0);
    store.flush(Keyspace::Memcache, 5_000, 0);
    set(&store, "b", b"2", 0, 4_999);
    assert!(get(&store, "a", 4_999).is_some());
    // Stored after the time of the flush, which no operation has noticed yet.
    set(&store, "c", b"2", 0, 5_000);
    assert_eq!([get(&store, "a", 5_000), get(&store, "b", 5_000)], [None, None]);
    assert!(get(&store, "c", 9_000).is_some());
    assert_eq!(store.totals(Keyspace::Memcache, 9_000).items, 1);
}

/// The epoch that tells flushed items has 18 bits; a cache may be flushed more often than that.
#[test]
fn an_item_stays_flushed_for_ever() {
    let store = store(MIB);
    set(&store, "a", b"1", 0, 0);
    for _ in 0..(1 << 18) + 1 {
        store.flush(Keyspace::Memcache, 0, 0);
    }
    assert_eq!(get(&store, "a", 0), None);
    set(&store, "a", b"2", 0, 0);
    assert!(get(&store, "a", 0).is_some());
}

#[test]
fn what_nobody_asks_for_is_reclaimed_all_the_same() {
    let store = store(MIB);
    for number in 0..1_000 {
        set(&store, &format!("mortal {number}"), &[0; 100], 1_000, 0);
    }
    let full = store.totals(Keyspace::Memcache, 0);
    for _ in 0..4_000 {
        get(&store, "other", 1_000);
    }
    let empty = store.totals(Keyspace::Memcache, 1_000);
    assert_eq!((full.items, empty.items), (1_000, 0));
    assert!(
        empty.bytes < full.bytes - 100_000,
        "{} of {}",
        empty.bytes,
        full.bytes
    );
    assert_eq!(empty.counters.get(Counter::Reclaimed), 1_000);
    for number in 0..1_000 {
        set(&store, &format!("flushed {number}"), &[0; 100], 0, 1_000);
    }
    store.flush(Keyspace::Memcache, 0, 1_000);
    for _ in 0..4_000 {
        get(&store, "other", 1_000);
    }
    assert!(store.totals(Keyspace::Memcache, 1_000).bytes <= empty.bytes);
}

#[test]
fn memory_stays_within_the_limit() {
    for memory in [200_000, MIB, 9 * MIB] {
        let store = store(memory);
        let mut random = numbers(1);
        // Values of all sizes, then many tiny ones, then large ones, so that items and tables grow into each
        // other.
        for (rounds, largest) in [(20_000, 3_000), (60_000, 4), (5_000, 40_000)] {
            for round in 0..rounds {
                let key = format!("{}", random() % 50_000);
                let mut entry = store.entry(Keyspace::Memcache, key.as_bytes(), round);
                match random() % 8 {
                    0 => drop(entry.remove()),
                    1 => drop(entry.splice(b"<", &vec![b'x'; (random() % largest) as usize], None)),
                    2 => drop(entry.read().map(|item| item.flags())),
                    _ => {
                        let meta = Meta {
                            expires: random() % 2 * (round + 100),
                            ..Meta::default()
                        };
                        let _ = entry.put(meta, &vec![b'x'; (random() % largest) as usize]);
                    }
                }
                drop(entry);
                if round % 64 == 0 {
                    let bytes = store.totals(Keyspace::Memcache, round).bytes;
                    assert!(
                        bytes <= memory as u64,
                        "{bytes} of {memory} bytes in round {round}"
                    );
                }
            }
            let bytes = store.totals(Keyspace::Memcache, rounds).bytes;
            assert!(bytes * 4 > memory as u64, "only {bytes} of {memory} bytes used");
        }
        assert!(
            store
                .totals(Keyspace::Memcache, 0)
                .counters
                .get(Counter::Evictions)
                > 0
        );
    }
}

#[test]
fn a_store_without_memory_stores_nothing() {
    for memory in [0, 1, 500, 4_000, 5_000] {
        let store = store(memory);
        for number in 0..100 {
            let _ = store
                .entry(Keyspace::Memcache, format!("{number}").as_bytes(), 0)
                .put(Meta::default(), b"1");
            let bytes = store.totals(Keyspace::Memcache, 0).bytes;
            assert!(bytes <= memory as u64, "{bytes} of {memory}");
        }
    }
}

#[test]
fn a_value_that_is_too_large_is_refused_and_changes_nothing() {
    let store = store(64 * MIB);
    set(&store, "a", b"old", 0, 0);
    let mut entry = store.entry(Keyspace::Memcache, b"a", 0);
    assert!(entry.put(Meta::default(), &vec![0; MIB]).is_err());
    assert!(entry.splice(&vec![0; MIB - 62], b"", None).is_err());
    assert_eq!(entry.item().map(|item| item.value()), Some(&b"old"[..]));
}

/// Items that are read again and again stay, although more items than fit come between two reads.
#[test]
fn a_scan_does_not_wash_out_what_is_read() {
    const ONE_IN: usize = 40;
    let store = store(4 * MIB);
    let hot: Vec<String> = (0..500).map(|number| format!("hot {number}")).collect();
    for key in &hot {
        set(&store, key, &[b'h'; 400], 0, 0);
        (0..3).for_each(|_| assert!(get(&store, key, 0).is_some()));
    }
    for number in 0..4 * ONE_IN * hot.len() {
        set(&store, &format!("scan {number}"), &[b's'; 400], 0, 0);
        if number % ONE_IN == 0 {
            get(&store, &hot[number / ONE_IN % hot.len()], 0);
        }
    }
    assert!(store.totals(Keyspace::Memcache, 0).items < (ONE_IN * hot.len() / 2) as u64);
    let kept = hot.iter().filter(|key| get(&store, key, 0).is_some()).count();
    assert!(kept >= 495, "{kept} of {} kept", hot.len());
}

/// Requests for Zipf-distributed keys, filled on a miss: better than exact LRU with the same number of items.
#[test]
fn hits_are_more_than_with_exact_lru() {
    let store = store(4 * MIB);
    let mut random = numbers(7);
    let weights: Vec<f64> = (1..=50_000).map(|rank| 1.0 / f64::from(rank)).collect();
    let sums: Vec<f64> = weights
        .iter()
        .scan(0.0, |sum, weight| {
            *sum += weight;
            Some(*sum)
        })
        .collect();
    let (mut lru, mut hits) = (Lru::default(), [0, 0]);
    for round in 0..200_000 {
        let point = (random() >> 11) as f64 / (1_u64 << 53) as f64 * sums[sums.len() - 1];
        let rank = sums.partition_point(|sum| *sum < point);
        let key = format!("{rank}");
        let is_hit = get(&store, &key, 0).is_some();
        if !is_hit {
            set(&store, &key, &[0; 400], 0, 0);
        }
        // Exact LRU gets as many items as fitted into the store.
        let was_there = lru.touch(rank, store.totals(Keyspace::Memcache, 0).items as usize);
        if round >= 100_000 {
            hits[0] += usize::from(is_hit);
            hits[1] += usize::from(was_there);
        }
    }
    assert!(hits[0] * 100 >= hits[1] * 102, "{hits:?}");
}

/// Exact LRU, slow and simple.
#[derive(Default)]
struct Lru {
    stamps: HashMap<usize, u64>,
    order: std::collections::BTreeMap<u64, usize>,
    clock: u64,
}

impl Lru {
    fn touch(&mut self, key: usize, capacity: usize) -> bool {
        self.clock += 1;
        let before = self.stamps.insert(key, self.clock);
        if let Some(stamp) = before {
            self.order.remove(&stamp);
        }
        self.order.insert(self.clock, key);
        while self.order.len() > capacity.max(1) {
            if let Some((_, oldest)) = self.order.pop_first() {
                self.stamps.remove(&oldest);
            }
        }
        before.is_some()
    }
}

/// A cas loop in four threads: every increment counts, and each thread reads what the others have set.
#[test]
fn threads_see_each_other_and_lose_no_update() {
    const ROUNDS: u64 = 20_000;
    let store = store(64 * MIB);
    set(&store, "counter", b"0", 0, 0);
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let writers: Vec<_> = (0..4)
            .map(|thread| {
                let store = &store;
                scope.spawn(move || {
                    for round in 1..=ROUNDS {
                        increment(store);
                        set(store, &format!("mine {thread}"), &round.to_le_bytes(), 0, 0);
                    }
                })
            })
            .collect();
        for _ in 0..2 {
            scope.spawn(|| {
                let mut last = [0; 4];
                while !stop.load(Ordering::Acquire) {
                    for (thread, last) in last.iter_mut().enumerate() {
                        let Some(bytes) = get(&store, &format!("mine {thread}"), 0) else {
                            continue;
                        };
                        let round = u64::from_le_bytes(bytes.try_into().expect("a whole value"));
                        assert!(round >= *last, "thread {thread} was at {last} and is at {round}");
                        *last = round;
                    }
                }
            });
        }
        for writer in writers {
            writer.join().expect("a writer that ends");
        }
        stop.store(true, Ordering::Release);
    });
    assert_eq!(
        get(&store, "counter", 0),
        Some((4 * ROUNDS).to_string().into_bytes())
    );
    for thread in 0..4 {
        assert_eq!(
            get(&store, &format!("mine {thread}"), 0),
            Some(ROUNDS.to_le_bytes().to_vec())
        );
    }
}

/// Reads, unlocks, and writes only if no other thread has written meanwhile.
fn increment(store: &Store) {
    loop {
        let (cas, number) = {
            let entry = store.entry(Keyspace::Memcache, b"counter", 0);
            let item = entry.item().expect("the counter");
            let text = String::from_utf8_lossy(item.value()).into_owned();
            (item.cas(), text.parse::<u64>().expect("a number"))
        };
        let mut entry = store.entry(Keyspace::Memcache, b"counter", 0);
        if entry.item().map(|item| item.cas()) == Some(cas) {
            let text = (number + 1).to_string();
            entry
                .put(Meta::default(), text.as_bytes())
                .expect("a value that fits");
            return;
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Put(u8, u16, Option<u16>),
    Append(u8, u16),
    Remove(u8),
    Expire(u8, u16),
    Wait(u16),
    Flush(u16),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (any::<u8>(), 0..500_u16, prop::option::of(0..1_000_u16)).prop_map(|(key, length, ttl)| Step::Put(key, length, ttl)),
        2 => (any::<u8>(), 0..100_u16).prop_map(|(key, length)| Step::Append(key, length)),
        3 => any::<u8>().prop_map(Step::Remove),
        2 => (any::<u8>(), 0..1_000_u16).prop_map(|(key, ttl)| Step::Expire(key, ttl)),
        2 => (0..100_u16).prop_map(Step::Wait),
        1 => (0..200_u16).prop_map(Step::Flush),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// A store with room for everything behaves as a map with expiry times does, whatever it prefetches.
    #[test]
    fn a_store_with_room_is_a_map(steps in vec(step(), 1..400)) {
        let store = store(16 * MIB);
        let mut map: HashMap<u8, (Vec<u8>, u64)> = HashMap::new();
        let (mut now, mut flush) = (1_u64, None);
        let mut prefetch = Prefetch::default();
        for step in steps {
            if let Step::Put(key, ..) | Step::Append(key, _) | Step::Remove(key) | Step::Expire(key, _) = step {
                store.prefetch(format!("key {key}").as_bytes(), &mut prefetch);
            }
            if flush.is_some_and(|at| at <= now) {
                map.clear();
                flush = None;
            }
            map.retain(|_, (_, expires)| *expires == 0 || *expires > now);
            match step {
                Step::Put(key, length, ttl) => {
                    let value = vec![key; length.into()];
                    let expires = ttl.map_or(0, |ttl| now + 1 + u64::from(ttl));
                    set(&store, &format!("key {key}"), &value, expires, now);
                    map.insert(key, (value, expires));
                }
                Step::Append(key, length) => {
                    let more = vec![b'+'; length.into()];
                    let done = store.entry(Keyspace::Memcache, format!("key {key}").as_bytes(), now).splice(b"", &more, None);
                    prop_assert_eq!(done.map(|cas| cas.is_some()), Ok(map.contains_key(&key)));
                    if let Some((value, _)) = map.get_mut(&key) {
                        value.extend_from_slice(&more);
                    }
                }
                Step::Remove(key) => {
                    let was_there = store.entry(Keyspace::Memcache, format!("key {key}").as_bytes(), now).remove();
                    prop_assert_eq!(was_there, map.remove(&key).is_some());
                }
                Step::Expire(key, ttl) => {
                    let at = now + 1 + u64::from(ttl);
                    store.entry(Keyspace::Memcache, format!("key {key}").as_bytes(), now).set_expires(at);
                    if let Some((_, expires)) = map.get_mut(&key) {
                        *expires = at;
                    }
                }
                Step::Wait(time) => now += u64::from(time),
                Step::Flush(delay) => {
                    store.flush(Keyspace::Memcache, now + u64::from(delay), now);
                    flush = Some(now + u64::from(delay));
                }
            }
        }
        if flush.is_some_and(|at| at <= now) {
            map.clear();
        }
        map.retain(|_, (_, expires)| *expires == 0 || *expires > now);
        for key in 0..=255 {
            let expected = map.get(&key).map(|(value, _)| value.clone());
            prop_assert_eq!(get(&store, &format!("key {key}"), now), expected, "key {}", key);
        }
        prop_assert_eq!(store.totals(Keyspace::Memcache, now).items, map.len() as u64);
        prop_assert_eq!(store.totals(Keyspace::Memcache, now).counters.get(Counter::Evictions), 0);
    }
}

#[test]
fn a_walk_shows_what_is_there_throughout_while_the_table_grows_and_shrinks() {
    let store = Store::new(Limits::default(), [1, 2, 3, 4]);
    let put = |key: String| {
        assert!(
            store
                .entry(Keyspace::Memcache, key.as_bytes(), 0)
                .put(Meta::default(), b"v")
                .is_ok()
        )
    };
    let finish = |mut walk: Walk, seen: &mut Vec<String>| {
        let mut show = |item: Item<'_>| seen.push(String::from_utf8_lossy(item.key()).into_owned());
        while store.walk(&mut walk, 0, &mut show) {}
    };
    let fixed: Vec<String> = (0..2000).map(|number| format!("fixed{number}")).collect();
    fixed.iter().cloned().for_each(put);
    let steps = |count, seen: &mut Vec<String>| {
        let mut walk = Walk::new(Keyspace::Memcache);
        let mut show = |item: Item<'_>| seen.push(String::from_utf8_lossy(item.key()).into_owned());
        for _ in 0..count {
            assert!(store.walk(&mut walk, 0, &mut show));
        }
        walk
    };
    let count = |seen: &[String]| {
        let mut of_fixed: Vec<String> = seen
            .iter()
            .filter(|key| key.starts_with("fixed"))
            .cloned()
            .collect();
        let all = of_fixed.len();
        of_fixed.sort_unstable();
        of_fixed.dedup();
        (all, of_fixed.len())
    };
    let mut seen = Vec::new();
    let walk = steps(37, &mut seen);
    let before = seen.len();
    (0..40_000).map(|number| format!("other{number}")).for_each(put);
    finish(walk, &mut seen);
    assert!(before > 0 && count(&seen) == (fixed.len(), fixed.len()));
    // Many items go, and the next insertion finds the tables too large.
    let mut seen = Vec::new();
    let walk = steps(37, &mut seen);
    for number in 0..40_000 {
        store
            .entry(Keyspace::Memcache, format!("other{number}").as_bytes(), 0)
            .remove();
    }
    (0..100).map(|number| format!("more{number}")).for_each(put);
    finish(walk, &mut seen);
    assert_eq!(count(&seen).1, fixed.len());
}
