//! Timers, and the requests and clients that they wake.

use std::{cmp::Ordering, collections::BinaryHeap, time::Duration};

use super::{Engine, Sleeper};
use crate::micros::Micros;

/// The timers of a worker.
#[derive(Debug, Default)]
pub struct Timers(BinaryHeap<Timer>);

/// Wakes a sleeper at a certain time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Timer {
    /// The time at which it fires, on the worker's clock.
    due: Micros,
    /// The sleeper that it wakes.
    wakes: Sleeper,
}

impl Timers {
    /// The time from `now` to the next timer; `None` without a timer.
    pub fn next_in(&self, now: Micros) -> Option<Duration> {
        let timer = self.0.peek()?;
        Some((timer.due - now).into())
    }

    /// Wakes this sleeper at that time.
    pub(crate) fn wake(&mut self, due: Micros, wakes: Sleeper) {
        self.0.push(Timer { due, wakes });
    }

    /// Takes the next sleeper whose time has come.
    fn due(&mut self, now: Micros) -> Option<Sleeper> {
        self.0.peek().filter(|timer| timer.due <= now)?;
        self.0.pop().map(|timer| timer.wakes)
    }
}

impl Engine {
    /// Wakes the flights, operations and clients whose timers are due.
    pub fn run_timers(&mut self) {
        while let Some(sleeper) = self.timers.due(self.now) {
            match sleeper {
                Sleeper::Flight(id) => self.wake_flight(id),
                Sleeper::Operation(id) => self.go_on(id),
                Sleeper::Task(id) => self.go_on_keeping(id),
                Sleeper::Client(id) => self.requeue(id),
            }
        }
    }
}

impl Ord for Timer {
    /// The earliest timer is the greatest, because a binary heap gives the greatest first.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.due, other.wakes).cmp(&(self.due, self.wakes))
    }
}

impl PartialOrd for Timer {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
