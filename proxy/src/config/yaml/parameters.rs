//! The parameters of handles.

use std::time::Duration;

use proxima_wire::message::Outcome;

use super::{
    forms::{ErrorText, ErrorsForm, Pattern, Prefix},
    hash::HashForm,
    route::{ChildrenForm, RouteForm},
};
use crate::config::{
    form::{Amount, ByName, Character, Count, Flag, List, Optional, Seconds, Share, Text, Time, Word},
    schema::TtlAction,
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
        /// Share of the requests that are answered with an error, after the delay.
        error_rate: Share = 0.0,
    }
}
