//! Orders of the control thread about the fleet.

use std::sync::{Arc, mpsc::Sender};

use rustix::time::{ClockId, clock_gettime};
use socket2::Socket;

use super::{Worker, tag};
use crate::{
    copies::Membership,
    engine::Endpoint,
    fleet::{Slot, Stay, View, keeper::MissedByPeer},
    peers::Role,
    protocol::Transform,
    reactor::{Expect, Reactor},
    stream::Stream,
};

/// An order about the fleet.
pub enum FleetOrder {
    /// This proxy is in a fleet from now on.
    Begin(Membership),
    /// Install this view.
    View {
        /// The view.
        view: Arc<View>,
        /// This peer in it; `None`: it is not in it.
        me: Option<(Slot, Stay)>,
    },
    /// Use this connection to a worker of a peer, whose handshake is over.
    Link {
        /// The peer.
        slot: Slot,
        /// Its stay.
        stay: Stay,
        /// What this worker is on the link.
        role: Role,
        /// The connection.
        socket: Socket,
        /// What its bytes go through; `None`: they are sent as they are.
        transform: Option<Box<dyn Transform>>,
        /// Plain bytes that have come behind the handshake.
        early: Vec<u8>,
    },
    /// Tell what a peer missed that has joined again.
    Missed {
        /// The name of the peer.
        name: String,
        /// Its identity.
        identity: u128,
        /// Gets the keys; `None`: this worker was not there all the time.
        reply: Sender<Option<MissedByPeer>>,
    },
}

/// The time of CLOCK_BOOTTIME, in microseconds: it goes on while the machine is suspended.
pub fn boot_time() -> u64 {
    let time = clock_gettime(ClockId::Boottime);
    time.tv_sec as u64 * 1_000_000 + time.tv_nsec as u64 / 1_000
}

impl<R: Reactor> Worker<R> {
    /// Carries out an order about the fleet.
    pub(super) fn take_fleet_order(&mut self, order: FleetOrder) {
        match order {
            FleetOrder::Begin(membership) => self.engine.join_fleet(membership),
            FleetOrder::View { view, me } => self.engine.install_view(view, me),
            FleetOrder::Link {
                slot,
                stay,
                role,
                socket,
                transform,
                early,
            } => {
                let stream = Stream {
                    transform,
                    read_buffer: early,
                    ..Stream::default()
                };
                let Some(id) = self.engine.open_link(slot, stay, role, stream) else {
                    return;
                };
                let endpoint = Endpoint::Link(id);
                match self.reactor.add(tag(endpoint), socket, Expect::Small) {
                    Ok(conn) => {
                        self.engine.attach(endpoint, conn);
                        // TLS may have words of its own to send.
                        self.greet(endpoint);
                        self.engine.link_opened(id);
                    }
                    Err(error) => self.engine.link_failed(id, Some(&error)),
                }
            }
            FleetOrder::Missed {
                name,
                identity,
                reply,
            } => {
                let _ = reply.send(self.engine.missed_by(&name, identity));
            }
        }
    }
}
