//! Where a client's connection becomes encrypted: as it is opened, by the TLS of its listener, or in the
//! midst of its login, where the protocol has a word for that.

use crate::{
    engine::{ClientId, Endpoint, Engine},
    protocol::{End, Protocol, Transform},
};

impl Engine {
    /// The transform with which a client's connection begins; `None` if it begins without one.
    pub(super) fn first_transform(
        &self,
        listener: u16,
        protocol: &dyn Protocol,
    ) -> Option<Box<dyn Transform>> {
        match self.tree.tls(usize::from(listener)) {
            Some(tls) if !protocol.upgrades() => Some(tls.accept()),
            _ => protocol.transform(End::Client { listener }),
        }
    }

    /// Encrypts the connection of a client that has asked for it in its login, by the first `used` of these
    /// bytes. Returns how many bytes are done with, as the login does; a client that cannot be served so is
    /// closed.
    pub(super) fn encrypt(&mut self, id: ClientId, bytes: &[u8], used: usize) -> Option<usize> {
        let client = self.clients.table.get_mut(id)?;
        let listener = client.listener;
        let tls = self.tree.tls(usize::from(listener));
        let transform = match tls.filter(|_| client.stream.transform.is_none()) {
            Some(tls) => Some(tls.accept()),
            None => client.protocol.upgrade(End::Client { listener }),
        };
        // What is behind the word is the beginning of the handshake: clients of MySQL do not wait for an
        // answer. It is never read as plain.
        let behind = bytes.get(used..).unwrap_or_default();
        let before = client.stream.transform_memory();
        let Some(first) = transform.and_then(|transform| client.stream.upgrade(transform, behind)) else {
            client.closing = true;
            return Some(0);
        };
        client.beside += client.stream.transform_memory() - before;
        let endpoint = Endpoint::Client(id);
        self.actions.upgraded.push((endpoint, first));
        self.flush_later(endpoint);
        // The codec knows which side speaks next.
        self.admit(id, &[]);
        Some(bytes.len()).filter(|&used| used > 0)
    }
}
