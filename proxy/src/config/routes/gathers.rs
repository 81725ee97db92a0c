//! Routes that send to all children, and wait by a rule.

use super::{
    Over, Route, Spec,
    form::ChildrenForm,
    spec::{Handle, handle},
};

/// The worst reply. Over a replicated pool it is the pool itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AllSync;

impl Spec for AllSync {
    const NAME: &'static str = "all_sync";
}

impl Over for AllSync {
    const REACHES_ALL_COPIES: bool = true;
}

pub(super) const ALL_SYNC: Handle = handle! {
    /// Sends to all children. It answers when all have, with the worst reply.
    AllSync::NAME, ChildrenForm => |children| Route::of(AllSync, children)
};

/// The reply on which more than half agree.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AllMajority;

impl Spec for AllMajority {
    const NAME: &'static str = "all_majority";
}

impl Over for AllMajority {
    const REACHES_ALL_COPIES: bool = false;
}

pub(super) const ALL_MAJORITY: Handle = handle! {
    /// Sends to all children. It answers with the reply on which more than half agree.
    AllMajority::NAME, ChildrenForm => |children| Route::of(AllMajority, children)
};

/// The first reply that is no error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AllFastest;

impl Spec for AllFastest {
    const NAME: &'static str = "all_fastest";
}

impl Over for AllFastest {
    const REACHES_ALL_COPIES: bool = false;
}

pub(super) const ALL_FASTEST: Handle = handle! {
    /// Sends to all children. It answers with the first reply that is no error.
    AllFastest::NAME, ChildrenForm => |children| Route::of(AllFastest, children)
};

/// The first child's reply.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AllInitial;

impl Spec for AllInitial {
    const NAME: &'static str = "all_initial";
}

impl Over for AllInitial {
    const REACHES_ALL_COPIES: bool = false;
}

pub(super) const ALL_INITIAL: Handle = handle! {
    /// Sends to all children. It answers with the first child's reply.
    AllInitial::NAME, ChildrenForm => |children| Route::of(AllInitial, children)
};

/// The answer of an empty cache, at once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AllAsync;

impl Spec for AllAsync {
    const NAME: &'static str = "all_async";
}

impl Over for AllAsync {
    const REACHES_ALL_COPIES: bool = false;
}

pub(super) const ALL_ASYNC: Handle = handle! {
    /// Sends to all children. It answers at once as `null` does.
    AllAsync::NAME, ChildrenForm => |children| Route::of(AllAsync, children)
};
