//! Expiry times, as clients say them and as the store keeps them.

use proxima_wire::resp::integer;

use super::{
    call::Call,
    reply::{self, NOT_INTEGER},
};

/// How a client counts time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    /// Seconds from now.
    Seconds,
    /// Milliseconds from now.
    Millis,
    /// Seconds since 1970.
    UnixSeconds,
    /// Milliseconds since 1970.
    UnixMillis,
}

/// A number that is no time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BadTime {
    /// It is no number.
    NotInteger,
    /// It is too large, or not positive where it has to be.
    Invalid,
}

impl BadTime {
    /// Appends the error.
    pub(super) fn answer(self, call: &Call<'_>, out: &mut Vec<u8>) -> proxima_wire::message::Outcome {
        match self {
            Self::NotInteger => reply::error(out, NOT_INTEGER),
            Self::Invalid => reply::bad_time(out, call.name()),
        }
    }
}

impl Call<'_> {
    /// The present in Unix milliseconds.
    pub(super) fn unix(&self) -> i64 {
        self.unix_of(self.now)
    }

    /// A moment of the store's clock in Unix milliseconds.
    pub(super) fn unix_of(&self, moment: u64) -> i64 {
        self.begun.saturating_add(moment) as i64
    }

    /// A Unix time in milliseconds on the store's clock. `None`: it is not in the future.
    pub(super) fn moment_of(&self, unix: i64) -> Option<u64> {
        let future = unix > self.unix();
        future.then(|| (unix as u64).saturating_sub(self.begun))
    }

    /// A time that a client says, in Unix milliseconds.
    pub(super) fn time(&self, unit: Unit, text: &[u8]) -> Result<i64, BadTime> {
        let number = integer(text).ok_or(BadTime::NotInteger)?;
        let millis = match unit {
            Unit::Seconds | Unit::UnixSeconds => number.checked_mul(1000),
            Unit::Millis | Unit::UnixMillis => Some(number),
        };
        let unix = match unit {
            Unit::Seconds | Unit::Millis => millis.and_then(|millis| millis.checked_add(self.unix())),
            Unit::UnixSeconds | Unit::UnixMillis => millis,
        };
        unix.ok_or(BadTime::Invalid)
    }

    /// The same, where the time must be positive.
    pub(super) fn positive_time(&self, unit: Unit, text: &[u8]) -> Result<i64, BadTime> {
        match integer(text) {
            Some(..=0) => Err(BadTime::Invalid),
            _ => self.time(unit, text),
        }
    }
}
