//! Links to the peers of a fleet. Each worker has one link to every other peer, over which it sends its
//! changes and questions as a coordinator, and one from a worker of every other peer, for which it is a
//! keeper.
//!
//! * `link`: one connection, with its role
//! * `links`: all links of one worker
//! * `receive`: from bytes to frames, which `copies::path::fleet` serves
//! * `event`: events from a worker to the control thread, which makes the connections

mod event;
mod link;
mod links;
mod receive;

pub(crate) use self::receive::FrameOutcome;
pub use self::{
    event::Event,
    link::{Link, Role},
    links::Links,
};
