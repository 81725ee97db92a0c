//! What the replies behind the one that is served will be kept by is on its way to the processor's caches
//! meanwhile.
//!
//! One thing leads to the next: a waiter to its flight, that to the group of readers, and that to the shard,
//! the word and the slot of its key. The first is therefore asked for three replies ahead, the second two,
//! and the third one.

use crate::{
    engine::{Engine, ReplyTo},
    reactor::prefetch,
};

impl Engine {
    /// Is anything fetched to be kept?
    #[inline]
    pub(crate) fn is_fetching(&self) -> bool {
        !self.router.groups.is_empty()
    }

    /// Begins to load what the next replies will need, of which `receiver` tells the receivers by number.
    /// This is only a hint.
    pub(crate) fn preload_fetched(&self, receiver: impl Fn(usize) -> Option<ReplyTo>) {
        let flights = &self.router.flights;
        let flight_of = |number| match receiver(number)? {
            ReplyTo::Flight { flight, .. } => Some(flight),
            _ => None,
        };
        if let Some(flight) = flight_of(2).and_then(|id| flights.peek(id)) {
            prefetch(flight);
        }
        if let Some(group) = flight_of(1).and_then(|id| flights.peek(id)?.group.as_deref()) {
            prefetch(group);
        }
        if let Some(group) = flight_of(0).and_then(|id| flights.peek(id)?.group.as_deref())
            && let Some(fill) = group.fill()
        {
            fill.preload();
        }
    }
}
