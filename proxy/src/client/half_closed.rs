//! Clients that have closed their side and are still served.
//!
//! A client that pipes requests into a connection closes its side behind them and reads on, so such clients
//! are served to the end. A client that has gone altogether looks the same until something is sent to it. A
//! line of a million keys that no server has is a second's work before anything is sent.

use super::{Client, ClientId, Stage};
use crate::{engine::Engine, micros::Micros, reactor::Conn};

/// A line of keys may take this long even when others wait.
const GRACE: Micros = Micros::secs(1);

impl Engine {
    /// Closes clients that send no more and whose line of keys takes long, because others wait for a
    /// descriptor. `left_to_read` gives the bytes of a connection that sends no more that were not received;
    /// `None`: it may still send.
    pub fn make_way(&mut self, left_to_read: &dyn Fn(Conn) -> Option<u64>) {
        let takes_long =
            |client: &Client| matches!(&client.stage, Stage::Keys(keys) if self.now - keys.since > GRACE);
        let sends_no_more =
            |client: &Client| client.eof || client.stream.conn.and_then(left_to_read).is_some();
        let gone: Vec<ClientId> = self
            .clients
            .table
            .iter()
            .filter(|(_, client)| takes_long(client) && sends_no_more(client))
            .map(|(id, _)| id)
            .collect();
        self.metrics.clients.half_closed += gone.len() as u64;
        for id in gone {
            self.close_client(id, true);
        }
    }
}
