//! Times of a worker's clock.

use std::{
    ops::{Add, AddAssign, Div, Sub},
    time::Duration,
};

/// A time since the process began, or a span, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Micros(pub u64);

impl Micros {
    /// When the process began; no time at all.
    pub const ZERO: Self = Self(0);

    /// So many milliseconds.
    pub const fn millis(millis: u64) -> Self {
        Self(millis * 1000)
    }

    /// So many seconds.
    pub const fn secs(secs: u64) -> Self {
        Self(secs * 1_000_000)
    }

    /// Whole seconds.
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

    /// The end of time stands for whatever is later.
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

    /// What has passed since `earlier`; nothing, if that is later.
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
