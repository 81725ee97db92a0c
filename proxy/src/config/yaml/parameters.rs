//! The parameters of handles.

use std::time::Duration;

use proxima_wire::message::Outcome;

use super::{
    forms::{
        ErrorText, ErrorsForm, Pattern, PolicyForm, Prefix, RateForm, SchemaName, ShadowForm, Shard,
        ShardCopiesForm,
    },
    hash::HashForm,
    route::{ChildrenForm, RouteForm},
    users::UserName,
};
use crate::config::{
    form::{Amount, ByName, Character, Count, Flag, List, Optional, Seconds, Share, Size, Text, Time, Word},
    schema::{FailoverPolicy, Shadow, ShardCopies, TtlAction},
    section::section,
};

section! {
    /// Children and a hash. The children alone are enough.
    #[short(children)]
    pub(super) struct HashRouteKeys {
        /// A pool's name for all its servers, or a list of routes.
        children: ChildrenForm,
        /// How the key chooses. The default is the pool's hash, or `ch3` for a list.
        hash: Optional<HashForm>,
    }
}

section! {
    /// Routes by prefix of the key.
    pub(super) struct ByPrefixKeys {
        /// Prefix: route.
        prefixes: ByName<RouteForm, Prefix>,
        /// The route for keys with no such prefix. Without it they are answered with an error.
        default: Optional<RouteForm>,
    }
}

section! {
    /// Routes by user.
    pub(super) struct ByUserKeys {
        /// User: route.
        users: ByName<RouteForm, UserName>,
        /// The route for other users. Without it their statements are answered with an error.
        default: Optional<RouteForm>,
    }
}

section! {
    /// Routes by schema.
    pub(super) struct BySchemaKeys {
        /// Schema: route.
        schemas: ByName<RouteForm, SchemaName>,
        /// The route for other schemas, and for clients that have named none. Without it their statements are
        /// answered with an error.
        default: Optional<RouteForm>,
    }
}

section! {
    /// Routes by pattern of the key.
    pub(super) struct ByKeyPatternKeys {
        /// Pattern: route, tried in the order of the text. `*` stands for any characters, `?` for one.
        patterns: ByName<RouteForm, Pattern>,
        /// The route for keys that match no pattern. Without it they are answered with an error.
        default: Optional<RouteForm>,
    }
}

section! {
    /// An error. The text alone is enough.
    #[short(text)]
    pub(super) struct ErrorReplyKeys {
        /// The text of the error.
        text: ErrorText,
        /// The kind of error, by which other routes know it.
        result: Word<Outcome> = Outcome::LocalError,
    }
}

section! {
    /// Children, of which each client uses one. The children alone are enough.
    #[short(children)]
    pub(super) struct ByClientKeys {
        /// A pool's name for all its servers, or a list of routes.
        children: ChildrenForm,
        /// A number that is added to the choice, so that two such routes do not choose alike.
        offset: Count = 0,
    }
}

section! {
    /// Children, of which each host uses a few. The children alone are enough.
    #[short(children)]
    pub(super) struct LatestKeys {
        /// A pool's name for all its servers, or a list of routes.
        children: ChildrenForm,
        /// The number of children that this host uses.
        count: Count<1> = 5,
        /// Weights from 0 to 1, one for each child. A child of a smaller weight is chosen by fewer hosts.
        weights: Optional<List<Share>>,
        /// Text mixed into the choice, so that two such routes do not choose alike.
        salt: Text = String::new(),
        /// Each worker chooses by itself, not the whole host.
        per_worker: Flag = false,
        /// The errors after which the next child is asked.
        errors: ErrorsForm,
    }
}

section! {
    /// Children, of which each host uses one. The children alone are enough.
    #[short(children)]
    pub(super) struct HostIdKeys {
        /// A pool's name for all its servers, or a list of routes.
        children: ChildrenForm,
        /// Text mixed into the choice, so that two such routes do not choose alike.
        salt: Text = String::new(),
    }
}

