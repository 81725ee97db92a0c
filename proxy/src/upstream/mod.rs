//! Connections to servers: lanes.
//!
//! A *shared* lane carries complete requests of many clients, pipelined: its queue says where each reply
//! goes. A *bulk* lane carries one message at a time, as it comes. A *dedicated* lane belongs to one client
//! (`dedicated.rs`); clients that find none free wait in turn (`queue.rs`).
//!
//! A lane whose server announces a large reply becomes the bulk lane of the client that asked, if no other
//! request waits behind the reply and there is a place. Otherwise the reply is buffered, and the requests
//! behind it do not wait for a slow reader. A slow reader delays them by at most half the time-out
//! (`hold.rs`). A large message that hardly moves loses its place when others want it (`pace.rs`).

mod again;
mod arrival;
mod dedicated;
mod download;
mod end;
mod fit;
mod hold;
mod lane;
mod late;
mod limited;
mod login;
mod logins;
mod open;
mod pace;
mod proof;
mod push;
mod queue;
mod receive;
mod send;
mod sent;
mod servers;

use self::end::UNREPAIRED;
use self::{
    again::Trial,
    arrival::Arrival,
    dedicated::Dedicated,
    fit::Unwritten,
    hold::Hold,
    lane::{Download, Lanes, Phase, Waiter},
    late::Uptake,
    limited::Unfit,
    logins::Logins,
    pace::Pace,
    proof::Proofs,
    queue::Queued,
};
pub(crate) use self::{dedicated::ELSEWHERE, queue::Wants};
pub use self::{
    lane::{BULK_LANES, Lane, LaneId, STREAMED},
    logins::{LOGINS, RESERVED},
    servers::Servers,
};
