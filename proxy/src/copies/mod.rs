//! Copies of a replicated pool: which of them may be read, which must be written, and how one that missed
//! writes is repaired.
//!
//! ```text
//!               a write is missed                 all have acknowledged: the state file is written
//!   current ─────────────────────▶ leaving ─────────────────────────────────────────────▶ out
//!      ▲                                                                                   │ it answers
//!      │ all have acknowledged              it is repaired                                 ▼
//!   opening ◀──────────────────────────────────────────────────────────────────────────  joining
//! ```
//!
//! On the workers, which make no system call and read no clock:
//! * `path`: requests to a pool of copies
//! * `key_lock`: one worker at a time changes a key
//! * `snapshot`: what one worker knows of the states, and what it has seen copies miss
//!
//! On the control thread, which carries messages, opens sockets and runs the tasks (`control/membership/copies`):
//! * `agreement`: the one place that decides, as propose and acknowledge; pure, so that its interleavings can
//!   be tested
//! * `repair`: what is asked of a server whose copy is to be read again, and what is done there
//! * `state_file`: what outlives the process
//! * `departed`: copies that the configuration names no more
//!
//! On both: `state`, what a copy may be used for in each step; `missed`, the writes that it missed; `event`,
//! what a worker tells the control thread.
#![warn(missing_docs)]

mod agreement;
mod departed;
mod event;
mod key_lock;
mod missed;
mod path;
pub mod repair;
mod snapshot;
mod state;
pub mod state_file;

pub(crate) use self::path::LastByte;
pub use self::{
    agreement::{Act, Agreement, CopyStatus, Environment, Proposal, RepairTask},
    departed::Departed,
    event::Event,
    key_lock::{Holder, KeyLock, KeyLocks, LockMode},
    missed::{EVERYTHING, MissedKeys, MissedWrites, NOTHING},
    path::{Membership, Operation, WorkerCopies, WorkerFleet},
    snapshot::Snapshot,
    state::CopyState,
};