section! {
    /// Children in the order in which they are asked. The children alone are enough.
    #[short(children)]
    pub(super) struct FailoverKeys {
        /// A pool's name for all its servers, or a list of routes.
        children: ChildrenForm,
        /// The errors after which the next child is asked.
        errors: ErrorsForm,
        /// Limit on the number of failovers.
        limit: Optional<LimitKeys>,
        /// Keys with a `|#|` get `:failover=1` at their end on the way to all children but the first.
        tag: Flag = false,
        /// The order in which the children behind the first one are asked. Without it that of the list.
        policy: PolicyForm = FailoverPolicy::InOrder,
    }
}

section! {
    /// The order of children. There is one of these keys.
    pub(super) struct PolicyKeys {
        /// Those with the fewest failures in a row come first; the number is that of tries at most. A worker
        /// counts by itself, and only the first 64 children are asked.
        least_failures: Optional<Count<1>>,
        /// The order depends on the key.
        hash_order: Optional<HashOrderKeys>,
        /// The order depends on the key, by rendezvous. The names are those of the children behind the first.
        rendezvous: Optional<List<Text>>,
    }
}

section! {
    /// An order that depends on the key.
    pub(super) struct HashOrderKeys {
        /// Tries at most.
        tries: Count<1>,
        /// Errors at most; ejected children do not count.
        error_tries: Count<1>,
        /// Errors that count against neither number.
        exclude: List<Word<Outcome>> = Vec::new(),
        /// Weights from 0 to 1, one for each child.
        weights: Optional<List<Share>>,
        /// Failure domains, a number for each child. A domain in which a child has failed is passed by, as
        /// long as there are others.
        domains: Optional<List<Count>>,
        /// The first child is a pool of all the others. The server that it chooses is not asked again.
        knows_first: Flag = true,
    }
}

section! {
    /// Limit on failovers: each request earns tokens, each failover costs one.
    pub(super) struct LimitKeys {
        /// Tokens that a request earns.
        rate: Share,
        /// Tokens that can be saved up at most.
        burst: Amount = 1000.0,
    }
}

section! {
    /// The errors after which the next child is asked, by group. A group that is left out has all of them.
    pub(super) struct ErrorsKeys {
        /// For reads.
        gets: Optional<List<Word<Outcome>>>,
        /// For writes.
        updates: Optional<List<Word<Outcome>>>,
        /// For deletes.
        deletes: Optional<List<Word<Outcome>>>,
    }
}

section! {
    /// Children in the order in which they are asked. The children alone are enough.
    #[short(children)]
    pub(super) struct MissFailoverKeys {
        /// A pool's name for all its servers, or a list of routes.
        children: ChildrenForm,
        /// If no child has the key, the least bad reply is returned instead of the last one.
        best_on_error: Flag = false,
    }
}

section! {
    /// A route, and the routes that replace it on errors.
    pub(super) struct FailoverWithTtlKeys {
        /// The route that is asked first.
        normal: RouteForm,
        /// The routes that replace it: a pool's name for all its servers, or a list of routes.
        failover: ChildrenForm,
        /// Seconds that values in them live at most after they are stored or touched.
        ttl: Count<1, { i32::MAX as u32 }> = 60,
        /// The errors after which the next child is asked.
        errors: ErrorsForm,
    }
}

section! {
    /// A change of the key.
    pub(super) struct ModifyKeyKeys {
        /// The route for the changed requests.
        child: RouteForm,
        /// Prefix that is put before keys that do not begin with it.
        ensure_prefix: Text = String::new(),
        /// Keys that begin with this have it replaced by `ensure_prefix`.
        replace_prefix: Optional<Text>,
        /// `ensure_prefix` is written over the key's first bytes instead of before them.
        in_place: Flag = false,
        /// Suffix that is put behind every key.
        suffix: Text = String::new(),
    }
}

