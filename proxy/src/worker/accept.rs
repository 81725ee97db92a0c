//! New clients.

use std::io::Write;

use proxima_wire::message::Outcome;
use socket2::Socket;

use super::{Order, Worker, tag};
use crate::{
    engine::Peer,
    near::embedded::Connections,
    reactor::{Expect, Reactor},
};

impl<R: Reactor> Worker<R> {
    /// A client has come. On a Unix socket all workers accept, and the first to wake would take them all: it goes to the one
    /// with the fewest.
    pub(super) fn accept(&mut self, listener: u16, socket: Socket) {
        if self.shared.contains(&listener) {
            let least = self.engine.register.least_busy();
            if least != self.engine.facts.worker
                && let Some(colleague) = self.colleagues.get(least)
            {
                self.engine.register.expect(least);
                return colleague.order(Order::Adopt { listener, socket });
            }
        }
        self.adopt(listener, socket);
    }

    pub(super) fn adopt(&mut self, listener: u16, socket: Socket) {
        if self.engine.register.current() >= self.engine.limits.clients as u64 {
            self.engine.figures.clients.over_limit += 1;
            let mut line = Vec::new();
            self.dialect
                .error(Outcome::Overloaded, "too many open connections", &mut line);
            // One line if its socket takes it; nobody waits for that.
            let _ = (&socket).write(&line);
            return;
        }
        let peer = self.engine.open_client(listener, self.dialect);
        if let Peer::Client { index, .. } = peer {
            let address = socket.peer_addr().ok().and_then(|address| address.as_socket());
            let worker = self.engine.facts.worker;
            self.engine.register.opened(worker, index, listener, address);
        }
        match self.reactor.add(tag(peer), socket, Expect::Small) {
            Ok(conn) => {
                self.engine.attach(peer, conn);
                self.greet(peer);
            }
            Err(_) => {
                if let Peer::Client { index, generation } = peer {
                    self.engine.client_failed(index, generation);
                }
            }
        }
    }
}
