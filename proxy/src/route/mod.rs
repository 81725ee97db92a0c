//! Where a request goes and how replies combine.
//!
//! A tree of four shapes: *choose* names one child and keeps nothing, *gather* sends to several and waits by a rule,
//! *attempt* lets a reply decide whether to go on, *wrap* changes or holds a request around one child. The shapes' machinery
//! is in `step` (down) and `combine` (up), once; a handle (folder `handle`, one file each) is only its decision. `copies` is
//! the node of a replicated pool.

mod answer;
mod combine;
mod compile;
mod copies;
mod explain;
mod flight;
mod handle;
mod step;
mod together;
mod tree;

pub(crate) use self::copies::{Opening, Turn};
pub(crate) use self::together::{Ahead, TOGETHER};
pub use self::{
    answer::{Answer, Answers},
    compile::{CompileError, Compiled, Compiler},
    explain::{ExplainError, explain},
    flight::{Change, Flight, Flights, Origin, ReplyTo},
    handle::Random,
    tree::{Children, Leaf, Node, NodeId, Query, Tree, Wait},
};