section! {
    /// A move from one route to another.
    pub(super) struct MigrateKeys {
        /// The route until the move.
        from: RouteForm,
        /// The route after the move.
        to: RouteForm,
        /// Seconds since 1970 at which the move begins.
        start: Count,
        /// The time until the first key moves, and again until the last one has.
        interval: Time = Duration::from_secs(3600),
    }
}

section! {
    /// Several copies of hot shards.
    pub(super) struct ShardSplitKeys {
        /// The route for the requests.
        child: RouteForm,
        /// Shard: number of copies, or how the number changes.
        splits: ByName<ShardCopiesForm, Shard>,
    }
}

section! {
    /// The copies of a shard. The number alone is enough.
    #[short(copies)]
    pub(super) struct ShardCopiesKeys {
        /// The number of copies.
        copies: Count<1, { ShardCopies::MOST }>,
        /// The number before, while it changes. Without it the number does not change.
        before: Optional<Count<1, { ShardCopies::MOST }>>,
        /// Seconds since 1970 at which the number begins to change.
        start: Count = 0,
        /// The time in which one host after the other takes the new number.
        period: Time = Duration::ZERO,
        /// Deletes go to all copies, not to this host's alone.
        all_deletes: Flag = true,
    }
}

section! {
    /// Several copies of every key.
    pub(super) struct KeySplitKeys {
        /// The route for the requests.
        child: RouteForm,
        /// The number of copies.
        copies: Count<2, 1000>,
        /// `set` stores in all copies; this host's answers.
        all_sync: Flag = false,
        /// Reads ask all copies, and the first that has the key answers.
        first_hit: Flag = false,
    }
}

section! {
    /// A route, and others that get copies of its requests.
    pub(super) struct ShadowKeysOf {
        /// The route that answers.
        child: RouteForm,
        /// The routes that get copies.
        shadows: List<ShadowForm>,
    }
}

section! {
    /// A route that gets copies of requests.
    pub(super) struct OneShadowKeys {
        /// The route.
        target: RouteForm,
        /// The keys whose requests are copied. Without them it is `key_range` that decides.
        keys: Optional<List<Text>>,
        /// The part of all keys whose requests are copied: two shares, of the first and the last one.
        key_range: Optional<List<Share>>,
        /// Share of these requests that are copied.
        share: Share = 1.0,
        /// Copies under way that a worker has at most; more are dropped.
        in_flight: Count<1> = Shadow::IN_FLIGHT as u32,
    }
}

section! {
    /// A route, and the requests a second that it gets at most. A kind without a limit is not limited.
    pub(super) struct RateLimitKeys {
        /// The route.
        child: RouteForm,
        /// Limit of reads.
        gets: Optional<RateForm>,
        /// Limit of writes.
        sets: Optional<RateForm>,
        /// Limit of deletes.
        deletes: Optional<RateForm>,
        /// The route for what is over a limit.
        fallback: Optional<RouteForm>,
    }
}

section! {
    /// A rate. The requests a second alone are enough.
    #[short(rate)]
    pub(super) struct RateKeys {
        /// Requests a second.
        rate: Amount,
        /// Requests that may come at once. Without it as many as in a second, and at least one.
        burst: Optional<Amount>,
    }
}

section! {
    /// A route, and the requests that are under way to it at most.
    pub(super) struct OutstandingLimitKeys {
        /// The route.
        child: RouteForm,
        /// Requests under way.
        requests: Count<1>,
    }
}

section! {
    /// A cold route and a warm one.
    pub(super) struct WarmUpKeys {
        /// The route that is filled.
        cold: RouteForm,
        /// The route that has the values.
        warm: RouteForm,
        /// Seconds that added values live, or a duration; 0: for ever. Without it they live as long as in the
        /// warm route, whose servers must know meta commands then.
        ttl: Optional<Seconds>,
    }
}

