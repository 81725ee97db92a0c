//! Follows the endpoints of Services at the API server of Kubernetes.
//!
//! ```text
//!  what a pod is given ─▶ access ─▶ client ─ list, then a watch ─▶ watcher ─▶ slices ─▶ choice
//! ```
//!
//! * `access`: where the API server is, and what this process shows it
//! * `client`: one request; `lines`: the lines of a reply without end
//! * `watcher`: a list, and what changes behind it; `pauses`: those between two tries
//! * `failure`: why the API server tells nothing, and what an operator can do about it
//!
//! Invariant: a failure, whatever it is, leaves what is known as it is. Invariant: what a reply can make this
//! process keep is bounded.

mod access;
mod client;
mod failure;
mod lines;
mod pauses;
mod watcher;

pub(in crate::control) use self::failure::ServiceFailure;
pub(in crate::control) use self::{pauses::Pauses, watcher::Watcher};
