//! Time-outs of clients.

use crate::{
    engine::{ClientId, Endpoint, Engine},
    metrics::SlowReaders,
    micros::Micros,
    reactor::Conn,
};

/// A client that was accepted while a drain began has this time for its first request.
const GRACE: Micros = Micros::secs(1);

impl Engine {
    /// Closes clients that exceed a time-out. It is called once a second. `refused` gives the bytes that a
    /// socket has not taken, and `unacknowledged` the bytes that it has taken and its peer has not.
    pub fn check_clients(&mut self, refused: &dyn Fn(Conn) -> usize, unacknowledged: &dyn Fn(Conn) -> usize) {
        let (now, idle) = (self.now, Micros::from(self.limits.idle));
        let write_timeout = Micros::from(self.limits.write_timeout);
        let in_transaction = Micros::from(self.limits.idle_in_transaction);
        let age = Micros::from(self.limits.age);
        let mut old: Vec<Endpoint> = Vec::new();
        let (mut gone, mut subscribers): (Vec<ClientId>, Vec<ClientId>) = Default::default();
        let unfinished = Micros::from(self.limits.request_timeout);
        let mut slow_readers = SlowReaders::default();
        for (id, client) in self.clients.table.iter_mut() {
            let waiting = client.stream.conn.map_or(0, refused);
            let due = waiting + client.stream.out.len() + client.stream.wire.len();
            let unsent = if waiting > 0 {
                client.unsent.max(waiting)
            } else {
                0
            };
            self.clients.room.charge(client, unsent);
            // A socket makes room in steps of megabytes, so a slow reader's progress shows in what its kernel
            // acknowledges.
            let outstanding = match client.stream.conn {
                Some(conn) if waiting > 0 => waiting + unacknowledged(conn),
                _ => 0,
            };
            if waiting == 0 {
                client.behind = None;
            } else {
                slow_readers.count(waiting, now - *client.behind.get_or_insert(now));
            }
            if outstanding == 0 || outstanding != client.stuck_backlog {
                (client.stuck, client.stuck_backlog) = (now, outstanding);
            }
            let rests = due == 0 && client.slots.is_empty();
            let is_over = |limit: Micros| limit > Micros::ZERO && now - client.active > limit;
            // In the middle of a value the client holds a lane, and others wait for one.
            let silent = client.is_uploading() && !client.stalled && now - client.active > write_timeout;
            if silent || waiting > 0 && now - client.stuck > write_timeout {
                self.metrics.clients.slow += 1;
                gone.push(id);
            } else if now - client.half > unfinished {
                self.metrics.clients.unfinished += 1;
                gone.push(id);
            } else if rests && is_over(idle) {
                self.metrics.clients.idle += 1;
                gone.push(id);
            } else if rests && is_over(in_transaction) && client.protocol.is_in_transaction(&client.session) {
                self.metrics.clients.idle_in_transaction += 1;
                gone.push(id);
            } else if !client.retires && client.is_old(id.index(), age, now) {
                self.metrics.clients.old += 1;
                client.retires = true;
                old.push(Endpoint::Client(id));
            } else if self.clients.draining && now - client.since > GRACE {
                old.push(Endpoint::Client(id));
            } else if client.subscriptions.is_some() {
                subscribers.push(id);
            }
        }
        self.metrics.slow_readers = slow_readers;
        // The flush closes a client to which nothing is due. A later one does it when the last reply has
        // left.
        old.into_iter().for_each(|endpoint| self.flush_later(endpoint));
        for id in gone {
            self.close_client(id, true);
        }
        for id in subscribers {
            self.end_outdated(id);
        }
        self.share_room();
    }

    /// Closes the clients that were admitted by one of these cached logins: their server has rejected it
    /// since.
    pub fn end_logins(&mut self, numbers: &[u64]) {
        let all = self.clients.table.iter_mut();
        let by_these = all.filter_map(|(id, client)| {
            let number = client.protocol.cached_login(&client.session);
            (number != 0 && numbers.contains(&number)).then_some(id)
        });
        let ended: Vec<ClientId> = by_these.collect();
        self.metrics.clients.rejected_login += ended.len() as u64;
        for id in ended {
            self.close_client(id, true);
        }
    }

    /// Takes the memory of lanes, flights and changes of copies from the room of the clients.
    fn share_room(&mut self) {
        let all = self.limits.total_bytes / self.facts.workers.max(1);
        let others = self.servers.memory_bytes() + self.router.memory_bytes() + self.copies.memory_bytes();
        self.clients.over_memory = self.clients.room.lend(others, all);
    }
}
