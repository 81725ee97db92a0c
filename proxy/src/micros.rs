//! Times on the clock of a worker.

use std::{
    ops::{Add, AddAssign, Div, Sub},
    time::Duration,
};

/// A time since the process began, or a span, in µs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Micros(pub u64);

impl Micros {
    /// The time at which the process began, and the span of no time.
    pub const ZERO: Self = Self(0);

    /// A time that never comes.
    pub const NEVER: Self = Self(u64::MAX);

    /// This number of milliseconds.
    pub const fn millis(millis: u64) -> Self {
        Self(millis * 1000)
    }

    /// This number of seconds.
    pub const fn secs(secs: u64) -> Self {
        Self(secs * 1_000_000)
    }

    /// The whole seconds in it.
    pub const fn as_secs(self) -> u64 {
        self.0 / 1_000_000
    }
}

impl From<Duration> for Micros {
    fn from(duration: Duration) -> Self {
        Self(duration.as_micros() as u64)
    }
}

impl From<Micros> for Duration {
    fn from(micros: Micros) -> Self {
        Self::from_micros(micros.0)
    }
}

impl Add for Micros {
    type Output = Self;

    /// Adds a span. A sum beyond the largest value is the largest value.
    fn add(self, span: Self) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl AddAssign for Micros {
    fn add_assign(&mut self, span: Self) {
        *self = *self + span;
    }
}

impl Sub for Micros {
    type Output = Self;

    /// The span since `earlier`; zero if `earlier` is later.
    fn sub(self, earlier: Self) -> Self {
        Self(self.0.saturating_sub(earlier.0))
    }
}

impl Div<u64> for Micros {
    type Output = Self;

    fn div(self, by: u64) -> Self {
        Self(self.0 / by)
    }
}
