//! The store alone: a hit, a miss and an overwrite among 100,000 items of 40-byte keys and 400-byte values,
//! which do not fit in the nearer caches. The benchmarks use one thread; the end-to-end benchmarks measure
//! contention.

use std::hint::black_box;

use divan::Bencher;
use proxima::embedded::store::{Keyspace, Limits, Meta, Store};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const KEYS: u64 = 100_000;
const VALUE: [u8; 400] = [b'v'; 400];

fn main() {
    divan::main();
}

/// A key of 40 bytes, of which eight are hexadecimal digits.
fn key(number: u64) -> [u8; 40] {
    let mut key = [b'k'; 40];
    for (digit, place) in key[32..].iter_mut().zip(0..8) {
        *digit = b"0123456789abcdef"[(number >> (4 * place)) as usize & 15];
    }
    key
}

/// The next key number, in an order that no hardware prefetcher predicts (a full-period linear congruence
/// modulo 2^32).
fn walk(state: &mut u64) -> u64 {
    *state = (*state).wrapping_mul(1_664_525).wrapping_add(1_013_904_223) & 0xffff_ffff;
    (*state * KEYS) >> 32
}

fn filled(keys: u64) -> Store {
    let store = Store::new(
        Limits {
            memory: 128 << 20,
            ..Limits::default()
        },
        [1, 2, 3, 4],
    );
    for number in 0..keys {
        let _ = store
            .entry(Keyspace::Memcache, &key(number), 0)
            .put(Meta::default(), &VALUE);
    }
    store
}

#[divan::bench(sample_count = 100, sample_size = 10_000)]
fn key_alone(bencher: Bencher) {
    let mut state = 1;
    bencher.bench_local(move || key(walk(&mut state)));
}

/// The floor of `hit`: makes the key, and copies 464 bytes from one of as many allocations, without a lookup.
#[divan::bench(sample_count = 100, sample_size = 10_000)]
fn key_and_copy_alone(bencher: Bencher) {
    let items: Vec<Box<[u8]>> = (0..KEYS).map(|_| vec![b'v'; 512].into_boxed_slice()).collect();
    let (mut state, mut out) = (1, Vec::with_capacity(1 << 10));
    bencher.bench_local(move || {
        out.clear();
        let number = walk(&mut state);
        black_box(key(number));
        out.extend_from_slice(&items[number as usize][..464]);
        black_box(out.len())
    });
}

#[divan::bench(sample_count = 100, sample_size = 10_000)]
fn hit(bencher: Bencher) {
    let (store, mut state, mut out) = (filled(KEYS), 1, Vec::with_capacity(1 << 10));
    bencher.bench_local(move || {
        out.clear();
        if let Some(item) = store.entry(Keyspace::Memcache, &key(walk(&mut state)), 0).read() {
            out.extend_from_slice(item.reply());
        }
        black_box(out.len())
    });
}

#[divan::bench(sample_count = 100, sample_size = 10_000)]
fn miss(bencher: Bencher) {
    let (store, mut state) = (filled(KEYS), 1);
    bencher.bench_local(move || {
        store
            .entry(Keyspace::Memcache, &key(KEYS + walk(&mut state)), 0)
            .item()
            .is_some()
    });
}

#[divan::bench(sample_count = 100, sample_size = 10_000)]
fn overwrite(bencher: Bencher) {
    let (store, mut state) = (filled(KEYS), 1);
    bencher.bench_local(move || {
        store
            .entry(Keyspace::Memcache, &key(walk(&mut state)), 0)
            .put(Meta::default(), &VALUE)
    });
}

/// Measures sets of which each evicts one item.
#[divan::bench(sample_count = 100, sample_size = 10_000)]
fn set_evicting(bencher: Bencher) {
    let (store, mut number) = (filled(3 * KEYS), 3 * KEYS);
    bencher.bench_local(move || {
        number += 1;
        store
            .entry(Keyspace::Memcache, &key(number), 0)
            .put(Meta::default(), &VALUE)
    });
}
