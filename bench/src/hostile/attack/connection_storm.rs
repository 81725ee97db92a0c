//! Very many connections at once.

use std::time::Duration;

use super::context::AttackContext;
use crate::hostile::bait::MIDDLE;

/// Connections of each attacker at a time.
const AT_ONCE: u32 = 150;

const KEPT: Duration = Duration::from_secs(1);

pub(super) fn run(context: &AttackContext<'_>) {
    let get = format!("get {MIDDLE}\r\n");
    while !context.is_over() {
        let mut connections = Vec::new();
        for number in 0..AT_ONCE * context.strength {
            let Some(mut connection) = context.connect() else {
                // The server accepts no more: the connections so far are kept.
                break;
            };
            let request = match number % 3 {
                0 => &b""[..],
                1 => get.as_bytes(),
                _ => b"set ~storm 0 0 1\r\ns\r\n",
            };
            if connection.send(request) {
                context.count_requests(u64::from(!request.is_empty()));
                connections.push(connection);
            }
        }
        context.pause(KEPT);
        for (number, connection) in connections.into_iter().enumerate() {
            if number % 2 == 0 {
                connection.abort();
            }
        }
    }
}
