//! HTTP origins: requests, replies, and the time for which a reply may be kept.
//!
//! ```text
//!  fetch      one request to an origin, and its answer
//!  fields     the fields of a reply that say how long it may be kept
//!  freshness  how long that is, for a shared cache
//!  terms      what follows from them for one entry of the store
//! ```
//!
//! The origin's value of a key is kept once, without a protocol's framing: each protocol makes its own reply
//! of it.

mod fetch;
mod fields;
mod freshness;
mod terms;

use std::time::Duration;

pub use self::{
    fetch::{Failure, Fetch, OriginReply},
    fields::Fields,
    freshness::freshness,
    terms::{Terms, Validator},
};
use crate::config::schema::{NearOrigin, OriginUrl};

/// The form of a value in the store.
pub const VALUE: &[u8] = b"";
/// The form of an error, which is kept beside the value that it may not end.
pub const ERROR: &[u8] = b"!";

/// An HTTP origin, as a node of the tree knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpOrigin {
    /// The URL of a key.
    pub url: OriginUrl,
    /// The time for a whole fetch.
    pub timeout: Duration,
    /// The most requests that are under way at once.
    pub requests: usize,
}

impl From<&NearOrigin> for HttpOrigin {
    fn from(origin: &NearOrigin) -> Self {
        Self {
            url: origin.url.clone(),
            timeout: origin.timeout,
            requests: origin.requests as usize,
        }
    }
}
