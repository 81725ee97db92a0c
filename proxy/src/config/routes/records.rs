//! Routes that write down what happens below them.

use super::{
    Route, Spec,
    form::RouteForm,
    spec::{Handle, handle},
};

/// Logs each request and its reply.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Log;

impl Spec for Log {
    const NAME: &'static str = "log";
}

pub(super) const LOG: Handle = handle! {
    /// Logs each request and its reply.
    Log::NAME, RouteForm => |child: Route| Route::one(Log, child)
};

/// Keeps deletes that a server has not taken.
#[derive(Clone, Debug, PartialEq)]
pub struct Spool {
    /// The name of the pool under which they are kept.
    pub name: String,
}

impl Spec for Spool {
    const NAME: &'static str = "spool";
}
