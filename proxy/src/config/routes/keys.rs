//! Routes that change the key or the expiry time on the way to their child, or look at a part of the key.

use super::{
    Route, Spec,
    form::RouteForm,
    spec::{Handle, handle},
};
use crate::config::{
    form::{Character, Choice, Count, Flag, List, Optional, Seconds, Text, Word},
    section::section,
};

/// A change of the key.
#[derive(Clone, Debug, PartialEq)]
pub struct ModifyKey {
    /// The routing prefix for servers that keep prefixes; empty: none. `None`: that of the key.
    pub routing_prefix: Option<String>,
    /// The prefix that keys get which do not begin with it.
    pub ensure_prefix: String,
    /// The prefix that it replaces.
    pub replace_prefix: Option<String>,
    /// It is written over the key's first bytes.
    pub in_place: bool,
    /// The suffix that all keys get.
    pub suffix: String,
}

impl Spec for ModifyKey {
    const NAME: &'static str = "modify_key";
}

pub(super) const MODIFY_KEY: Handle = handle! {
    /// Changes the key on its way to the child.
    ModifyKey::NAME, ModifyKeyKeys => |keys: ModifyKeyKeys| {
        let change = ModifyKey {
            routing_prefix: None,
            ensure_prefix: keys.ensure_prefix,
            replace_prefix: keys.replace_prefix,
            in_place: keys.in_place,
            suffix: keys.suffix,
        };
        Route::one(change, keys.child)
    }
};

section! {
    /// A change of the key.
    struct ModifyKeyKeys {
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

/// A change of the expiry time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ModifyTtl {
    /// Seconds.
    pub ttl: i64,
    /// How `ttl` is applied.
    pub action: TtlAction,
}

/// How `modify_ttl` changes the expiry time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TtlAction {
    /// It becomes the given one.
    Set,
    /// It becomes the smaller one; 0 (never) counts as the largest.
    Min,
}

impl Spec for ModifyTtl {
    const NAME: &'static str = "modify_ttl";
}

pub(super) const MODIFY_TTL: Handle = handle! {
    /// Changes the expiry time on its way to the child.
    ModifyTtl::NAME, ModifyTtlKeys => |keys: ModifyTtlKeys| {
        Route::one(ModifyTtl { ttl: keys.ttl, action: keys.action }, keys.child)
    }
};

section! {
    /// A change of the expiry time.
    struct ModifyTtlKeys {
        /// The route for the changed requests.
        child: RouteForm,
        /// Seconds, or a duration; 0: never.
        ttl: Seconds,
        /// Which expiry time holds.
        action: Word<TtlAction> = TtlAction::Set,
    }
}

impl Choice for TtlAction {
    const WHAT: &'static str = "what to do with the expiry time";
    const WORDS: &'static [(&'static str, Self, &'static str)] = &[
        ("set", Self::Set, "always this one"),
        ("min", Self::Min, "this one or the request's, whichever is sooner"),
    ];
}

/// The first parts of the key: the routes below see nothing else of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KeyPart {
    /// The number of parts.
    pub parts: usize,
    /// The character that ends a part.
    pub delimiter: u8,
}

impl Spec for KeyPart {
    const NAME: &'static str = "key_part";
}

pub(super) const KEY_PART: Handle = handle! {
    /// The routes below look at the first parts of the key alone: hashes, prefixes, patterns. Servers get the
    /// whole key.
    KeyPart::NAME, KeyPartKeys => |keys: KeyPartKeys| {
        let parts = keys.parts as usize;
        Route::one(KeyPart { parts, delimiter: keys.delimiter }, keys.child)
    }
};

section! {
    /// The part of the key that is looked at.
    struct KeyPartKeys {
        /// The route for the requests.
        child: RouteForm,
        /// The number of parts, each with the delimiter behind it. A key with fewer parts counts whole.
        parts: Count<1> = 1,
        /// The character that ends a part.
        delimiter: Character = b':',
    }
}

/// Keys that may have a `|#|`.
#[derive(Clone, Debug, PartialEq)]
pub struct HashStop {
    /// How they begin.
    pub prefixes: Vec<String>,
}

impl Spec for HashStop {
    const NAME: &'static str = "hash_stop";
}

pub(super) const HASH_STOP: Handle = handle! {
    /// Refuses keys with a `|#|`, unless they begin with one of the prefixes.
    HashStop::NAME, HashStopKeys => |keys: HashStopKeys| {
        Route::one(HashStop { prefixes: keys.prefixes }, keys.child)
    }
};

section! {
    /// Keys that may have a `|#|`.
    struct HashStopKeys {
        /// The route for the requests.
        child: RouteForm,
        /// Prefixes of these keys.
        prefixes: List<Text>,
    }
}
