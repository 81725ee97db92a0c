//! The connections between peers, up to the end of their handshake: TLS, and a word from each end about who
//! it is and what the connection is for. A channel for changes is then a worker's; the others carry requests
//! of control threads.

mod hello;
mod listen;
pub(super) mod packet;
mod stream;

pub(super) use self::{
    hello::{Hello, Purpose, Welcome},
    listen::{Accept, listen},
    stream::{RawLink, Stream, connect},
};
