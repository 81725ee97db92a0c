//! A route that says how fresh the reads below it are.

use super::{
    Route, Spec,
    form::RouteForm,
    spec::{Handle, handle},
};
use crate::config::{form::Word, section::section};

/// How fresh reads are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Consistency {
    /// They see whatever any server had acknowledged before.
    #[default]
    Strict,
    /// They see whatever this process had acknowledged before.
    Causal,
    /// They see what their own session has written and seen.
    Session,
    /// They see what was there some time ago.
    Eventual,
}

impl Consistency {
    /// Its word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Strict => "strict",
            Self::Causal => "causal",
            Self::Session => "session",
            Self::Eventual => "eventual",
        }
    }
}

/// How fresh reads are that go this way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ConsistencyRoute {
    /// How fresh.
    pub level: Consistency,
}

impl Spec for ConsistencyRoute {
    const NAME: &'static str = "consistency";
}

pub(super) const CONSISTENCY: Handle = handle! {
    /// Says how fresh reads of MySQL are that go to its child, whatever the listener or the user says. It
    /// stands at the top of a listener's route, or below `by_user`, `by_schema` and other ones of its kind,
    /// of which the innermost counts.
    ConsistencyRoute::NAME, ConsistencyKeys => |keys: ConsistencyKeys| {
        Route::one(ConsistencyRoute { level: keys.level }, keys.child)
    }
};

section! {
    /// How fresh reads are.
    struct ConsistencyKeys {
        /// The route for the statements.
        child: RouteForm,
        /// How fresh reads are.
        level: Word<Consistency>,
    }
}
