//! The prefetch looks at what a client has sent before its requests are served.

use crate::{
    embedded,
    engine::{ClientId, Engine},
};

impl Engine {
    /// Lets the store begin to load what these bytes will most likely ask it for. Returns `false` if nothing
    /// will be asked of it.
    pub fn prefetch(&mut self, id: ClientId, bytes: &[u8]) -> bool {
        let Some(client) = self.clients.table.get_mut(id) else {
            return false;
        };
        let (listener, server) = (client.listener, client.protocol.embedded());
        let Some(server) = server.filter(|_| self.serves_store(listener)) else {
            return false;
        };
        embedded::prefetch(server, &self.store, bytes, &mut self.prefetch);
        true
    }
}
