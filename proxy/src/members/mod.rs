//! Who the servers are, how far away, and in what state.

pub mod copies;
mod distance;
mod health;
mod member;
pub mod probe;
mod registry;

pub use self::{
    distance::{Distance, Here},
    health::{Eject, Failure, Health, State},
    member::{Member, MemberId},
    registry::{AddressError, Registry},
};
