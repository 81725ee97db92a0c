//! The client part accepts clients, finds their requests and gives them their replies in order.

mod answer;
mod clients;
mod connection;
mod half_closed;
mod lease;
mod listen;
mod located;
mod open;
mod place;
mod prefetch;
mod register;
mod request;
mod room;
mod session;
mod slots;
mod split;
mod stats;
mod timeouts;
mod upload;

use self::connection::{Stage, Upload, Wanted};
pub use self::{
    clients::Clients,
    connection::{Client, ClientId},
    listen::{Bound, bind, permit},
    register::Register,
    room::LARGE,
    session::WHOLE,
    upload::HIGH_WATER,
};
use self::{
    room::Room,
    slots::{Part, Slots},
    split::Keys,
};
