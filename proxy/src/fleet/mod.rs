//! A fleet: proxies that keep one promise together. This folder is pure: it reads no clock, opens no socket
//! and starts no thread, so that a model can drive it (`guard/tests/fleet_model`).
//!
//! * `view`: the numbered list of peers, and what each of them has announced
//! * `stamp`: the order of all changes
//! * `keeper`: the rules by which the copies of all peers stay equal
//! * `lease`: the end of this peer's right to answer; `leadership`: the leader's state of all peers, and its
//!   decisions
//! * `roster`: the fleet as the voters agreed on it; `difference`: from one roster to the next; `cause`: why
//!   a peer leaves
//! * `voters`: the peers that vote
//! * `first_start`: what a proxy without a fleet does
#![warn(missing_docs)]

mod cause;
mod difference;
mod first_start;
pub mod keeper;
mod leadership;
mod lease;
mod roster;
mod stamp;
mod view;
mod voters;

pub use self::{
    cause::Cause,
    difference::Difference,
    first_start::{Answer, FirstStart, Sight, Waiting, first_start, lowest},
    keeper::Keeper,
    leadership::{Act, Candidate, Grant, Heartbeat, Leadership},
    lease::Lease,
    roster::{Change, Roster},
    stamp::Stamp,
    view::{Peer, Slot, Stay, View},
    voters::{Present, Voter, choose},
};
