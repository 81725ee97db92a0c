//! How a copy that missed writes is repaired, on the control thread.
//!
//! * `plan`: what must be done, by the life in which the server is
//! * `client`: asks the server and does it, over a connection that the control thread has opened
//! * `orphans`: connections that the process before this one has left
//! * `error`: why a copy was not repaired

mod client;
mod error;
mod orphans;
mod plan;

use std::time::Duration;

pub use self::{
    client::{Connections, Exchange, RepairClient},
    error::RepairError,
    orphans::{Orphans, Predecessor},
    plan::{Remedy, RepairPlan, RepairReport},
};

/// The wait where addresses prove nothing. This long after a server answers again, it has executed all that
/// its other connections held, or never will.
const UNPROVEN: Duration = Duration::from_secs(10);
