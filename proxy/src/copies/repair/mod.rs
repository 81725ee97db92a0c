//! The repair of a copy that missed writes, on the control thread.
//!
//! * `plan`: the steps of a repair, which depend on the life that the server is in
//! * `client`: asks the server and does it, over a connection that the control thread has opened
//! * `orphans`: connections that the process before this one has left
//! * `error`: errors of a repair

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
