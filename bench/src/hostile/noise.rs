//! Measures how long the machine itself stood still, so that the target is not blamed for it.

use std::{
    collections::HashMap,
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    thread,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use serde::Serialize;

use crate::{
    output::as_seconds,
    process::waited_for_processor,
    protocol::{Protocol, Statements},
};

/// Time between two looks.
const STEP: Duration = Duration::from_millis(5);

/// Shorter times are no stalls.
const LEAST: Duration = Duration::from_millis(1);

/// Time that the control client waits for a reply before it counts all of this as a stall and asks anew.
const GIVE_UP: Duration = Duration::from_secs(5);

/// Stalls of a round.
#[derive(Default)]
pub(super) struct Noise {
    stalls: Mutex<Vec<(Instant, Instant)>>,
    worst: Mutex<WorstStalls>,
}

/// The longest stall that each of the observers has seen.
#[derive(Clone, Copy, Default, Serialize)]
pub(super) struct WorstStalls {
    /// A thread that only sleeps, woken so late.
    #[serde(rename = "sleeper_seconds", serialize_with = "as_seconds")]
    pub(super) sleeper: Duration,
    /// The attacked process, ready and without a processor for so long of a few milliseconds.
    #[serde(rename = "processor_seconds", serialize_with = "as_seconds")]
    pub(super) processor: Duration,
    /// A request directly to a server, answered so late.
    #[serde(rename = "control_seconds", serialize_with = "as_seconds")]
    pub(super) control: Duration,
}

impl Noise {
    /// Sleeps, and records how much longer that took, and how long the process `pid` waited for a processor.
    pub(super) fn watch(&self, pid: Option<u32>, is_over: impl Fn() -> bool) {
        let mut waited: HashMap<u32, Duration> = pid.map(waited_for_processor).unwrap_or_default();
        while !is_over() {
            let due = Instant::now() + STEP;
            thread::sleep(STEP);
            let now = Instant::now();
            self.note(due, now, |worst| &mut worst.sleeper);
            let Some(pid) = pid else {
                continue;
            };
            let before = std::mem::replace(&mut waited, waited_for_processor(pid));
            let grown = waited
                .iter()
                .map(|(thread, total)| total.saturating_sub(before.get(thread).copied().unwrap_or(*total)));
            if let Some(began) = grown.max().and_then(|longest| now.checked_sub(longest)) {
                self.note(began, now, |worst| &mut worst.processor);
            }
        }
    }

    /// Asks a server directly, and records how long it took.
    pub(super) fn control(&self, server: SocketAddr, protocol: Protocol, is_over: impl Fn() -> bool) {
        let mut stream = None;
        while !is_over() {
            let begun = Instant::now();
            if ask(server, protocol, &mut stream).is_err() {
                stream = None;
            }
            self.note(begun, Instant::now(), |worst| &mut worst.control);
            thread::sleep(STEP);
        }
    }

    fn note(&self, from: Instant, to: Instant, observer: impl Fn(&mut WorstStalls) -> &mut Duration) {
        let length = to.saturating_duration_since(from);
        if length < LEAST {
            return;
        }
        self.stalls.lock().push((from, to));
        let mut worst = self.worst.lock();
        let longest = observer(&mut worst);
        *longest = length.max(*longest);
    }

    pub(super) fn into_stalls(self) -> (Stalls, WorstStalls) {
        (Stalls::new(self.stalls.into_inner()), self.worst.into_inner())
    }
}

fn ask(server: SocketAddr, protocol: Protocol, stream: &mut Option<TcpStream>) -> std::io::Result<()> {
    let stream = match stream {
        Some(stream) => stream,
        None => {
            let new = TcpStream::connect_timeout(&server, GIVE_UP)?;
            new.set_nodelay(true)?;
            new.set_read_timeout(Some(GIVE_UP))?;
            stream.insert(new)
        }
    };
    let mut request = Vec::new();
    protocol.append_get(b"~control", Statements::default(), &mut request);
    stream.write_all(&request)?;
    let mut reply = vec![0; protocol.miss().len()];
    stream.read_exact(&mut reply)
}

/// The stalls of the machine: spans that do not overlap, in order.
pub(super) struct Stalls(Vec<(Instant, Instant)>);

impl Stalls {
    fn new(mut spans: Vec<(Instant, Instant)>) -> Self {
        spans.sort();
        let mut joined: Vec<(Instant, Instant)> = Vec::new();
        for (from, to) in spans {
            match joined.last_mut() {
                Some(last) if from <= last.1 => last.1 = last.1.max(to),
                _ => joined.push((from, to)),
            }
        }
        Self(joined)
    }

    /// Time of stalls between two moments.
    pub(super) fn within(&self, from: Instant, to: Instant) -> Duration {
        let first = self.0.partition_point(|span| span.1 <= from);
        self.0[first..]
            .iter()
            .take_while(|span| span.0 < to)
            .map(|span| span.1.min(to) - span.0.max(from))
            .sum()
    }

    pub(super) fn total(&self) -> Duration {
        self.0.iter().map(|(from, to)| *to - *from).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stalls_count_once_and_only_where_they_fall_into_the_time() {
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        let stalls = Stalls::new(vec![
            (at(30), at(40)),
            (at(0), at(10)),
            (at(5), at(20)),
            (at(20), at(22)),
        ]);
        for (from, to, expected) in [(0, 100, 32), (8, 31, 15), (22, 30, 0), (32, 35, 3), (50, 60, 0)] {
            let within = stalls.within(at(from), at(to));
            assert_eq!(within, Duration::from_millis(expected), "{from} to {to}");
        }
        assert_eq!(stalls.total(), Duration::from_millis(32));
    }
}
