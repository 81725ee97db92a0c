//! The handles of the routes, one file each: a handle is its decision, and the reason that it gives for it.

mod all;
mod big_value;
mod by_client;
mod by_key;
mod by_key_pattern;
mod by_login;
mod by_operation;
mod by_prefix;
mod by_routing_prefix;
mod failover;
mod fault;
mod hash;
mod hash_order;
mod hash_stop;
mod hidden_prefix;
mod host_id;
mod in_turn;
mod insert;
mod key_part;
mod key_split;
mod l1_l2_cache;
mod latest;
mod lease_pairing;
mod least_failures;
mod log;
mod migrate;
mod miss_failover;
mod modify_key;
mod modify_ttl;
mod nearest;
mod outstanding_limit;
mod pool_state;
mod random;
mod rate_limit;
mod rendezvous_order;
mod round_robin;
mod shadow;
mod shadow_leases;
mod shard_split;
mod share_anew;
mod size_split;
mod slow_warm_up;
mod staging;
mod strip_prefix;
mod time_left;
mod warm_up;

pub(super) use self::{
    all::name as gather_name,
    big_value::BigValue,
    by_client::ByClient,
    by_key::ByKey,
    by_key_pattern::ByKeyPattern,
    by_login::ByLogin,
    by_operation::{ByOperation, CLASSES},
    by_prefix::ByPrefix,
    by_routing_prefix::{ByPrefixPattern, ByRoutingPrefix},
    failover::{Failover, Policy, Tokens},
    fault::{After, Delay, Fail, Total},
    hash::HashRoute,
    hash_order::HashOrder,
    hash_stop::HashStop,
    hidden_prefix::{BareKey, HidePrefix, behind_prefix},
    host_id::HostId,
    in_turn::InTurn,
    insert::{Insert, Place},
    key_part::{ByPart, Parts},
    key_split::{FirstHit, KeySplit},
    l1_l2_cache::{L1L2Cache, Misses},
    latest::chosen as latest_of,
    lease_pairing::LeasePairing,
    least_failures::LeastFailures,
    log::Log,
    migrate::{Fill, Migrate},
    miss_failover::MissFailover,
    modify_key::ModifyKey,
    modify_ttl::ModifyTtl,
    nearest::Nearest,
    outstanding_limit::OutstandingLimit,
    pool_state::{Assigned, Held, Redirected},
    random::RandomChild,
    rate_limit::{Bucket, RateLimit},
    rendezvous_order::RendezvousOrder,
    round_robin::RoundRobin,
    shadow::{Sample, Sampled, Shadow},
    shadow_leases::ShadowLeases,
    shard_split::{ShardSplit, Split},
    share_anew::ShareAnew,
    size_split::SizeSplit,
    slow_warm_up::{HitRate, SlowWarmUp, WatchHits},
    staging::Staging,
    strip_prefix::StripPrefix,
    time_left::TimeLeft,
    warm_up::{AddedExpiry, WarmUp},
};
use crate::random::Random;
