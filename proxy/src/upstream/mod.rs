//! Connections to servers: lanes.
//!
//! A *shared* lane carries whole requests of many clients, pipelined: its queue says whom each reply is for. A *bulk* lane
//! carries one message at a time, as it comes. A lane whose server announces a large reply becomes the bulk lane of the
//! client that asked, if nobody else waits behind it; else the reply is collected, so that those behind it do not
//! wait for a slow reader.

mod download;
mod fail;
mod lane;
mod open;
mod receive;

pub use self::fail::reason;
pub use self::lane::{Download, Lane, Lanes, Phase, Waiter};
