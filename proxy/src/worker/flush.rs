//! The bytes that a turn has gathered for an endpoint leave in one write.

use std::io;

use super::Worker;
use crate::{
    client::LARGE,
    engine::{ClientId, Endpoint, LaneId, PassedReply},
    reactor::{Buffer, Conn, Reactor},
    upstream::Lane,
};

impl<R: Reactor> Worker<R> {
    /// Notes the local address of a new lane to a copy: the server lists the lane by it.
    pub(super) fn note_address(&mut self, id: LaneId) {
        let lane = self.engine.servers.lane(id).filter(|lane| lane.member.is_copy());
        if let Some(conn) = lane.and_then(Lane::conn) {
            let local = self.reactor.local(conn);
            self.engine.servers.note_address(id, local);
        }
    }

    /// Sends the replies that may leave straight from the buffer in which they came.
    pub(super) fn pass(&mut self, buffer: &Buffer) {
        let mut pass = std::mem::take(&mut self.engine.actions.pass);
        // What is in a client's buffer has come behind the pieces that are passed, so that these go before
        // it.
        let mut before: Vec<(ClientId, usize)> = Vec::new();
        for PassedReply { client, range } in pass.drain(..) {
            let endpoint = Endpoint::Client(client);
            let Some(stream) = self.engine.stream(endpoint) else {
                continue;
            };
            let Some(conn) = stream.conn else { continue };
            if self.reactor.backlog(conn) == 0 {
                let size = range.len();
                self.engine.metrics.client_traffic.sent += size as u64;
                self.reactor.pass(conn, buffer, range);
                if size > LARGE {
                    self.after_flush(endpoint, conn, true, size);
                }
            } else {
                let piece = buffer.get(range).unwrap_or_default();
                let at = match before.iter_mut().find(|(other, _)| *other == client) {
                    Some((_, at)) => std::mem::replace(at, *at + piece.len()),
                    None => {
                        before.push((client, piece.len()));
                        0
                    }
                };
                stream.out.splice(at..at, piece.iter().copied());
                self.engine.flush_later(endpoint);
            }
        }
        self.engine.actions.pass = pass;
    }

    /// Sends what this endpoint is due, if it has taken everything that it was sent before.
    pub(super) fn flush(&mut self, endpoint: Endpoint) {
        let Some(stream) = self.engine.stream(endpoint) else {
            return;
        };
        stream.dirty = false;
        let Some(conn) = stream.conn else { return };
        if self.engine.is_connecting(endpoint) {
            // A login comes before the requests that wait, and a handshake before the login.
            return self.send_handshake(endpoint, conn);
        }
        let backlog = self.reactor.backlog(conn);
        if backlog > 0 {
            self.charge(endpoint, backlog);
            // The backlog is most often a piece that was passed in this turn, so the next turn looks again.
            return self.watch(endpoint);
        }
        let keeps = matches!(endpoint, Endpoint::Lane(id) if self.engine.keeps_sent(id));
        let Some(mut stream) = self.engine.stream(endpoint) else {
            return;
        };
        if stream.transform.is_some() {
            if let Err(error) = self.seal(endpoint, keeps) {
                return match endpoint {
                    Endpoint::Client(client) => self.engine.client_failed(client),
                    Endpoint::Lane(lane) => self.engine.lane_failed(lane, Some(&error)),
                    Endpoint::Link(link) => self.engine.link_failed(link, Some(&error)),
                };
            }
            match self.engine.stream(endpoint) {
                Some(sealed) => stream = sealed,
                None => return,
            }
        }
        let (sent, size) = if keeps && stream.transform.is_none() {
            let unsent = stream.unsent();
            if !unsent.is_empty() {
                self.reactor.send_copy(conn, unsent);
            }
            (unsent.len(), 0)
        } else {
            let bytes = match stream.transform {
                Some(_) => &mut stream.wire,
                None => &mut stream.out,
            };
            let (sent, size) = (bytes.len(), bytes.capacity());
            if sent > 0 {
                self.reactor.send(conn, bytes);
            }
            let emptied = std::mem::take(bytes);
            self.engine.buffers.give(emptied);
            (sent, size)
        };
        if let Endpoint::Lane(id) = endpoint
            && keeps
        {
            self.engine.note_sent(id);
        }
        let metrics = &mut self.engine.metrics;
        match endpoint {
            Endpoint::Client(_) => metrics.client_traffic.sent += sent as u64,
            Endpoint::Lane(_) => metrics.server_traffic.sent += sent as u64,
            Endpoint::Link(_) => metrics.peer_traffic.sent += sent as u64,
        }
        self.after_flush(endpoint, conn, sent > 0, size);
    }

    /// Puts what is to be sent into the form of the transform.
    fn seal(&mut self, endpoint: Endpoint, keeps: bool) -> io::Result<()> {
        let mut buffers = std::mem::take(&mut self.engine.buffers);
        let stream = self.engine.stream(endpoint);
        let sealed = stream.map_or(Ok(()), |stream| stream.seal(keeps, &mut buffers));
        self.engine.buffers = buffers;
        sealed
    }

    /// Sends what a transform has to say before its connection counts as made.
    fn send_handshake(&mut self, endpoint: Endpoint, conn: Conn) {
        if let Some(stream) = self.engine.stream(endpoint)
            && !stream.wire.is_empty()
            && self.reactor.backlog(conn) == 0
        {
            let size = stream.wire.len() as u64;
            self.reactor.send(conn, &mut stream.wire);
            self.engine.metrics.server_traffic.sent += size;
        }
    }

    /// Charges a client at least for what its socket was given and has not taken.
    fn charge(&mut self, endpoint: Endpoint, unsent: usize) {
        if let Endpoint::Client(id) = endpoint {
            self.engine.charge_at_least(id, unsent);
        }
    }

    /// Has the next turn look whether this endpoint has taken what it was sent.
    pub(super) fn watch(&mut self, endpoint: Endpoint) {
        if let Some(stream) = self.engine.stream(endpoint)
            && !std::mem::replace(&mut stream.watched, true)
        {
            self.watched.push(endpoint);
        }
    }

    /// Closes a client that is done, and remembers the endpoints whose progress matters. Only an endpoint
    /// that was sent something is watched, or looking after it would never end.
    fn after_flush(&mut self, endpoint: Endpoint, conn: Conn, sent: bool, size: usize) {
        let backlog = self.reactor.backlog(conn);
        match endpoint {
            Endpoint::Client(id) => {
                // A socket takes small buffers at once as a rule, though io_uring reports it only in the next
                // turn. A buffer that is not taken is charged when the client is sent more, or is looked at.
                let is_large = backlog > 0 && size > LARGE;
                self.engine.charge(id, if is_large { size } else { 0 });
                let finished = self.engine.is_finished(id);
                if finished && backlog == 0 {
                    self.engine.close_client(id, false);
                } else if finished || sent && (is_large || self.engine.is_awaited(id)) {
                    self.watch(endpoint);
                }
            }
            Endpoint::Link(_) => {}
            Endpoint::Lane(id) => {
                let lane = self.engine.servers.lane(id);
                if sent && lane.is_some_and(|lane| lane.is_uploading()) {
                    self.watch(endpoint);
                }
            }
        }
    }
}
