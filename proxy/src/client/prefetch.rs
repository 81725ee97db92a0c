//! The prefetch reads a client's bytes before its requests are served.

use crate::{
    embedded,
    engine::{ClientId, Engine},
};

impl Engine {
    /// Lets the store, or the near cache, begin to load what these bytes will most likely ask it for. Returns
    /// `false` if nothing will be asked of either.
    pub fn prefetch(&mut self, id: ClientId, bytes: &[u8]) -> bool {
        let Some(client) = self.clients.table.get_mut(id) else {
            return false;
        };
        let (listener, server) = (client.listener, client.protocol.embedded());
        match (server, self.near.near()) {
            (Some(server), _) if self.serves_store(listener) => {
                embedded::prefetch(server, &self.store, bytes, &mut self.prefetch);
            }
            (Some(server), Some(near)) => match embedded::likely_key(server, bytes) {
                Some((key, true)) => near.preload(key, &mut self.preload),
                Some((key, false)) => near.preload_word(key),
                None => {}
            },
            _ => return false,
        }
        true
    }

    /// Lets the near cache begin to load what the next request of a pipeline will most likely ask for, before
    /// this one is served.
    #[inline]
    pub(super) fn preload_next(&mut self, id: ClientId, bytes: &[u8]) {
        if self.near.counts() && !bytes.is_empty() {
            self.preload_likely(id, bytes);
        }
    }

    #[inline(never)]
    fn preload_likely(&mut self, id: ClientId, bytes: &[u8]) {
        let client = self.clients.table.get(id);
        let likely = client
            .and_then(|client| client.protocol.embedded())
            .and_then(|server| embedded::likely_key(server, bytes));
        match (self.near.near(), likely) {
            (Some(near), Some((key, true))) => near.preload_next(key, &mut self.preload),
            (Some(near), Some((key, false))) => near.preload_word(key),
            (_, None) | (None, _) => {}
        }
    }

    /// The same for the bytes to which that leads, after this one was served.
    pub(super) fn preload_rest(&mut self) {
        if let Some(near) = self.near.near() {
            near.preload_record(&mut self.preload);
        }
    }
}
