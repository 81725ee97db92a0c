//! Who the servers are, how far away, and in what state.
#![warn(missing_docs)]

mod address;
#[allow(missing_docs)]
pub mod copies;
mod distance;
mod health;
mod member;
pub mod probe;
mod registry;

pub use self::{
    address::Address,
    distance::{Distance, Here},
    health::{Eject, Failure, Health, State},
    member::{Member, MemberId, PoolId},
    registry::{AddressError, Registry},
};
