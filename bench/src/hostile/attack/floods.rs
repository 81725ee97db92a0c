//! Requests without end, whose replies are not read for a while.

use std::time::Duration;

use super::context::AttackContext;
use crate::hostile::bait::MIDDLE;

/// Bytes that a flood of sets brings, and that are due to a flood of gets.
const FLOOD: usize = 90_000_000;

/// A value that proxies hold whole.
const VALUE: usize = 60_000;

/// Different keys of a flood.
const KEYS: usize = 50;

/// Time in which no reply is read.
const SILENCE: Duration = Duration::from_secs(5);

/// Half of the attackers send gets, a quarter sets, and a quarter sets without replies.
pub(super) fn run(context: &AttackContext<'_>, number: u32) {
    let quiet = if number.is_multiple_of(4) { " noreply" } else { "" };
    while !context.is_over() {
        let Some(mut connection) = context.connect_to_read_slowly() else {
            continue;
        };
        let mut went = true;
        for request in 0..FLOOD / VALUE {
            went = if number.is_multiple_of(2) {
                let head = format!("set ~flood:{number}:{} 0 0 {VALUE}{quiet}\r\n", request % KEYS);
                connection.send(&[head.as_bytes(), &[b'f'; VALUE], b"\r\n"].concat())
            } else {
                connection.send(format!("get {MIDDLE}\r\n").as_bytes())
            };
            if !went {
                break;
            }
            context.count_requests(1);
        }
        if went {
            context.pause(SILENCE);
        }
        if number % 4 < 2 {
            connection.abort();
        }
        context.pause(Duration::from_millis(200));
    }
}
