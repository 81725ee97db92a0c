//! The embedded store, as sessions reach it.

use crate::{embedded::Context, engine::Engine};

impl Engine {
    /// The context of a request to the embedded store: time, process and limits.
    pub(crate) fn store_context(&self) -> Context<'_> {
        Context {
            now: self.now.0 / 1000,
            unix: self.unix().as_secs(),
            begun: self.facts.start.0 / 1000,
            pid: self.facts.pid,
            threads: self.facts.workers,
            largest_reply: self.limits.value_bytes,
            most_connections: self.limits.clients,
            connections: &*self.clients.register,
        }
    }

    /// Returns whether this listener leads straight to the embedded store.
    pub(super) fn serves_store(&self, listener: u16) -> bool {
        self.tree.is_store(usize::from(listener))
    }
}
