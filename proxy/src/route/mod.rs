//! Where a request goes and how replies combine.
//!
//! A tree of four shapes: *choose* names one child and keeps nothing, *gather* sends to several and waits by a rule,
//! *attempt* lets a reply decide whether to go on, *wrap* changes or holds a request around one child. The shapes' machinery
//! is in `step` (down) and `combine` (up), once; a handle (folder `handle`, one file each) is only its decision. A replicated
//! pool is one node, whose requests `crate::copies` serves.

mod answer;
mod batch;
mod combine;
mod compile;
mod explain;
mod flight;
mod handle;
mod order;
mod park;
mod router;
mod step;
mod timer;
mod tree;
mod walk;

pub(crate) use self::batch::{BATCH, Pending};
pub use self::{
    answer::{Answer, Answers},
    compile::{CompileError, Compiled, Compiler},
    explain::{Asker, ExplainError, explain},
    flight::{Flight, FlightId, Flights, Origin, ReplyTo},
    handle::Random,
    order::{Order, Orders},
    router::Router,
    timer::{Sleeper, Timer},
    tree::{Children, Copies, Leaf, Node, NodeId, Query, Tree, Wait},
    walk::Walk,
};
