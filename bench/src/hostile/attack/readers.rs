//! Readers that take little of large values, or nothing.

use std::time::{Duration, Instant};

use super::context::{AttackContext, Connection};
use super::redis as requests;
use crate::{hostile::bait::LARGE, protocol::Protocol};

/// Values asked for: 40 MB.
const VALUES: usize = 40;

/// Bytes that a slow reader takes at a time.
const SIP: usize = 2 * 1024;

const BETWEEN_SIPS: Duration = Duration::from_secs(1);

/// Time after which half of the readers start again, so that there is always one at the beginning of its
/// reply.
const RETURN: Duration = Duration::from_secs(4);

/// Takes a little, repeatedly.
pub(super) fn slow(context: &AttackContext<'_>, number: u32) {
    read(context, number, |connection| {
        connection.receive(&mut [0; SIP]).is_some()
    });
}

/// Takes nothing.
pub(super) fn stopped(context: &AttackContext<'_>, number: u32) {
    read(context, number, |connection| !connection.is_broken());
}

fn read(context: &AttackContext<'_>, number: u32, take: impl Fn(&mut Connection<'_>) -> bool) {
    let request = match context.protocol {
        Protocol::Redis => requests::repeated(LARGE, VALUES, number),
        _ => request(number),
    };
    // They do not all come at once.
    context.pause(BETWEEN_SIPS * (number % 10) / 10);
    while !context.is_over() {
        let Some(mut connection) = context.connect_to_read_slowly() else {
            continue;
        };
        if !connection.send(&request) {
            continue;
        }
        context.count_requests(VALUES as u64);
        let begun = Instant::now();
        while !context.is_over() {
            context.pause(BETWEEN_SIPS);
            let returns = number.is_multiple_of(2) && begun.elapsed() > RETURN;
            if returns || !take(&mut connection) {
                break;
            }
        }
        if number.is_multiple_of(4) {
            connection.abort();
        }
    }
}

/// One get of many keys, many gets of one, or some small replies behind a large one.
fn request(number: u32) -> Vec<u8> {
    match number % 3 {
        0 => format!("get{}\r\n", format!(" {LARGE}").repeat(VALUES)),
        1 => format!("get {LARGE}\r\n").repeat(VALUES),
        _ => format!("get {LARGE}\r\nget ~x\r\ndelete ~x\r\n").repeat(VALUES),
    }
    .into_bytes()
}
