//! Routes over two caches, and for large values.

use super::{
    Route, Spec,
    form::RouteForm,
    spec::{Handle, handle},
};
use crate::config::{
    form::{Count, Flag, Seconds, Size},
    section::section,
};

/// A small cache before a large one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct L1L2Cache {
    /// Seconds that values live in the first cache.
    pub ttl: i64,
    /// Seconds that a miss is remembered there, and reads after which it is looked up again.
    pub misses: Option<(i64, u32)>,
}

impl Spec for L1L2Cache {
    const NAME: &'static str = "l1_l2_cache";
}

pub(super) const L1_L2_CACHE: Handle = handle! {
    /// A small cache before a large one: `get`, `gat` and `gats` of what the first has not are answered by
    /// the second, and added to the first. Everything else goes to the first.
    L1L2Cache::NAME, L1L2CacheKeys => |keys: L1L2CacheKeys| {
        let misses = (keys.miss_period > 0).then_some((keys.miss_ttl, keys.miss_period));
        Route::pair(L1L2Cache { ttl: keys.ttl, misses }, keys.l1, keys.l2)
    }
};

section! {
    /// Two caches.
    struct L1L2CacheKeys {
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

/// Large values in the second cache.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SizeSplit {
    /// Size of the smallest large value.
    pub threshold: usize,
    /// Values that live shorter than so many seconds are small; 0: size alone decides.
    pub ttl_threshold: i64,
    /// Seconds that the first cache keeps what the second has refused.
    pub failure_ttl: i64,
    /// Large values are in both caches.
    pub both: bool,
    /// How often a marker without its value is looked up again.
    pub retries: u32,
    /// The error of a second cache that cannot be reached does not name the server, as with mcrouter.
    pub hides_server: bool,
}

impl Spec for SizeSplit {
    const NAME: &'static str = "size_split";
}

pub(super) const SIZE_SPLIT: Handle = handle! {
    /// Large values in a second cache: a `set` or `lease-set` of one stores it there, and a marker in the
    /// first. `get`, `gets` and `lease-get` follow the marker. Everything else goes to the first.
    SizeSplit::NAME, SizeSplitKeys => |keys: SizeSplitKeys| {
        let split = SizeSplit {
            threshold: keys.threshold,
            ttl_threshold: keys.ttl_threshold,
            failure_ttl: keys.failure_ttl,
            both: keys.both,
            retries: keys.retries,
            hides_server: false,
        };
        Route::pair(split, keys.l1, keys.l2)
    }
};

section! {
    /// Two caches, by the size of values.
    struct SizeSplitKeys {
        /// The cache of small values, and of markers.
        l1: RouteForm,
        /// The cache of large values.
        l2: RouteForm,
        /// Size of the smallest large value.
        threshold: Size,
        /// Values that live shorter than so many seconds are small. 0: size alone decides.
        ttl_threshold: Seconds = 0,
        /// A `lease-set` of a large value that the second cache refuses stores it in the first, for so many
        /// seconds at most.
        failure_ttl: Seconds = 60,
        /// The first cache gets large values whole, and the second one in the background.
        both: Flag = false,
        /// How often `gets` and `lease-get` look again for a marker whose value was missing.
        retries: Count<1, 10> = 1,
    }
}

/// Values in pieces.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BigValue {
    /// Size of the largest value that stays whole, and of a piece.
    pub threshold: usize,
    /// Pieces that are asked for at a time.
    pub batch: u32,
    /// Clients do not see the flag of a value in pieces.
    pub hides_flag: bool,
}

impl Spec for BigValue {
    const NAME: &'static str = "big_value";
}

pub(super) const BIG_VALUE: Handle = handle! {
    /// Values that are too large for their server, in pieces. `get`, `gets`, `gat`, `gats` and `lease-get`
    /// join them.
    BigValue::NAME, BigValueKeys => |keys: BigValueKeys| {
        let BigValueKeys { child, threshold, batch, hide_flag: hides_flag } = keys;
        Route::one(BigValue { threshold, batch, hides_flag }, child)
    }
};

section! {
    /// Values in pieces.
    struct BigValueKeys {
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
