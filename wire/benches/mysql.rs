//! What one message costs the codec of MySQL: `cargo bench -p proxima-wire --bench mysql`.

use divan::{Bencher, black_box, counter::BytesCount};
use proxima_wire::mysql::{
    Capabilities, OkPacket, ReplyReader, Shape, Status, append_packet,
    sql::{Mode, statement},
};

const CAPABILITIES: Capabilities = Capabilities::PROTOCOL_41.with(Capabilities::DEPRECATE_EOF);

/// A read of a hundred bytes, as applications send them.
const HUNDRED: &str =
    "SELECT id, name, email, created_at FROM users WHERE account_id = 12345 AND state = 'active' LIMIT 10";

fn main() {
    assert_eq!(HUNDRED.len(), 100);
    divan::main();
}

#[divan::bench(args = [
    HUNDRED, "SELECT 1", "COMMIT", "SELECT c FROM sbtest1 WHERE id=5000",
    "UPDATE t SET a = a + 1 WHERE id = 12345",
    "SELECT `t`.`id`, `t`.`name`, COUNT(*) FROM `t` JOIN `u` ON `u`.`t_id` = `t`.`id` WHERE `t`.`a` IN (1, 2, 3)",
    "/*!40101 SET NAMES utf8mb4 */",
])]
fn statements(bencher: Bencher<'_, '_>, text: &str) {
    let bencher = bencher.counter(BytesCount::of_str(text));
    bencher.bench_local(|| statement(black_box(text.as_bytes()), black_box(Mode::default())));
}

/// A statement with a large text in quotes.
#[divan::bench(args = [1000, 60_000])]
fn long_statement(bencher: Bencher<'_, '_>, len: usize) {
    let text = format!("INSERT INTO t (a, b) VALUES (1, '{}')", "x".repeat(len));
    let bencher = bencher.counter(BytesCount::of_str(&text));
    bencher.bench_local(|| statement(black_box(text.as_bytes()), black_box(Mode::default())));
}

/// A result of one column and so many rows of a hundred bytes.
fn rows(count: usize) -> Vec<u8> {
    let mut out = Vec::new();
    let mut sequence = append_packet(1, &mut out, |out| out.push(1));
    sequence = append_packet(sequence, &mut out, |out| {
        out.extend_from_slice(b"\x03def\x01s\x01t\x01t\x01c")
    });
    for _ in 0..count {
        sequence = append_packet(sequence, &mut out, |out| {
            out.push(99);
            out.resize(out.len() + 99, b'v');
        });
    }
    let ok = OkPacket {
        status: Status::AUTOCOMMIT,
        is_eof: true,
        ..OkPacket::default()
    };
    ok.append(CAPABILITIES, sequence, &mut out);
    out
}

#[divan::bench(args = [0, 1, 10, 1000])]
fn results(bencher: Bencher<'_, '_>, count: usize) {
    let bytes = rows(count);
    let mut reader = ReplyReader::new(Shape::Results, CAPABILITIES, 1);
    bencher.counter(BytesCount::new(bytes.len())).bench_local(|| {
        reader.begin(Shape::Results, 1);
        let mut rest = black_box(&bytes[..]);
        while !rest.is_empty() {
            rest = &rest[reader.read(rest).expect("a good reply").taken..];
        }
        reader.is_ended()
    });
}

#[divan::bench]
fn ok(bencher: Bencher<'_, '_>) {
    let mut bytes = Vec::new();
    OkPacket {
        affected_rows: 1,
        ..OkPacket::default()
    }
    .append(CAPABILITIES, 1, &mut bytes);
    let mut reader = ReplyReader::new(Shape::Results, CAPABILITIES, 1);
    bencher.bench_local(|| {
        reader.begin(Shape::Results, 1);
        reader.read(black_box(&bytes)).expect("a good reply").is_last
    });
}
