//! The handles of the routes, one file each: a handle is its decision, the reason that it gives for it, and
//! how its nodes are built from what the configuration says.

mod all;
mod big_value;
mod by_client;
mod by_key;
mod by_key_pattern;
mod by_login;
mod by_operation;
mod by_prefix;
mod by_routing_prefix;
mod consistency;
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
mod sample;
mod shadow;
mod shadow_leases;
mod shard_split;
mod share_anew;
mod size_split;
mod slow_requests;
mod slow_warm_up;
mod spool;
mod staging;
mod strip_prefix;
mod tap;
mod time_left;
mod warm_up;

pub(super) use self::{
    all::name as gather_name,
    by_client::ByClient,
    failover::{Failover, Policy, Tokens},
    hash::HashRoute,
    hash_order::HashOrder,
    hidden_prefix::{BareKey, behind_prefix},
    in_turn::InTurn,
    insert::{Insert, Place},
    key_part::{ByPart, Parts},
    lease_pairing::LeasePairing,
    least_failures::LeastFailures,
    modify_key::ModifyKey,
    modify_ttl::ModifyTtl,
    outstanding_limit::OutstandingLimit,
    pool_state::{Assigned, Held, Redirected},
    random::RandomChild,
    rendezvous_order::RendezvousOrder,
    shadow_leases::ShadowLeases,
    share_anew::ShareAnew,
    slow_requests::TimedRequests,
    strip_prefix::StripPrefix,
    tap::Tap,
    time_left::TimeLeft,
};
use super::{
    compile::{Build, CompileError, Maker, Named},
    tree::NodeId,
};
use crate::{
    config::routes::{Children, Keyed, Of, One, Pair, Route},
    random::Random,
};

/// Builds the routes of a shape, each as its file says.
macro_rules! build {
    ($shape:ident over $below:ty: $($spec:ident)+) => {
        impl<'a> Build<'a, $below> for $shape {
            fn build(&'a self, below: $below, maker: &mut Maker<'_, 'a>) -> Result<NodeId, CompileError> {
                match self {
                    $(Self::$spec(spec) => spec.build(below, maker),)+
                }
            }
        }
    };
}

build! {
    One over &'a Route: ModifyKey ModifyTtl KeyPart HashStop ShardSplit KeySplit OutstandingLimit BigValue Log
        Spool Fault ConsistencyRoute
}

build! {
    Of over &'a Children: ByHash Nearest Random RoundRobin HostId ByClient Latest AllSync AllMajority
        AllFastest AllInitial AllAsync Failover MissFailover
}

build! {
    Pair over [&'a Route; 2]: Migrate WarmUp SlowWarmUp Staging L1L2Cache SizeSplit RateLimit ByKey
}

build! {
    Keyed over Named<'a>: ByOperation ByPrefix ByUser BySchema ByKeyPattern ByRoutingPrefix
}
