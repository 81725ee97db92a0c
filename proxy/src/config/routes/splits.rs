//! Routes that keep several copies of a key under different names.

use std::{collections::BTreeMap, time::Duration};

use super::{
    Route, Spec,
    form::RouteForm,
    spec::{Handle, handle},
};
use crate::config::{
    Diagnostic,
    document::Node,
    form::{ByName, Count, Flag, Form, Named, Optional, Shape, Time},
    reading::Reading,
    section::section,
};

/// Several copies of hot shards.
#[derive(Clone, Debug, PartialEq)]
pub struct ShardSplit {
    /// The copies by shard.
    pub splits: BTreeMap<String, ShardCopies>,
}

/// The copies of one shard.
#[derive(Clone, Debug, PartialEq)]
pub struct ShardCopies {
    /// The number of copies.
    pub copies: u32,
    /// The number that it was before, while it changes.
    pub before: u32,
    /// Seconds since 1970 at which it begins to change.
    pub start: u64,
    /// The time in which one host after the other takes the new number.
    pub period: Duration,
    /// Whether deletes go to all copies.
    pub all_deletes: bool,
}

impl ShardCopies {
    /// This number of copies, which does not change.
    pub const fn of(copies: u32) -> Self {
        Self {
            copies,
            before: copies,
            start: 0,
            period: Duration::ZERO,
            all_deletes: true,
        }
    }

    /// The most copies of a shard: their names end with two letters.
    pub const MOST: u32 = 26 * 26 + 1;
}

impl Spec for ShardSplit {
    const NAME: &'static str = "shard_split";
}

pub(super) const SHARD_SPLIT: Handle = handle! {
    /// Several copies of hot shards. The shard is what stands between the first two colons of a key. Each
    /// host uses one of the copies, whose key has two letters more behind the shard; deletes go to all.
    ShardSplit::NAME, ShardSplitKeys => |keys: ShardSplitKeys| {
        let splits = keys.splits.into_iter().map(|(name, split)| (name.text, split)).collect();
        Route::one(ShardSplit { splits }, keys.child)
    }
};

section! {
    /// Several copies of hot shards.
    struct ShardSplitKeys {
        /// The route for the requests.
        child: RouteForm,
        /// Shard: number of copies, or how the number changes.
        splits: ByName<ShardCopiesForm, Shard>,
    }
}

/// Shards of keys.
#[derive(Debug)]
struct Shard;

impl Named for Shard {
    const WHAT: &'static str = "shard";
}

section! {
    /// The copies of a shard. The number alone is enough.
    #[short(copies)]
    struct ShardCopiesKeys {
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

/// The copies of a shard.
#[derive(Debug)]
struct ShardCopiesForm;

impl Form for ShardCopiesForm {
    type Value = ShardCopies;

    fn shape() -> Shape {
        ShardCopiesKeys::shape()
    }

    fn read(node: &Node, cx: &mut Reading) -> Result<ShardCopies, Diagnostic> {
        let keys = ShardCopiesKeys::read(node, cx)?;
        Ok(ShardCopies {
            copies: keys.copies,
            before: keys.before.unwrap_or(keys.copies),
            start: keys.start.into(),
            period: keys.period,
            all_deletes: keys.all_deletes,
        })
    }
}

/// Several copies of every key.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KeySplit {
    /// The number of copies.
    pub copies: u32,
    /// `set` stores in all copies.
    pub all_sync: bool,
    /// Reads ask all copies.
    pub first_hit: bool,
}

impl Spec for KeySplit {
    const NAME: &'static str = "key_split";
}

pub(super) const KEY_SPLIT: Handle = handle! {
    /// Several copies of every key. Each host uses one of them, whose key is `KEY::N`; deletes go to all.
    KeySplit::NAME, KeySplitKeys => |keys: KeySplitKeys| {
        let KeySplitKeys { child, copies, all_sync, first_hit } = keys;
        Route::one(KeySplit { copies, all_sync, first_hit }, child)
    }
};

section! {
    /// Several copies of every key.
    struct KeySplitKeys {
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
