//! Routes that delay or fail requests.

use std::time::Duration;

use super::{
    Route, Spec,
    form::RouteForm,
    spec::{Handle, handle},
};
use crate::config::{
    form::{Optional, Share, Time},
    section::section,
};

/// Faults of requests, for tests of clients.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fault {
    /// Delay of each request.
    pub delay: Duration,
    /// Delay of each reply.
    pub delay_after: Duration,
    /// Shares of the requests, ascending, each with the time that a reply takes at least. Requests beyond the
    /// last share have the last time; empty: no such time.
    pub total: Vec<(f64, Duration)>,
    /// Share of the requests that are answered with an error, 0 to 1.
    pub error_rate: f64,
}

impl Spec for Fault {
    const NAME: &'static str = "fault";
}

pub(super) const FAULT: Handle = handle! {
    /// Delays or fails requests, to test clients.
    Fault::NAME, FaultKeys => |keys: FaultKeys| {
        let fault = Fault {
            delay: keys.delay,
            delay_after: keys.delay_after,
            total: keys.total.map(|total| vec![(1.0, total)]).unwrap_or_default(),
            error_rate: keys.error_rate,
        };
        Route::one(fault, keys.child)
    }
};

section! {
    /// Faults of requests.
    struct FaultKeys {
        /// The route for the requests.
        child: RouteForm,
        /// Delay of each request. Values of more than 64 KiB are not delayed, as they pass through while they
        /// come.
        delay: Time = Duration::ZERO,
        /// Delay of each reply.
        delay_after: Time = Duration::ZERO,
        /// Time that the request takes at least, from its beginning to its reply.
        total: Optional<Time>,
        /// Share of the requests that are answered with an error, after the delay.
        error_rate: Share = 0.0,
    }
}
