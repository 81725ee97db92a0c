//! What a key costs: the hashes by key length, the distributions by number of members.

use std::hint::black_box;

use divan::{Bencher, counter::ItemsCount};
use proxima_wire::hash::{Distribution, KeyHash, Node, routing_key, spooky32};

/// As many keys as keep their hashing from being learnt by the branch predictor.
const KEYS: usize = 4096;
const MEMBERS: [usize; 3] = [4, 36, 1000];

fn main() {
    divan::main();
}

fn keys(length: usize) -> Vec<String> {
    (0..KEYS)
        .map(|i| format!("{:0>length$}", i.wrapping_mul(0x9e37_79b9)))
        .collect()
}

/// Time for each of many keys.
fn each_key(bencher: Bencher<'_, '_>, length: usize, mut work: impl FnMut(&[u8]) -> usize) {
    let keys = keys(length);
    bencher.counter(ItemsCount::new(KEYS)).bench_local(|| {
        for key in &keys {
            black_box(work(black_box(key.as_bytes())));
        }
    });
}

#[divan::bench(args = KeyHash::ALL.map(KeyHash::name), consts = [16, 40, 250])]
fn key_hash<const LENGTH: usize>(bencher: Bencher<'_, '_>, name: &str) {
    let hash = KeyHash::from_name(name).expect("one of all");
    each_key(bencher, LENGTH, |key| hash.hash(key) as usize);
}

#[divan::bench(args = [16, 40, 250])]
fn spooky(bencher: Bencher<'_, '_>, length: usize) {
    each_key(bencher, length, |key| spooky32(key, 0) as usize);
}

#[divan::bench(args = [40, 250])]
fn routing_key_without_stop(bencher: Bencher<'_, '_>, length: usize) {
    each_key(bencher, length, |key| routing_key(key, true).len());
}

fn distributions(members: usize) -> Vec<(&'static str, Distribution)> {
    let names: Vec<String> = (0..members).map(|i| format!("10.0.0.{i}")).collect();
    let nodes: Vec<Node<'_>> = names.iter().map(|name| Node { name, weight: 1.0 }).collect();
    let halves: Vec<Node<'_>> = names.iter().map(|name| Node { name, weight: 0.5 }).collect();
    [
        // crc32a of 40 bytes costs next to nothing, which leaves the search.
        ("ketama, crc32a", Distribution::ketama(&nodes, KeyHash::Crc32a)),
        ("ketama, fnv1a_64", Distribution::ketama(&nodes, KeyHash::Fnv1a64)),
        ("ketama, md5", Distribution::ketama(&nodes, KeyHash::Md5)),
        ("modula, crc32a", Distribution::modula(&nodes, KeyHash::Crc32a)),
        ("ch3", Distribution::ch3(members)),
        ("weighted_ch3", Distribution::weighted_ch3(&halves)),
        ("crc32", Distribution::crc32(members)),
        ("rendezvous", Distribution::rendezvous(&nodes)),
        ("weighted_rendezvous", Distribution::weighted_rendezvous(&nodes)),
        ("jump", Distribution::jump(members)),
    ]
    .map(|(name, distribution)| (name, distribution.expect("good members")))
    .into()
}

#[divan::bench(args = [
    "ketama, crc32a", "ketama, fnv1a_64", "ketama, md5", "modula, crc32a", "ch3", "weighted_ch3", "crc32",
    "rendezvous", "weighted_rendezvous", "jump",
], consts = MEMBERS)]
fn pick<const COUNT: usize>(bencher: Bencher<'_, '_>, name: &str) {
    let (_, distribution) = distributions(COUNT)
        .into_iter()
        .find(|(each, _)| *each == name)
        .expect("one of the list");
    each_key(bencher, 40, |key| distribution.pick(key));
}

#[divan::bench(args = MEMBERS)]
fn build_ketama(members: usize) -> Vec<(&'static str, Distribution)> {
    distributions(members)
}
