//! The bytes that a turn has gathered for a peer leave in one write.

use super::Worker;
use crate::{
    client::LARGE,
    engine::{ClientId, LaneId, Passed, Peer},
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
        for Passed { client, range } in pass.drain(..) {
            let peer = Peer::Client(client);
            let Some(stream) = self.engine.stream(peer) else {
                continue;
            };
            let Some(conn) = stream.conn else { continue };
            if self.reactor.backlog(conn) == 0 {
                let size = range.len();
                self.engine.metrics.client_traffic.sent += size as u64;
                self.reactor.pass(conn, buffer, range);
                if size > LARGE {
                    self.after_flush(peer, conn, true, size);
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
                self.engine.flush_later(peer);
            }
        }
        self.engine.actions.pass = pass;
    }

    /// Sends what this peer is due, if it has taken everything that it was sent before.
    pub(super) fn flush(&mut self, peer: Peer) {
        let Some(stream) = self.engine.stream(peer) else {
            return;
        };
        stream.dirty = false;
        let Some(conn) = stream.conn else { return };
        if self.engine.is_connecting(peer) {
            // A login comes before the requests that wait.
            return;
        }
        let backlog = self.reactor.backlog(conn);
        if backlog > 0 {
            self.charge(peer, backlog);
            // The backlog is most often a piece that was passed in this turn, so the next turn looks again.
            return self.watch(peer);
        }
        let keeps = matches!(peer, Peer::Lane(id) if self.engine.keeps_sent(id));
        let Some(stream) = self.engine.stream(peer) else {
            return;
        };
        if let Some(transform) = &mut stream.transform {
            let unsent = stream.out.get(stream.kept..).unwrap_or_default();
            if !unsent.is_empty()
                && let Err(error) = transform.seal(unsent, &mut stream.wire)
            {
                return match peer {
                    Peer::Client(client) => self.engine.client_failed(client),
                    Peer::Lane(lane) => self.engine.lane_failed(lane, Some(&error)),
                    Peer::Channel(channel) => self.engine.channel_failed(channel, Some(&error)),
                };
            }
            if !keeps {
                stream.out.clear();
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
        if let Peer::Lane(id) = peer
            && keeps
        {
            self.engine.note_sent(id);
        }
        let metrics = &mut self.engine.metrics;
        match peer {
            Peer::Client(_) => metrics.client_traffic.sent += sent as u64,
            Peer::Lane(_) => metrics.server_traffic.sent += sent as u64,
            Peer::Channel(_) => metrics.peer_traffic.sent += sent as u64,
        }
        self.after_flush(peer, conn, sent > 0, size);
    }

    /// Charges a client at least for what its socket was given and has not taken.
    fn charge(&mut self, peer: Peer, unsent: usize) {
        if let Peer::Client(id) = peer {
            self.engine.charge_at_least(id, unsent);
        }
    }

    /// Has the next turn look whether this peer has taken what it was sent.
    pub(super) fn watch(&mut self, peer: Peer) {
        if let Some(stream) = self.engine.stream(peer)
            && !std::mem::replace(&mut stream.watched, true)
        {
            self.watched.push(peer);
        }
    }

    /// Closes a client that is done, and remembers the peers whose progress matters. Only a peer that was
    /// sent something is watched, or looking after it would never end.
    fn after_flush(&mut self, peer: Peer, conn: Conn, sent: bool, size: usize) {
        let backlog = self.reactor.backlog(conn);
        match peer {
            Peer::Client(id) => {
                // A socket takes small buffers at once as a rule, though io_uring reports it only in the next
                // turn. A buffer that is not taken is charged when the client is sent more, or is looked at.
                let is_large = backlog > 0 && size > LARGE;
                self.engine.charge(id, if is_large { size } else { 0 });
                let finished = self.engine.is_finished(id);
                if finished && backlog == 0 {
                    self.engine.close_client(id, false);
                } else if finished || sent && (is_large || self.engine.is_awaited(id)) {
                    self.watch(peer);
                }
            }
            Peer::Channel(_) => {}
            Peer::Lane(id) => {
                let lane = self.engine.servers.lane(id);
                if sent && lane.is_some_and(|lane| lane.is_uploading()) {
                    self.watch(peer);
                }
            }
        }
    }
}
