//! Clients of other protocols, and bytes that are meant to confuse.

use std::time::{Duration, Instant};

use rand::{Rng, RngExt, SeedableRng, rngs::SmallRng};

use super::context::AttackContext;
use super::redis as requests;
use crate::protocol::Protocol;

/// Time to wait for an answer or an end.
const ANSWER: Duration = Duration::from_secs(1);

/// Pause after a greeting of a protocol that waits for an answer.
const BETWEEN: Duration = Duration::from_millis(20);

pub(super) fn run(context: &AttackContext<'_>, number: u32) {
    let mut greetings = greetings();
    // To a Redis, none of the others is more than the beginning of a line.
    let awaited = match context.protocol {
        Protocol::Redis => 0,
        _ => AWAITED,
    };
    if context.protocol == Protocol::Redis {
        greetings.extend(requests::garbage());
    }
    let mut random = SmallRng::seed_from_u64(u64::from(number));
    let mut turn = number as usize;
    while !context.is_over() {
        let Some(mut connection) = context.connect() else {
            continue;
        };
        turn += 1;
        let place = turn % (greetings.len() + 1);
        let waits = place < awaited;
        let bytes = greetings.get(place).cloned().unwrap_or_else(|| {
            let mut noise = vec![0; random.random_range(1..20_000)];
            random.fill_bytes(&mut noise);
            noise
        });
        context.count_requests(1);
        let begun = Instant::now();
        let mut answered = !connection.send(&bytes);
        while !answered && !context.is_over() && begun.elapsed() < ANSWER {
            answered = connection.receive(&mut [0; 4_096]) != Some(0);
        }
        if waits && !answered && !context.is_over() {
            context.count_unanswered();
        }
        context.pause(BETWEEN);
    }
}

/// The first so many of [`greetings`] wait for an answer: a server that says nothing leaves them hanging.
const AWAITED: usize = 8;

fn greetings() -> Vec<Vec<u8>> {
    let http = |line: &str| {
        format!("{line} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 12\r\n\r\nget ~canary\r\n")
    };
    vec![
        // Binary memcached: a get of "key".
        b"\x80\x00\x00\x03\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0\0\0\0\0\0key".to_vec(),
        // Binary memcached: a no-op.
        b"\x80\x0a\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0".to_vec(),
        // The beginning of TLS 1.2's hello.
        b"\x16\x03\x01\x00\xf1\x01\x00\x00\xed\x03\x03abcdefghijklmnopqrstuvwxyz012345\x20".to_vec(),
        http("GET /").into_bytes(),
        http("POST /").into_bytes(),
        http("PUT /x").into_bytes(),
        http("DELETE /x").into_bytes(),
        b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n".to_vec(),
        // Redis.
        b"*2\r\n$3\r\nGET\r\n$7\r\n~canary\r\n".to_vec(),
        b"PROXY TCP4 10.0.0.1 10.0.0.2 40000 11211\r\nget ~canary\r\n".to_vec(),
        b"\r\n".repeat(1_000),
        b"\n".repeat(1_000),
        vec![0; 10_000],
        vec![0xff; 10_000],
        [&b"get "[..], &[b'k'; 300], b"\r\n"].concat(),
        [&b"get "[..], &[b'k'; 100_000]].concat(),
        b"set k 0 0\r\nset\r\nset k\r\nget\r\ndelete\r\nincr k\r\nincr k abc\r\nmg\r\nms\r\nma\r\nmd\r\nme\r\n".to_vec(),
        b"gets \xff\xfe\r\ndelete \x01\x02\r\nset \x7f\x00k 0 0 1\r\nx\r\n".to_vec(),
        b"set k 0 0 18446744073709551616\r\nset k 0 0 -1\r\nset k 0 0 99999999999\r\n".to_vec(),
        b"quit quit\r\nquit\r\nget ~canary\r\n".to_vec(),
    ]
}
