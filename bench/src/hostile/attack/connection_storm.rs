//! Very many connections at once.

use std::time::Duration;

use super::ground::Ground;
use crate::hostile::bait::MIDDLE;

/// Connections of each attacker at a time.
const AT_ONCE: u32 = 150;

const KEPT: Duration = Duration::from_secs(1);

pub(super) fn run(ground: &Ground<'_>) {
    let get = format!("get {MIDDLE}\r\n");
    while !ground.is_over() {
        let mut connections = Vec::new();
        for number in 0..AT_ONCE * ground.strength {
            let Some(mut connection) = ground.connect() else {
                // The server accepts no more: the connections so far are kept.
                break;
            };
            let request = match number % 3 {
                0 => &b""[..],
                1 => get.as_bytes(),
                _ => b"set ~storm 0 0 1\r\ns\r\n",
            };
            if connection.send(request) {
                ground.count_requests(u64::from(!request.is_empty()));
                connections.push(connection);
            }
        }
        ground.pause(KEPT);
        for (number, connection) in connections.into_iter().enumerate() {
            if number % 2 == 0 {
                connection.abort();
            }
        }
    }
}
