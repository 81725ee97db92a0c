//! A fleet: proxies that keep one promise together. This folder is pure: it reads no clock, opens no socket
//! and starts no thread, so that a model can drive it (`tests/fleet_model`).
//!
//! * `view`: the numbered list of peers, and what each of them has announced
//! * `stamp`: the order of all changes
#![warn(missing_docs)]

mod stamp;
mod view;

pub use self::{
    stamp::Stamp,
    view::{Peer, Slot, Stay, View},
};
