//! The number of sessions in each state, where their protocol reports states.

use super::Clients;
use crate::metrics::SessionCounts;

impl Clients {
    /// The sessions of all clients whose protocol tells their state.
    pub fn sessions(&self) -> SessionCounts {
        let mut counts = SessionCounts::default();
        for (_, client) in self.table.iter() {
            if let Some(state) = client.protocol.session_state(&client.session) {
                counts.count(client.protocol.name(), state);
            }
        }
        counts
    }
}