section! {
    /// A server that may be fresh.
    pub(super) struct SlowWarmUpKeys {
        /// The server.
        child: RouteForm,
        /// The route for the reads that the server is spared.
        failover: RouteForm,
        /// The server is spared as soon as it finds a smaller share of keys than this.
        enable_threshold: Share = 0.7,
        /// The server is spared until it finds this share of keys.
        disable_threshold: Share = 0.9,
        /// Share of reads that a spared server gets if it finds nothing.
        start: Share = 0.1,
        /// What is added to that, times the share of keys that it finds.
        step: Share = 1.0,
        /// Requests before the share of keys counts.
        min_requests: Count = 100,
    }
}

section! {
    /// A route that answers, and one that is prepared.
    pub(super) struct StagingKeys {
        /// The route that answers.
        warm: RouteForm,
        /// The route that is prepared.
        staging: RouteForm,
    }
}

section! {
    /// Two caches.
    pub(super) struct L1L2CacheKeys {
        /// The first cache.
        l1: RouteForm,
        /// The second cache.
        l2: RouteForm,
        /// Seconds that values live in the first cache, or a duration; 0: for ever.
        ttl: Seconds,
        /// Seconds that the first cache remembers that the second has nothing; 0: for ever.
        miss_ttl: Seconds = 0,
        /// A remembered miss is looked up again at each so many reads of one. 0: misses are not remembered.
        miss_period: Count = 0,
    }
}

section! {
    /// Two caches, by the size of values.
    pub(super) struct SizeSplitKeys {
        /// The cache of small values, and of markers.
        l1: RouteForm,
        /// The cache of large values.
        l2: RouteForm,
        /// Size of the smallest large value.
        threshold: Size,
        /// Values that live shorter than so many seconds are small. 0: size alone decides.
        ttl_threshold: Seconds = 0,
        /// A `lease-set` of a large value that the second cache refuses stores it in the first, for so many seconds
        /// at most.
        failure_ttl: Seconds = 60,
        /// The first cache gets large values whole, and the second one in the background.
        both: Flag = false,
        /// How often `gets` and `lease-get` look again for a marker whose value was missing.
        retries: Count<1, 10> = 1,
    }
}

section! {
    /// Values in pieces.
    pub(super) struct BigValueKeys {
        /// The route for the pieces.
        child: RouteForm,
        /// Size of the largest value that stays whole, and of a piece.
        threshold: Size,
        /// Pieces that are asked for at a time: at most 256, which 0 stands for.
        batch: Count = 10,
        /// Clients do not see the flag of a value in pieces.
        hide_flag: Flag = false,
    }
}

section! {
    /// Keys with a route of their own.
    pub(super) struct ByKeyKeys {
        /// The keys.
        keys: List<Text>,
        /// The route for these keys.
        listed: RouteForm,
        /// The route for all others.
        default: RouteForm,
    }
}

section! {
    /// The part of the key that is looked at.
    pub(super) struct KeyPartKeys {
        /// The route for the requests.
        child: RouteForm,
        /// The number of parts, each with the delimiter behind it. A key with fewer parts counts whole.
        parts: Count<1> = 1,
        /// The character that ends a part.
        delimiter: Character = b':',
    }
}

section! {
    /// Keys that may have a `|#|`.
    pub(super) struct HashStopKeys {
        /// The route for the requests.
        child: RouteForm,
        /// Prefixes of these keys.
        prefixes: List<Text>,
    }
}

section! {
    /// A change of the expiry time.
    pub(super) struct ModifyTtlKeys {
        /// The route for the changed requests.
        child: RouteForm,
        /// Seconds, or a duration; 0: never.
        ttl: Seconds,
        /// Which expiry time holds.
        action: Word<TtlAction> = TtlAction::Set,
    }
}

section! {
    /// Faults of requests.
    pub(super) struct FaultKeys {
        /// The route for the requests.
        child: RouteForm,
        /// Delay of each request. Values of more than 64 KiB are not delayed, as they pass through while they
        /// come.
        delay: Time = Duration::ZERO,
        /// Delay of each reply.
        delay_after: Time = Duration::ZERO,
        /// Time that the request takes at least, from its beginning to its reply.
        total: Optional<Time>,
        /// Share of the requests that are answered with an error, after the delay.
        error_rate: Share = 0.0,
    }
}
