//! Writers that send a byte a second.

use std::time::Duration;

use super::ground::Ground;

const BETWEEN_BYTES: Duration = Duration::from_secs(1);

/// Bytes, more than proxies hold whole.
const UPLOAD: usize = 100_000;

/// A value whose end nobody will see.
pub(super) fn uploads(ground: &Ground<'_>, number: u32) {
    let head = format!("set ~upload{number} 0 0 {UPLOAD}\r\n");
    dribble(ground, head.as_bytes(), &[b'u'; UPLOAD]);
}

/// A request line, and when it is whole at last the next.
pub(super) fn lines(ground: &Ground<'_>, number: u32) {
    let request = match number % 4 {
        0 => "get ~x ~y ~z\r\n",
        1 => "set ~line 0 0 5\r\nhello\r\n",
        2 => "delete ~line\r\n",
        _ => "incr ~line 1\r\n",
    };
    dribble(ground, b"", request.repeat(100).as_bytes());
}

fn dribble(ground: &Ground<'_>, at_once: &[u8], slowly: &[u8]) {
    while !ground.is_over() {
        let Some(mut connection) = ground.connect() else {
            continue;
        };
        ground.count_requests(1);
        if !connection.send(at_once) {
            continue;
        }
        for byte in slowly {
            if !connection.send(&[*byte]) || ground.is_over() {
                break;
            }
            ground.pause(BETWEEN_BYTES);
            // A refusal, or the end.
            if connection.receive(&mut [0; 1_024]).is_none() {
                break;
            }
        }
    }
}
