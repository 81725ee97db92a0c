//! Connections to servers: lanes.
//!
//! A *shared* lane carries whole requests of many clients, pipelined: its queue says whom each reply is for. A *bulk* lane
//! carries one message at a time, as it comes. A *dedicated* lane is one client's alone (`dedicated.rs`). A lane whose server announces a large reply becomes the bulk lane of the
//! client that asked, if nobody else waits behind it and there is a place; else the reply is collected, so that those behind
//! it do not wait for a slow reader. However slow, he delays them by half the time-out at most (`hold.rs`), and a large message
//! that hardly moves loses its place when others want it (`pace.rs`).

mod dedicated;
mod download;
mod fail;
mod hold;
mod lane;
mod late;
mod limited;
mod login;
mod logins;
mod open;
mod pace;
mod receive;
mod send;
mod servers;

use self::fail::UNREPAIRED;
pub use self::{
    dedicated::DEDICATED,
    fail::reason,
    lane::{BULK_LANES, Lane, LaneId, STREAMED},
    logins::LOGINS,
    servers::Servers,
};
use self::{
    dedicated::Dedicated,
    hold::Hold,
    lane::{Download, Lanes, Phase, Waiter},
    late::Uptake,
    logins::Logins,
    pace::Pace,
};
