//! Follows the endpoints of Services at the API server of Kubernetes.
//!
//! ```text
//!  what a pod is given ─▶ access ─▶ api ─ list, then a watch ─▶ watcher ─▶ slices ─▶ choice
//! ```
//!
//! * `access`: where the API server is, and what this process shows it
//! * `api`: requests; `reply`: one of their replies; `lines`: the lines of a reply without end; `rights`: what the account of a pod needs
//! * `watcher`: a list, and what changes behind it; `pauses`: those between two tries
//! * `lease`: the object by which the pods of a Service agree on their fleet
//! * `failure`: why the API server tells nothing, and what an operator can do about it
//!
//! Invariant: a failure, whatever it is, leaves what is known as it is. Invariant: what a reply can make this
//! process keep is bounded.

mod access;
mod api;
mod failure;
mod lease;
mod lines;
mod pauses;
mod reply;
mod rights;
mod watcher;

pub(in crate::control) use self::{
    access::{api_address, own_namespace},
    api::Api,
    failure::ApiFailure,
    lease::{FleetLease, Held},
    pauses::Pauses,
    rights::SECRETS,
    watcher::{Select, Watcher, list_endpoints},
};
