//! What the handles need, section by section.

use std::time::Duration;

use proxima_wire::message::Outcome;

use super::{
    forms::{ErrorsForm, Pattern, Prefix},
    hash::HashForm,
    route::{ChildrenForm, RouteForm},
};
use crate::config::{
    form::{Amount, ByName, Count, Flag, List, Optional, Seconds, Share, Text, Time, Word},
    schema::TtlAction,
    section::section,
};

section! {
    /// Children and a hash. The children alone are enough.
    #[short(children)]
    pub(super) struct HashRouteKeys {
        /// A pool's name for all its servers, or a list of routes.
        children: ChildrenForm,
        /// How the key chooses; without it as the pool says, or `ch3` for a list.
        hash: Optional<HashForm>,
    }
}

section! {
    /// Routes by prefix of the key.
    pub(super) struct ByPrefixKeys {
        /// Prefix: route.
        prefixes: ByName<RouteForm, Prefix>,
        /// For keys with no such prefix; without it they are answered with an error.
        default: Optional<RouteForm>,
    }
}

section! {
    /// Routes by pattern of the key.
    pub(super) struct ByKeyPatternKeys {
        /// Pattern: route, tried in the order of the text. `*` stands for any characters, `?` for one.
        patterns: ByName<RouteForm, Pattern>,
        /// For keys that match none; without it they are answered with an error.
        default: Optional<RouteForm>,
    }
}

section! {
    /// Children, of which each host has its own. The children alone are enough.
    #[short(children)]
    pub(super) struct HostIdKeys {
        /// A pool's name for all its servers, or a list of routes.
        children: ChildrenForm,
        /// Mixed into the choice, so that two such routes do not choose alike.
        salt: Text = String::new(),
    }
}

section! {
    /// Children in the order in which they are asked. The children alone are enough.
    #[short(children)]
    pub(super) struct FailoverKeys {
        /// A pool's name for all its servers, or a list of routes.
        children: ChildrenForm,
        /// The errors that make it go on.
        errors: ErrorsForm,
        /// How many failovers there may be.
        limit: Optional<LimitKeys>,
    }
}

section! {
    /// How many failovers there may be: each request earns, each failover costs one.
    pub(super) struct LimitKeys {
        /// What a request earns.
        rate: Share,
        /// The most that can be saved up.
        burst: Amount = 1000.0,
    }
}

section! {
    /// The errors that make a failover go on, by group; a group left out has all of them.
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
        /// When none has the key: the least bad reply instead of the last one.
        best_on_error: Flag = false,
    }
}

section! {
    /// A route and those that stand in for it.
    pub(super) struct FailoverWithTtlKeys {
        /// The route that is asked first.
        normal: RouteForm,
        /// Those that stand in: a pool's name for all its servers, or a list of routes.
        failover: ChildrenForm,
        /// Seconds that values in them live at most from when they are stored or touched.
        ttl: Count<1, { i32::MAX as u32 }> = 60,
        /// The errors that make it go on.
        errors: ErrorsForm,
    }
}

section! {
    /// What is done to the key.
    pub(super) struct ModifyKeyKeys {
        /// Where requests go on.
        child: RouteForm,
        /// Put before keys that do not begin with it.
        ensure_prefix: Text = String::new(),
        /// Keys that begin with this have it replaced by `ensure_prefix`.
        replace_prefix: Optional<Text>,
        /// `ensure_prefix` is written over the key's first bytes instead of before them.
        in_place: Flag = false,
        /// Put behind every key.
        suffix: Text = String::new(),
    }
}

section! {
    /// What is done to the expiry time.
    pub(super) struct ModifyTtlKeys {
        /// Where requests go on.
        child: RouteForm,
        /// Seconds, or a duration; 0 = never.
        ttl: Seconds,
        /// Which expiry time holds.
        action: Word<TtlAction> = TtlAction::Set,
    }
}

section! {
    /// What is done to requests.
    pub(super) struct FaultKeys {
        /// Where requests go on.
        child: RouteForm,
        /// Hold each request this long, but not values of more than 64 KiB, which pass through as they come.
        delay: Time = Duration::ZERO,
        /// Answer this share of them with an error, after the delay.
        error_rate: Share = 0.0,
    }
}
