//! Routes that limit requests.

use super::{
    ErrorReply, Leaf, Route, Spec,
    form::RouteForm,
    spec::{Handle, handle},
};
use crate::config::{
    Diagnostic,
    document::Node,
    form::{Amount, Count, Form, Optional, Shape},
    reading::Reading,
    section::section,
};

/// The limits of `rate_limit`. `None`: no limit.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs)]
pub struct RateLimit {
    pub gets: Option<Rate>,
    pub sets: Option<Rate>,
    pub deletes: Option<Rate>,
}

/// A rate, and what may come at once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// Requests a second.
    pub per_second: f64,
    /// Requests at once.
    pub burst: f64,
}

impl Spec for RateLimit {
    const NAME: &'static str = "rate_limit";
}

pub(super) const RATE_LIMIT: Handle = handle! {
    /// Limits the requests a second, counted by each worker. More than that go to `fallback`, and without
    /// that are answered as by `null`. Arithmetic and `touch` are not limited. A client of Redis is told that
    /// a write was done which was over the limit: where that must not be (a lock by `SET NX`), let `fallback`
    /// be an `error`. In a transaction step by step the command is refused, and `EXEC` aborts.
    RateLimit::NAME, RateLimitKeys => |keys: RateLimitKeys| {
        let RateLimitKeys { child, gets, sets, deletes, fallback } = keys;
        let fallback = fallback.unwrap_or(Route::Leaf(Leaf::OverLimit));
        Route::pair(RateLimit { gets, sets, deletes }, child, fallback)
    }
};

section! {
    /// A route, and the requests a second that it gets at most. A kind without a limit is not limited.
    struct RateLimitKeys {
        /// The route.
        child: RouteForm,
        /// Limit of reads.
        gets: Optional<RateForm>,
        /// Limit of writes.
        sets: Optional<RateForm>,
        /// Limit of deletes.
        deletes: Optional<RateForm>,
        /// The route for what is over a limit.
        fallback: Optional<RouteForm>,
    }
}

section! {
    /// A rate. The requests a second alone are enough.
    #[short(rate)]
    struct RateKeys {
        /// Requests a second.
        rate: Amount,
        /// Requests that may come at once. Without it as many as in a second, and at least one.
        burst: Optional<Amount>,
    }
}

/// A rate.
#[derive(Debug)]
struct RateForm;

impl Form for RateForm {
    type Value = Rate;

    fn shape() -> Shape {
        RateKeys::shape()
    }

    fn read(node: &Node, cx: &mut Reading) -> Result<Rate, Diagnostic> {
        let RateKeys { rate, burst } = RateKeys::read(node, cx)?;
        Ok(Rate {
            per_second: rate,
            burst: burst.unwrap_or(rate.max(1.0)),
        })
    }
}

/// A limit of the requests under way.
#[derive(Clone, Debug, PartialEq)]
pub struct OutstandingLimit {
    /// The most requests.
    pub most: usize,
    /// How many more may wait. `None`: as many as come.
    pub queue: Option<Queue>,
}

/// How many requests may wait.
#[derive(Clone, Debug, PartialEq)]
pub struct Queue {
    /// The most, for each worker.
    pub most: usize,
    /// What further ones are answered.
    pub full: ErrorReply,
}

impl Spec for OutstandingLimit {
    const NAME: &'static str = "outstanding_limit";
}

pub(super) const OUTSTANDING_LIMIT: Handle = handle! {
    /// Limits the requests under way to the child, counted by each worker. Others wait, and clients take
    /// turns. Values of more than 64 KiB do not wait, as they pass through while they come.
    OutstandingLimit::NAME, OutstandingLimitKeys => |keys: OutstandingLimitKeys| {
        let most = keys.requests as usize;
        Route::one(OutstandingLimit { most, queue: None }, keys.child)
    }
};

section! {
    /// A route, and the requests that are under way to it at most.
    struct OutstandingLimitKeys {
        /// The route.
        child: RouteForm,
        /// Requests under way.
        requests: Count<1>,
    }
}
