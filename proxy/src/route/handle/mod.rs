//! The handles of the routes, one file each: a handle is its decision, and the reason that it gives for it.

mod all;
mod by_client;
mod by_key_pattern;
mod by_operation;
mod by_prefix;
mod by_routing_prefix;
mod failover;
mod fault;
mod hash;
mod hash_stop;
mod host_id;
mod key_part;
mod latest;
mod log;
mod miss_failover;
mod modify_key;
mod modify_ttl;
mod nearest;
mod pool_state;
mod random;
mod round_robin;
mod share_anew;

pub use self::random::Random;
pub(super) use self::{
    all::name as gather_name,
    by_client::ByClient,
    by_key_pattern::ByKeyPattern,
    by_operation::{ByOperation, CLASSES},
    by_prefix::ByPrefix,
    by_routing_prefix::ByRoutingPrefix,
    failover::{Failover, Tokens},
    fault::{Delay, Fail},
    hash::HashRoute,
    hash_stop::HashStop,
    host_id::HostId,
    key_part::{ByPart, Parts},
    latest::chosen as latest_of,
    log::Log,
    miss_failover::MissFailover,
    modify_key::ModifyKey,
    modify_ttl::ModifyTtl,
    nearest::Nearest,
    pool_state::{Assigned, Held, Kept, Redirected},
    random::RandomChild,
    round_robin::RoundRobin,
    share_anew::ShareAnew,
};
