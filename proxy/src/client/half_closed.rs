//! Clients that have closed their side and are still served.
//!
//! Whoever pipes requests into a connection closes his side behind them and reads on, so that they are served to the end. Whoever
//! has gone altogether looks the same until something is sent to him; and a line of a million keys that nobody has is a second's
//! work before anything is.

use super::{Client, ClientId, Stage};
use crate::{engine::Engine, micros::Micros, reactor::Conn};

/// How long a line of keys may take, whoever waits.
const GRACE: Micros = Micros::secs(1);

impl Engine {
    /// Others wait for a descriptor: clients that send no more, and whose line of keys takes long, make way for them.
    /// `left_to_read` tells of a connection that sends no more how many bytes were not received.
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
