//! Copies of a replicated pool: which of them may be read, which must be written, and how a copy that missed
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
//! * `snapshot`: one worker's snapshot of the states, and the writes that it saw copies miss
//!
//! On the control thread, which carries messages, opens sockets and runs the tasks
//! (`control/membership/copies`):
//! * `agreement`: decides all states by proposals and acknowledgements; pure, so that its interleavings can
//!   be tested
//! * `repair`: questions to a server whose copy is to be read again, and the repair itself
//! * `state_file`: the state that outlives the process
//! * `departed`: copies that are no longer in the configuration
//!
//! On both: `state`, the states of a copy; `missed`, the writes that it missed; `event`, events from a worker
//! to the control thread.
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
