//! Where a request goes and how replies combine.
//!
//! The tree has nodes of six shapes. *Choose* names one child and keeps nothing. *Gather* sends to several
//! children and waits by a rule. *Fan* sends to one child, and copies to others. *Attempt* lets a reply
//! decide whether to go on. *Script* asks in steps. *Wrap* changes or holds a request around one child. The
//! machinery of the shapes is in `step` (down), `combine` (up) and `script`, once; a handle (folder `handle`,
//! one file each) is only the decision. A replicated pool is one node, whose requests `crate::copies` serves.

mod answer;
mod batch;
mod combine;
mod compile;
mod concerned;
mod example;
mod explain;
mod explained;
mod fleet_pool;
mod flight;
mod glob;
mod group;
mod handle;
mod lease_table;
mod near;
mod order;
mod origin;
mod park;
mod ranks;
mod router;
mod samples;
mod script;
mod slow_requests;
mod spooled;
mod stateful_pool;
mod step;
mod steps;
mod timing;
mod tree;
mod walk;
mod way;

pub use self::{
    answer::{Answer, Answers},
    compile::{CompileError, Compiled, Compiler, all_near_settings, near_rules, near_settings},
    example::{Example, ExplainError},
    explain::{Asker, explain},
    explained::{Explained, Step},
    fleet_pool::FleetPool,
    flight::{Flight, Flights},
    lease_table::LeaseTable,
    order::{Order, Orders},
    origin::Origin,
    router::Router,
    samples::{Sample, Samples},
    slow_requests::{SlowRequest, SlowRequests, StepTime, WaitedFor},
    stateful_pool::StatefulPool,
    timing::shown_key,
    tree::{Children, Copies, Leaf, NearNode, NearRuleFor, Node, NodeId, Query, Takes, Tree, Wait},
    walk::Walk,
};
pub(crate) use self::{
    batch::{BATCH, Pending},
    concerned::About,
    way::{Branches, Mark},
};
