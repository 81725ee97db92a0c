//! One large request, sent whole, again and again.

use std::{thread, time::Duration};

use super::context::{AttackContext, Connection};
use super::redis::END;

/// Time between a reply and the next request.
const BETWEEN: Duration = Duration::from_millis(100);

/// Sends `request`, and reads its reply meanwhile: a server need not take more than it may answer.
pub(super) fn run(context: &AttackContext<'_>, request: &[u8]) {
    while !context.is_over() {
        let Some(mut connection) = context.connect() else {
            continue;
        };
        let Ok(mut twin) = connection.twin() else {
            continue;
        };
        let mut answered = true;
        while answered {
            answered = thread::scope(|scope| {
                scope.spawn(|| {
                    if twin.send(request) {
                        context.count_requests(1);
                    }
                });
                is_answered(context, &mut connection)
            });
            context.pause(BETWEEN);
        }
    }
}

/// Reads up to the end of the reply; false when the other side has closed, or the round is over.
fn is_answered(context: &AttackContext<'_>, connection: &mut Connection<'_>) -> bool {
    let mut chunk = vec![0; 64 * 1024];
    let mut tail = Vec::new();
    while !context.is_over() {
        let Some(length) = connection.receive(&mut chunk) else {
            return false;
        };
        tail.extend_from_slice(&chunk[..length]);
        tail.drain(..tail.len().saturating_sub(END.len()));
        if tail == END {
            return true;
        }
    }
    false
}
