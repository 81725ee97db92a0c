//! Requests at their times: each client asks once a second, at a random place of the second.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use anyhow::Result;
use hdrhistogram::Histogram;
use rand::{RngExt, rngs::SmallRng};

use super::{crowd::Crowd, step::Step, visitors};

/// The time between two requests of a client.
const PERIOD: Duration = Duration::from_secs(1);
/// Reads for each update.
const READS: u32 = 10;
/// Time for the last replies.
const GRACE: Duration = Duration::from_secs(2);

/// What was done.
pub(super) struct Done {
    /// Requests that were due.
    pub(super) requests: u64,
    /// Updates that were acknowledged.
    pub(super) updates: u64,
    /// Microseconds from when a request was due to its reply.
    pub(super) latencies: Histogram<u64>,
}

/// A request that is due, or under way.
#[derive(Clone, Copy)]
struct Request {
    due: Instant,
    step: Step,
}

/// A run that goes on.
struct Run<'a> {
    crowd: &'a mut Crowd,
    /// The requests of each client without a reply; the first one has left.
    waiting: Vec<VecDeque<Request>>,
    done: Done,
}

/// Lets all clients, which are logged in, ask until the time is over. What fails is counted by the crowd.
pub(super) fn run(crowd: &mut Crowd, duration: Duration, random: &mut SmallRng) -> Result<Done> {
    let mut phases: Vec<(Duration, usize)> = (0..crowd.len())
        .map(|client| (PERIOD.mul_f64(random.random::<f64>()), client))
        .collect();
    phases.sort_unstable();
    let start = Instant::now();
    let end = start + duration;
    let time = |number: usize| {
        let (phase, client) = phases[number % phases.len()];
        (start + PERIOD * (number / phases.len()) as u32 + phase, client)
    };
    let mut run = Run {
        waiting: vec![VecDeque::new(); crowd.len()],
        crowd,
        done: Done {
            requests: 0,
            updates: 0,
            latencies: Histogram::new(3)?,
        },
    };
    let (mut next, mut finished) = (0, Vec::new());
    loop {
        let now = Instant::now();
        let (mut due, mut client) = time(next);
        while due <= now && due < end {
            let number = random.random_range(0..visitors::COUNT);
            let step = match random.random_range(0..=READS) {
                0 => Step::Update(number),
                _ => Step::Read(number),
            };
            run.ask(client, Request { due, step });
            next += 1;
            (due, client) = time(next);
        }
        if due >= end && (run.is_idle() || now >= end + GRACE) {
            break;
        }
        if due < end {
            run.crowd.wake_after(due - now)?;
        }
        run.crowd.turn(Duration::from_millis(50), &mut finished)?;
        for over in finished.drain(..) {
            run.finish(over.client, over.is_good);
        }
    }
    run.lose_the_rest();
    Ok(run.done)
}

impl Run<'_> {
    /// Sends a request, or keeps it until the one before is over.
    fn ask(&mut self, client: usize, request: Request) {
        self.done.requests += 1;
        self.waiting[client].push_back(request);
        if self.waiting[client].len() == 1 {
            self.send(client);
        }
    }

    /// Sends the first request that waits. Those of a client whose connection is lost fail.
    fn send(&mut self, client: usize) {
        while let Some(request) = self.waiting[client].front() {
            if self.crowd.client(client).is_connected() {
                self.crowd.ask(client, [request.step]);
                if self.crowd.client(client).is_connected() {
                    return;
                }
            } else {
                self.crowd
                    .count_error("a request of a client whose connection was lost");
            }
            self.waiting[client].pop_front();
        }
    }

    fn finish(&mut self, client: usize, is_good: bool) {
        if let Some(request) = self.waiting[client].pop_front().filter(|_| is_good) {
            self.done.updates += u64::from(matches!(request.step, Step::Update(_)));
            let micros = request.due.elapsed().as_micros() as u64;
            // This cannot fail: the histogram grows to hold its values.
            let _ = self.done.latencies.record(micros);
        }
        self.send(client);
    }

    fn is_idle(&self) -> bool {
        self.waiting.iter().all(VecDeque::is_empty)
    }

    /// Counts the requests that were never answered.
    fn lose_the_rest(&mut self) {
        let lost: usize = self.waiting.iter().map(VecDeque::len).sum();
        for _ in 0..lost {
            self.crowd.count_error("no reply until the end of the run");
        }
    }
}
