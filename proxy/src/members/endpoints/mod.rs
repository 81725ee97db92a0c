//! The endpoints of a Service of Kubernetes, as its EndpointSlices name them.
//!
//! ```text
//!  list ──▶ slice ─┐
//!                  ├▶ slices: all of one Service ─▶ choice ─▶ endpoints that are servers
//!  watch ─▶ event ─┘
//! ```
//!
//! * `slice`: one object of the API server; `event`: one line of a watch
//! * `slices`: all slices of a Service, as lists and events leave them
//! * `choice`: the endpoints that are servers; `endpoint`: one of them; `list`: all of them as they are kept
//! * `bad_answer`: why an answer changes nothing
//!
//! Invariant: an answer is taken whole, or it changes nothing.

mod bad_answer;
mod choice;
mod endpoint;
mod event;
mod list;
mod slice;
mod slices;
#[cfg(test)]
mod tests;

pub use self::{
    bad_answer::BadAnswer,
    choice::Choice,
    endpoint::{Pod, ServiceEndpoint},
    list::EndpointList,
    slices::{Listing, Slices},
};
