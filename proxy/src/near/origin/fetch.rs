//! One request to an origin, and its result.

use std::{fmt, sync::Arc};

use proxima_wire::message::Outcome;

use super::{HttpOrigin, Terms, Validator};

/// A request to an origin.
#[derive(Clone)]
pub struct Fetch {
    /// The origin.
    pub origin: Arc<HttpOrigin>,
    /// Path and query.
    pub target: String,
    /// The most bytes of a value.
    pub largest: u64,
    /// The validator that shows whether the kept value is still the origin's. `None` if no value is kept.
    pub validator: Option<Arc<Validator>>,
}

/// The client's key is not shown.
impl fmt::Debug for Fetch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fetch(from {})", self.origin.url.authority())
    }
}

/// An origin's reply.
#[derive(Clone, Debug)]
pub enum OriginReply {
    /// The value. `None` in place of terms: it may not be kept.
    Value(Arc<[u8]>, Option<Terms>),
    /// There is none.
    Missing(Option<Terms>),
    /// The kept value is still the origin's.
    Same(Option<Terms>),
    /// The fetch has failed.
    Failed(Failure),
}

/// Why there is no answer of an origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// How the request ended.
    pub outcome: Outcome,
    /// The reason, in words for the client.
    pub text: String,
    /// The origin has failed, and is left alone for a moment. Otherwise it was not asked.
    pub is_origins: bool,
}
