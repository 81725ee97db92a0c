//! Requests one behind the other: each client begins the next one when the one before is over.

use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use rand::{RngExt, rngs::SmallRng};

use super::{crowd::Crowd, step::Step, visitors};

/// No request takes as long.
const STUCK: Duration = Duration::from_secs(5);

/// The form of a request.
#[derive(Clone, Copy)]
pub(super) enum Request {
    /// A connection, a login, a read, and the end of the connection.
    Login,
    /// A read that is prepared, executed and closed.
    Prepare,
}

/// What was done.
pub(super) struct Done {
    pub(super) requests: u64,
    pub(super) took: Duration,
}

/// Lets all clients ask until the time is over. Those that prepare are logged in.
///
/// # Errors
/// When a request fails: the figures would be those of failures.
pub(super) fn run(
    crowd: &mut Crowd,
    request: Request,
    duration: Duration,
    random: &mut SmallRng,
) -> Result<Done> {
    let start = Instant::now();
    let end = start + duration;
    let mut requests = 0;
    let mut begin = |crowd: &mut Crowd, client| {
        let number = random.random_range(0..visitors::COUNT);
        match request {
            Request::Login => crowd.enter(client, [Step::Read(number)]),
            Request::Prepare => crowd.ask(client, [Step::Prepare, Step::Execute(number), Step::Close]),
        }
    };
    (0..crowd.len()).for_each(|client| begin(crowd, client));
    let (mut under_way, mut finished) = (crowd.len(), Vec::new());
    while under_way > 0 {
        crowd.turn(Duration::from_millis(100), &mut finished)?;
        let now = Instant::now();
        if crowd.errors > 0 {
            bail!(crowd.first_error.take().unwrap_or_default());
        }
        ensure!(now < end + STUCK, "a request has taken {STUCK:?}");
        for over in finished.drain(..) {
            requests += 1;
            if matches!(request, Request::Login) {
                crowd.dismiss(over.client);
            }
            if now < end {
                begin(crowd, over.client);
            } else {
                under_way -= 1;
            }
        }
    }
    Ok(Done {
        requests,
        took: start.elapsed(),
    })
}
