//! Members: the servers, their distance and their state.

pub mod discovery;
pub mod endpoints;

mod address;
mod distance;
mod draining;
mod health;
mod host;
mod identity;
mod localities;
mod machine;
mod member;
mod pool;
mod quota;
mod registry;
mod self_description;
mod turn;

pub use self::{
    address::Address,
    distance::{Distance, DistanceSource, OwnLocation},
    draining::Draining,
    health::{Eject, Failure, Health, HealthState, changes as health_changes},
    host::host_id,
    identity::ServerIdentity,
    localities::{
        BadSnapshot, ClientSource, ContainerId, LIMIT as SNAPSHOT_BYTES, Localities, Locality, Rank,
    },
    machine::Machine,
    member::{Member, MemberId},
    pool::{Pool, PoolId},
    quota::{Quota, QuotaWish},
    registry::{AddressError, Registry},
    self_description::SelfDescription,
    turn::Turn,
};
