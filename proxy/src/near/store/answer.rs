//! Questions to the store, and its answers.

use std::sync::Arc;

use proxima_wire::message::Reply;

use super::Fill;
use crate::{micros::Micros, near::Rule};

/// The identity of a reply that is looked up.
#[derive(Clone, Copy)]
pub struct Question<'a> {
    /// By this rule.
    pub rule: &'a Arc<Rule>,
    /// The key, as the server sees it.
    pub key: &'a [u8],
    /// All else of a request that decides the bytes of its reply.
    pub form: &'a [u8],
}

/// A kept reply.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The parsed reply.
    pub reply: Reply,
    /// The time since it was kept.
    pub age: Micros,
    /// Its time is over.
    pub is_stale: bool,
    /// It says that there is nothing.
    pub is_miss: bool,
    /// Its bytes, if they are many. `None`: they were copied.
    pub bytes: Option<Arc<[u8]>>,
}

/// Whether a request passes for which nothing is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passes {
    /// It is fetched, once for all who miss it.
    Never,
    /// It passes if its reply would not be kept, as [`Lookup::Unasked`] says: who asks for the same meanwhile
    /// causes a second request, and no third one.
    IfUnasked,
}

/// The result of a lookup in the store.
pub enum Lookup {
    /// A reply. With a fill, its time is over, and the caller is to renew it. The fill lies by itself, as most
    /// hits have none.
    Hit(Answer, Option<Box<Fill>>),
    /// Nothing: the caller is to ask a server.
    Miss(Fill),
    /// Nothing yet: another request has asked a server.
    Filling,
    /// Nothing, while a change is under way.
    Changing,
    /// A reply that must not be kept is known to come.
    Unkept,
    /// Nothing, and the reply would be turned away: the store is full of replies that are not asked for again,
    /// and this one has not been asked for before. Its key is remembered.
    Unasked,
}

/// Why the reply to a fill was not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The key, or everything, has changed since the request was sent.
    Changed,
    /// The rule was emptied or switched off.
    Off,
    /// It is larger than the rule allows, or than the store has room for.
    TooLarge,
    /// The store is full of replies that are not asked for again, and this one has not been asked for before.
    Unasked,
}
