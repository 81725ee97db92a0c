//! Clients that have closed their side and are still served.
//!
//! A client that pipes requests into a connection closes its side behind them and reads on, so such clients
//! are served to the end. A client that has gone altogether looks the same until something is sent to it. A
//! line of a million keys that no server has is a second's work before anything is sent.
//!
//! A client whose server lets it wait (`BLPOP`) ends with its side, as it would at the server itself, which
//! answers no client that sends no more. Otherwise its connection to the server would be its own for ever,
//! and what comes for it would be lost. It has the time of an answer first: what could be had at once is had,
//! even by a client that closes its side behind the command. A client that has sent much behind it is not
//! read while it waits, and no event reports its end: its socket is polled.

use super::{Client, stage::Stage};
use crate::{
    engine::{ClientId, Engine},
    micros::Micros,
    reactor::Conn,
};

/// A line of keys may take this long even when others wait.
const GRACE: Micros = Micros::secs(1);
/// A server that can answer a command that may block does so within this time.
const ANSWER: Micros = Micros::millis(100);

impl Engine {
    /// Closes clients that send no more and whose line of keys takes long, because others wait for a
    /// descriptor. `left_to_read` gives the bytes of a connection that sends no more that were not received;
    /// `None` if the client may still send.
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

    /// Closes clients that have left while their servers let them wait. `left_to_read` is as for
    /// [`make_way`](Self::make_way).
    pub fn end_blocked(&mut self, left_to_read: &dyn Fn(Conn) -> Option<u64>) {
        let has_left = |id: &ClientId| {
            self.clients.table.get(*id).is_some_and(|client| {
                let unread = client.stream.conn.filter(|_| client.stream.paused);
                client.eof || unread.and_then(left_to_read).is_some()
            })
        };
        let blocked = self.servers.blocked(self.answered_by());
        let (gone, others): (Vec<ClientId>, Vec<ClientId>) = blocked.partition(has_left);
        for id in others {
            self.settle_reading(id);
        }
        for id in gone {
            if let Some(client) = self.clients.table.get_mut(id) {
                client.eof = true;
            }
            // What was answered before still arrives.
            self.close_client(id, false);
        }
    }

    /// Does this client's server let it wait, and not only until its answer has come?
    pub(super) fn is_blocked(&self, client: &Client) -> bool {
        client
            .own
            .is_some_and(|own| self.servers.is_blocked(own, self.answered_by()))
    }

    /// The time up to which every request that could be answered has its answer.
    fn answered_by(&self) -> Micros {
        self.now - ANSWER
    }
}
