//! New clients.

use std::{
    io::{self, Write},
    net::SocketAddr,
    os::fd::AsRawFd,
};

use proxima_wire::message::Outcome;
use socket2::Socket;

use super::{Order, Worker, process, tag};
use crate::{
    client::Arrival,
    embedded::Connections,
    engine::{Endpoint, Shortage},
    members::ClientSource,
    protocol::{Failed, Handshake, ProtocolSlot, Session},
    reactor::{Expect, Reactor, peer_process, reason},
};

impl<R: Reactor> Worker<R> {
    /// Takes a new client. All workers accept on a Unix socket, and the first to wake would take every
    /// client, so the client goes to the worker with the fewest.
    pub(super) fn accept(&mut self, listener: u16, socket: Socket, address: Option<SocketAddr>) {
        let least = match self.shared.contains(&listener) {
            true => self.engine.clients.register().least_busy(),
            false => self.engine.facts.worker,
        };
        match self.peers.get(least) {
            Some(peer) if least != self.engine.facts.worker => {
                self.engine.clients.register().expect(least);
                peer.order(Order::Adopt { listener, socket });
            }
            _ => self.adopt(listener, socket, address),
        }
        if !self.engine.clients.register().has_room() {
            self.engine.fall_short(
                Shortage::Accept,
                "as many clients as the limit on open files has room for",
            );
            self.pause_listeners();
        }
    }

    /// Notes that a listener could not accept. It is tried again with the next tick and not before, or it
    /// would be tried all the time.
    pub(super) fn cannot_accept(&mut self, error: &io::Error) {
        self.engine.fall_short(Shortage::Accept, &reason(error));
        self.pause_listeners();
        self.cannot_accept = true;
    }

    fn pause_listeners(&mut self) {
        self.full = true;
        for &(_, listener) in &self.listeners {
            self.reactor.pause(listener);
        }
    }

    /// Accepts the clients that wait as soon as there is room for them. It is called in every turn.
    pub(super) fn accept_again(&mut self) {
        if self.full && !self.cannot_accept && self.engine.clients.register().has_room() {
            self.full = false;
            for &(_, listener) in &self.listeners {
                self.reactor.resume(listener);
            }
        }
    }

    /// Serves a client that this worker or another has accepted, or refuses it if there are too many.
    pub(super) fn adopt(&mut self, listener: u16, socket: Socket, address: Option<SocketAddr>) {
        if self.engine.clients.register().current() >= self.engine.limits.clients as u64 {
            self.engine.metrics.clients.over_limit += 1;
            let mut line = Vec::new();
            let listener = usize::from(listener);
            let spoken = self.engine.tree.spoken(listener);
            // A client that waits for a handshake does not understand plain text.
            let is_understood = |spoken: &ProtocolSlot| {
                self.engine.tree.tls(listener).is_none() || spoken.protocol.upgrades()
            };
            if let Some(spoken) = spoken.filter(is_understood) {
                let failed = Failed::here(Outcome::Overloaded, "too many open connections");
                spoken.protocol.error(&Session::default(), &failed, &mut line);
            }
            // The socket takes the one line or not: no worker waits for that.
            let _ = (&socket).write(&line);
            return;
        }
        let Some(endpoint) = self.engine.open_client(listener) else {
            return;
        };
        self.has_useless_lanes = true;
        if let Endpoint::Client(id) = endpoint {
            let worker = self.engine.facts.worker;
            let host = address.and_then(|_| Some(socket.local_addr().ok()?.as_socket()?.ip()));
            let arrival = Arrival {
                listener,
                peer: address,
                host,
                descriptor: socket.as_raw_fd(),
            };
            self.engine.clients.register().opened(worker, id.index(), arrival);
            let source = match address {
                Some(address) => ClientSource::Address(address.ip()),
                None => match peer_process(&socket) {
                    // The cgroup is read only where an agent is followed.
                    Some(process) if self.engine.localities.is_some() => process::container(process),
                    Some(process) => ClientSource::Process(process),
                    None => ClientSource::Unknown,
                },
            };
            self.engine.set_source(endpoint, source);
            if let Some(address) = address {
                self.engine.set_port(endpoint, address.port());
            }
        }
        match self.reactor.add(tag(endpoint), socket, Expect::Small) {
            Ok(conn) => {
                self.engine.attach(endpoint, conn);
                if self.greet(endpoint) == Handshake::UnderWay {
                    self.handshake_begins(endpoint);
                }
            }
            Err(_) => {
                if let Endpoint::Client(id) = endpoint {
                    self.engine.client_failed(id);
                }
            }
        }
    }
}
