//! Links to the peers of a fleet. Each worker has one to every other peer, over which it coordinates its
//! changes and asks, and one from a worker of every peer, at whose other end it is a keeper.
//!
//! * `link`: one connection, and what waits for an answer on it
//! * `links`: all of one worker
//! * `receive`: from bytes to frames, which `copies::path::fleet` serves
//! * `event`: what a worker tells the control thread, which makes the connections

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
