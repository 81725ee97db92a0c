//! What one message costs the codec of Redis and Valkey: `cargo bench -p proxima-wire --bench resp`.

use divan::{Bencher, black_box};
use proxima_wire::{
    message::Parse,
    resp::{Expect, Limits, frame, reply, request, whole},
};

/// Forty bytes, as the product's figures are measured with.
const KEY: &str = "0123456789012345678901234567890123456789";
const LIMITS: Limits = Limits { value: 64 << 20 };

fn main() {
    divan::main();
}

/// These words as an array of bulk strings.
fn array(words: &str) -> Vec<u8> {
    let words = words.replace("KEY", KEY).replace("VALUE", &"v".repeat(400));
    let words: Vec<_> = words.split(' ').collect();
    let bulks = words.iter().map(|word| format!("${}\r\n{word}\r\n", word.len()));
    format!("*{}\r\n{}", words.len(), bulks.collect::<String>()).into_bytes()
}

#[divan::bench(args = [
    "GET KEY", "GET k", "SET KEY VALUE", "SET KEY VALUE EX 60", "DEL KEY", "PING", "HSET KEY f v g w", "MGET KEY KEY KEY KEY KEY KEY KEY KEY KEY KEY",
])]
fn frames(bencher: Bencher<'_, '_>, words: &str) {
    // More bytes follow, as they do in a pipeline.
    let bytes = [array(words), array("GET KEY")].concat();
    bencher.bench_local(|| frame(&mut Parse::default(), black_box(&bytes), &LIMITS));
}

#[divan::bench(args = [
    "GET KEY", "get k", "SET KEY VALUE", "SET KEY VALUE EX 60", "DEL KEY", "INCR KEY", "PING", "HSET KEY f v g w", "MGET KEY KEY KEY KEY KEY KEY KEY KEY KEY KEY",
    "EVALSHA sha 1 KEY a",
])]
fn requests(bencher: Bencher<'_, '_>, words: &str) {
    let bytes = [array(words), array("GET KEY")].concat();
    bencher.bench_local(|| request(&mut Parse::default(), black_box(&bytes), &LIMITS));
}

#[divan::bench(args = ["get k", "set k 'v v'"])]
fn inline_frames(bencher: Bencher<'_, '_>, line: &str) {
    let bytes = format!("{line}\r\n").into_bytes();
    bencher.bench_local(|| frame(&mut Parse::default(), black_box(&bytes), &LIMITS));
}

fn value(kind: &str) -> Vec<u8> {
    let text = match kind {
        "400 bytes" => format!("$400\r\n{}\r\n", "v".repeat(400)),
        "null" => "$-1\r\n".into(),
        "OK" => "+OK\r\n".into(),
        "number" => ":12345\r\n".into(),
        "error" => "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n".into(),
        "list of 10" => format!("*10\r\n{}", "$5\r\nvalue\r\n".repeat(10)),
        "map of 10" => format!("%10\r\n{}", "$5\r\nfield\r\n$5\r\nvalue\r\n".repeat(10)),
        _ => "*1\r\n".repeat(10) + ":1\r\n",
    };
    text.into_bytes()
}

#[divan::bench(args = ["400 bytes", "null", "OK", "number"])]
fn short_replies(bencher: Bencher<'_, '_>, kind: &str) {
    let bytes = value(kind);
    bencher.bench_local(|| whole(black_box(&bytes)));
}

#[divan::bench(args = ["400 bytes", "OK", "error", "list of 10", "map of 10", "depth of 10"])]
fn replies(bencher: Bencher<'_, '_>, kind: &str) {
    let bytes = value(kind);
    bencher.bench_local(|| reply(&mut Parse::default(), Expect::Reply, black_box(&bytes)));
}
