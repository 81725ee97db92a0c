//! The handles: name, meaning, parameters, and the resulting route.

use super::{
    forms::*,
    near::NearRouteForm,
    parameters::*,
    route::{ChildrenForm, RouteForm},
};
use crate::config::{
    Diagnostic,
    document::Node,
    form::{Form, Shape},
    reading::Reading,
    schema::{ErrorReply, Fault, OfLogin, Rates, Route, SlowWarmUpSettings},
};

/// One handle.
#[derive(Debug)]
pub(in crate::config) struct Handle {
    pub(in crate::config) name: &'static str,
    pub(in crate::config) about: &'static str,
    /// The handle has no parameters: its name alone is the route.
    pub(in crate::config) is_word: bool,
    pub(in crate::config) shape: fn() -> Shape,
    pub(super) read: fn(&Node, &mut Reading) -> Result<Route, Diagnostic>,
}

macro_rules! handles {
    ($( $(#[doc = $about:literal])+ $name:ident $(: $form:ty)? => $make:expr; )+) => {
        /// All handles, in the order of the reference.
        pub(in crate::config) static HANDLES: &[Handle] = &[$(
            handles!(@one stringify!($name), concat!($($about, "\n"),+), $($form,)? $make),
        )+];
    };
    (@one $name:expr, $about:expr, $form:ty, $make:expr) => {
        Handle {
            name: $name,
            about: $about,
            is_word: false,
            shape: <$form as Form>::shape,
            read: |node, cx| Ok($make(<$form as Form>::read(node, cx)?)),
        }
    };
    (@one $name:expr, $about:expr, $make:expr) => {
        Handle {
            name: $name,
            about: $about,
            is_word: true,
            shape: || Shape::Words(vec![($name, "")]),
            read: |node, cx| match node.scalar() {
                Some(text) if text == $name || node.is_null() => Ok($make),
                _ => Err(cx.expected(node, "nothing").with_remedy("this handle stands alone, as a word")),
            },
        }
    };
}

handles! {
    /// One server of the pool, chosen by the pool's `hash`. Where a route is expected, the pool's name alone
    /// means this.
    pool: PoolRef => Route::Pool;
    /// One server: `host:port`, or `pool/name` for one of a pool.
    member: MemberRef => Route::Member;
    /// The store in this process.
    embedded => Route::Embedded;
    /// Answers at once as an empty cache would, and stores nothing. For Redis that is, of each command, the
    /// reply of an empty server: a write is answered as if it had been executed, a command that blocks as if
    /// its time were over, and EXEC of a transaction that has come in one piece by the replies to its
    /// commands. What only a server can say (`SCRIPT LOAD`, `TIME`) or keep (`WATCH`, a transaction step by
    /// step) is refused.
    null => Route::Null;
    /// Answers an error with this text.
    error: ErrorReplyKeys => |keys: ErrorReplyKeys| Route::Error(ErrorReply {
        outcome: keys.result,
        text: keys.text,
    });
    /// One child, chosen by the key.
    hash: HashRouteForm => |route| route;
    /// The nearest child that is up: same process, same NUMA node and socket as the client (where `nodes` is
    /// set), same host, same zone, elsewhere.
    nearest: ChildrenForm => Route::Nearest;
    /// A child for each command or group of commands. A command's own entry wins over its group's. A command
    /// without either goes to `default`, and without that is answered as by `null`. An `mg` with `N` may
    /// store and is a write, one with `T` is a touch, any other is a read. For Redis the words are its
    /// commands that have a key, and the same groups.
    by_operation: OperationsForm => |(operations, default)| Route::ByOperation { operations, default };
    /// The child whose prefix the key begins with. If there are several, the longest prefix wins.
    by_prefix: ByPrefixKeys => |keys: ByPrefixKeys| Route::ByPrefix {
        prefixes: keys.prefixes.into_iter().map(|(name, route)| (name.text, route)).collect(),
        default: keys.default.map(Box::new),
    };
    /// The child of the user as whom a client has logged in, for MySQL.
    by_user: ByUserKeys => |keys: ByUserKeys| Route::ByLogin {
        of: OfLogin::User,
        names: keys.users.into_iter().map(|(name, route)| (name.text, route)).collect(),
        default: keys.default.map(Box::new),
    };
    /// The child of the schema that a client uses, for MySQL. `USE` goes to the route of the schema that it
    /// names, and any other statement to that of the client's own, whatever schemas its text names.
    by_schema: BySchemaKeys => |keys: BySchemaKeys| Route::ByLogin {
        of: OfLogin::Schema,
        names: keys.schemas.into_iter().map(|(name, route)| (name.text, route)).collect(),
        default: keys.default.map(Box::new),
    };
    /// The child of the first pattern that the whole key matches.
    by_key_pattern: ByKeyPatternKeys => |keys: ByKeyPatternKeys| Route::ByKeyPattern {
        patterns: keys.patterns.into_iter().map(|(name, route)| (name.text, route)).collect(),
        default: keys.default.map(Box::new),
    };
    /// Any child.
    random: ChildrenForm => Route::Random;
    /// The children in turn, counted by each worker.
    round_robin: ChildrenForm => Route::RoundRobin;
    /// One child, the same for every request of this host.
    host_id: HostIdKeys => |keys: HostIdKeys| Route::HostId { children: keys.children, salt: keys.salt };
    /// One child for each client, chosen by the client's address. A client of a Unix socket gets an error.
    by_client: ByClientKeys => |keys: ByClientKeys| Route::ByClient {
        children: keys.children,
        offset: keys.offset.into(),
    };
    /// A few of the children, chosen and put in order once for each host. The first one gets every request;
    /// after an error the next one is asked, as by `failover`.
    latest: LatestForm => |route| route;
    /// Sends to all children. It answers when all have, with the worst reply.
    all_sync: ChildrenForm => Route::AllSync;
    /// Sends to all children. It answers with the reply on which more than half agree.
    all_majority: ChildrenForm => Route::AllMajority;
    /// Sends to all children. It answers with the first reply that is no error.
    all_fastest: ChildrenForm => Route::AllFastest;
    /// Sends to all children. It answers with the first child's reply.
    all_initial: ChildrenForm => Route::AllInitial;
    /// Sends to all children. It answers at once as `null` does.
    all_async: ChildrenForm => Route::AllAsync;
    /// The first child. While the reply is an error that another child may not have, the next one is asked.
    failover: FailoverForm => |route| route;
    /// Reads (`gat`, but not `touch`) and deletes ask the children in turn until one has the key. All other
    /// commands go to the first child.
    miss_failover: MissFailoverKeys => |keys: MissFailoverKeys| Route::MissFailover {
        children: keys.children,
        best_on_error: keys.best_on_error,
    };
    /// Keeps replies of the child as the bytes that clients get, and answers with them until their time is
    /// over or a request changes their key. What changes a key drops it before its client is answered. Many
    /// that miss one key cause one request.
    near: NearRouteForm => Route::Near;
    /// `failover` whose later children store nothing for long: expiry times on their way there are limited as
    /// by `modify_ttl` with `min`, also those of `touch`, `gat` and the meta commands' flags.
    failover_with_ttl: FailoverWithTtlKeys => |keys: FailoverWithTtlKeys| Route::FailoverWithTtl {
        normal: Box::new(keys.normal),
        failover: keys.failover,
        ttl: keys.ttl,
        rules: keys.errors.into(),
    };
    /// Changes the key on its way to the child.
    modify_key: ModifyKeyKeys => |keys: ModifyKeyKeys| Route::ModifyKey {
        child: Box::new(keys.child),
        routing_prefix: None,
        ensure_prefix: keys.ensure_prefix,
        replace_prefix: keys.replace_prefix,
        in_place: keys.in_place,
        suffix: keys.suffix,
    };
    /// Moves from one route to another, key by key, in four phases. Before `start` everything goes to `from`.
    /// Then deletes go to both. One `interval` later the first keys move, and by the end of the second
    /// `interval` all have. From then on everything goes to `to`.
    migrate: MigrateKeys => |keys: MigrateKeys| Route::Migrate {
        from: Box::new(keys.from),
        to: Box::new(keys.to),
        start: keys.start.into(),
        interval: keys.interval,
    };
    /// Several copies of hot shards. The shard is what stands between the first two colons of a key. Each
    /// host uses one of the copies, whose key has two letters more behind the shard; deletes go to all.
    shard_split: ShardSplitKeys => |keys: ShardSplitKeys| Route::ShardSplit {
        child: Box::new(keys.child),
        splits: keys.splits.into_iter().map(|(name, split)| (name.text, split)).collect(),
    };
    /// Several copies of every key. Each host uses one of them, whose key is `KEY::N`; deletes go to all.
    key_split: KeySplitKeys => |keys: KeySplitKeys| Route::KeySplit {
        child: Box::new(keys.child),
        copies: keys.copies,
        all_sync: keys.all_sync,
        first_hit: keys.first_hit,
    };
    /// The routes below look at the first parts of the key alone: hashes, prefixes, patterns. Servers get the
    /// whole key.
    key_part: KeyPartKeys => |keys: KeyPartKeys| Route::KeyPart {
        child: Box::new(keys.child),
        parts: keys.parts as usize,
        delimiter: keys.delimiter,
    };
    /// Refuses keys with a `|#|`, unless they begin with one of the prefixes.
    hash_stop: HashStopKeys => |keys: HashStopKeys| Route::HashStop {
        child: Box::new(keys.child),
        prefixes: keys.prefixes,
    };
    /// Copies of some requests go to other routes, whose replies nobody gets. The first route answers.
    shadow: ShadowKeysOf => |keys: ShadowKeysOf| Route::Shadow {
        child: Box::new(keys.child),
        shadows: keys.shadows,
    };
    /// Limits the requests a second, counted by each worker. More than that go to `fallback`, and without
    /// that are answered as by `null`. Arithmetic and `touch` are not limited. A client of Redis is told that
    /// a write was done which was over the limit: where that must not be (a lock by `SET NX`), let `fallback`
    /// be an `error`. In a transaction step by step the command is refused, and `EXEC` aborts.
    rate_limit: RateLimitKeys => |keys: RateLimitKeys| Route::RateLimit {
        child: Box::new(keys.child),
        rates: Rates { gets: keys.gets, sets: keys.sets, deletes: keys.deletes },
        fallback: keys.fallback.map(Box::new),
    };
    /// Limits the requests under way to the child, counted by each worker. Others wait, and clients take
    /// turns. Values of more than 64 KiB do not wait, as they pass through while they come.
    outstanding_limit: OutstandingLimitKeys => |keys: OutstandingLimitKeys| Route::OutstandingLimit {
        child: Box::new(keys.child),
        most: keys.requests as usize,
        queue: None,
    };
    /// Fills a cold route from a warm one: `get`, `gets`, `gat`, `gats` and `lease-get` of what the cold one
    /// has not are answered from the warm one, whose value is added to the cold one. Everything else goes to
    /// the cold one. For memcached alone, as all routes that serve a request in several steps.
    warm_up: WarmUpKeys => |keys: WarmUpKeys| Route::WarmUp {
        cold: Box::new(keys.cold),
        warm: Box::new(keys.warm),
        ttl: keys.ttl,
    };
    /// Spares a server that finds few keys, as it is fresh: a part of its reads goes to another route.
    slow_warm_up: SlowWarmUpKeys => |keys: SlowWarmUpKeys| Route::SlowWarmUp {
        child: Box::new(keys.child),
        failover: Box::new(keys.failover),
        settings: SlowWarmUpSettings {
            enable_threshold: keys.enable_threshold,
            disable_threshold: keys.disable_threshold,
            start: keys.start,
            step: keys.step,
            min_requests: keys.min_requests.into(),
        },
    };
    /// A route that answers, and another one that is filled from it and kept alike in the background: what is
    /// read is added there where it is missing, and what was stored is set. Deletes go to both.
    staging: StagingKeys => |keys: StagingKeys| Route::Staging {
        warm: Box::new(keys.warm),
        staging: Box::new(keys.staging),
    };
    /// A small cache before a large one: `get`, `gat` and `gats` of what the first has not are answered by
    /// the second, and added to the first. Everything else goes to the first.
    l1_l2_cache: L1L2CacheKeys => |keys: L1L2CacheKeys| Route::L1L2Cache {
        l1: Box::new(keys.l1),
        l2: Box::new(keys.l2),
        ttl: keys.ttl,
        misses: (keys.miss_period > 0).then_some((keys.miss_ttl, keys.miss_period)),
    };
    /// Large values in a second cache: a `set` or `lease-set` of one stores it there, and a marker in the
    /// first. `get`, `gets` and `lease-get` follow the marker. Everything else goes to the first.
    size_split: SizeSplitKeys => |keys: SizeSplitKeys| Route::SizeSplit {
        l1: Box::new(keys.l1),
        l2: Box::new(keys.l2),
        threshold: keys.threshold,
        ttl_threshold: keys.ttl_threshold,
        failure_ttl: keys.failure_ttl,
        both: keys.both,
        retries: keys.retries,
        hides_server: false,
    };
    /// Values that are too large for their server, in pieces. `get`, `gets`, `gat`, `gats` and `lease-get`
    /// join them.
    big_value: BigValueKeys => |keys: BigValueKeys| Route::BigValue {
        child: Box::new(keys.child),
        threshold: keys.threshold,
        batch: keys.batch,
        hides_flag: keys.hide_flag,
    };
    /// One route for some keys, and another one for the rest.
    by_key: ByKeyKeys => |keys: ByKeyKeys| Route::ByKey {
        keys: keys.keys,
        listed: Box::new(keys.listed),
        default: Box::new(keys.default),
    };
    /// Changes the expiry time on its way to the child.
    modify_ttl: ModifyTtlKeys => |keys: ModifyTtlKeys| Route::ModifyTtl {
        child: Box::new(keys.child),
        ttl: keys.ttl,
        action: keys.action,
    };
    /// Logs each request and its reply.
    log: RouteForm => |child| Route::Log(Box::new(child));
    /// Delays or fails requests, to test clients.
    fault: FaultKeys => |keys: FaultKeys| Route::Fault {
        child: Box::new(keys.child),
        fault: Fault {
            delay: keys.delay,
            delay_after: keys.delay_after,
            total: keys.total.map(|total| vec![(1.0, total)]).unwrap_or_default(),
            error_rate: keys.error_rate,
        },
    };
}
