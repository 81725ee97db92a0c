//! Who the servers are, how far away, and in what state.
#![warn(missing_docs)]

mod address;
#[allow(missing_docs)]
pub mod copies;
mod distance;
mod health;
mod localities;
mod member;
mod pool;
pub mod probe;
mod registry;

pub use self::{
    address::Address,
    distance::{Distance, DistanceSource, Here},
    health::{Eject, Failure, Health, State},
    localities::{
        BadSnapshot, ClientSource, ContainerId, LIMIT as SNAPSHOT_BYTES, Localities, Locality, Rank,
    },
    member::{Member, MemberId},
    pool::{Pool, PoolId},
    registry::{AddressError, Registry},
};
