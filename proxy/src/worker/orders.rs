//! What the control thread and other workers ask of a worker, and how it reaches one.

use std::{
    io::Write,
    os::unix::net::UnixStream,
    rc::Rc,
    sync::{Arc, mpsc::Sender},
};

use socket2::{Domain, Socket};

use super::{LISTENER, Worker, process};
use crate::{
    config::schema::Limits,
    copies::CopyState,
    engine::Peer,
    members::{Localities, MemberId},
    metrics::Metrics,
    reactor::Reactor,
    route::{Orders, Tree},
};

/// What the control thread asks of a worker.
pub enum Order {
    /// Serve new requests by this tree, and these limits. Listeners are opened and closed by number.
    Swap {
        tree: Box<Tree>,
        limits: Limits,
        open: Vec<(u16, Socket)>,
        close: Vec<u16>,
        done: Sender<()>,
    },
    /// A proposal: this is what a copy may be used for from now on.
    Propose {
        member: MemberId,
        epoch: u64,
        state: CopyState,
    },
    /// These copies are about to be removed: this is their state from now on.
    SetCopies {
        members: Vec<MemberId>,
        state: CopyState,
        done: Sender<()>,
    },
    /// The node agent tells something new; `None`: it is not followed any more.
    Locate {
        localities: Option<Arc<Localities>>,
        orders: Orders,
    },
    /// Take over this client, accepted by another worker.
    Adopt { listener: u16, socket: Socket },
    /// Hand out a copy of the metrics.
    Report(Sender<Metrics>),
    /// Take no more clients, close each as soon as nothing is due to it, end when there are none.
    Drain,
    /// End now.
    Stop,
}

/// Where a worker's orders are put; from any thread.
#[derive(Clone)]
pub struct Mailbox {
    pub orders: Sender<Order>,
    /// A byte through it wakes the worker.
    pub bell: Arc<UnixStream>,
}

impl Mailbox {
    /// A worker that has ended hears no orders; its thread's end is reported where it is joined.
    pub fn order(&self, order: Order) {
        let _ = self.orders.send(order);
        self.ring();
    }

    /// Wakes the worker. A full pipe means that it has not yet heard the last ones.
    pub fn ring(&self) {
        let _ = (&*self.bell).write(&[0]);
    }
}

impl<R: Reactor> Worker<R> {
    /// False: stop.
    pub(super) fn take_orders(&mut self) -> bool {
        while let Ok(order) = self.orders.try_recv() {
            match order {
                Order::Swap {
                    tree,
                    limits,
                    open,
                    close,
                    done,
                } => {
                    let old = std::mem::replace(&mut self.engine.tree, Rc::new(*tree));
                    // Their numbers may be given to others.
                    for member in old.gone(&self.engine.tree) {
                        self.engine.copies.forget(member);
                        self.engine.metrics.forget(member);
                    }
                    self.engine.limits = limits;
                    self.engine.share_memory();
                    self.engine.renew_lanes();
                    self.engine.retire_lanes();
                    for (number, socket) in open {
                        if socket.domain().is_ok_and(|domain| domain == Domain::UNIX) {
                            self.shared.push(number);
                        }
                        if let Ok(conn) = self.reactor.listen(LISTENER << 62 | u64::from(number), socket) {
                            self.listeners.push((number, conn));
                            if self.full {
                                self.reactor.pause(conn);
                            }
                        }
                    }
                    for number in close {
                        self.close_listener(Some(number));
                    }
                    // The control thread may have gone; that is its own matter.
                    let _ = done.send(());
                }
                Order::Propose { member, epoch, state } => self.engine.follow(member, epoch, state),
                Order::SetCopies { members, state, done } => {
                    self.engine.set_copies(&members, state);
                    let _ = done.send(());
                }
                Order::Locate { localities, orders } => {
                    self.engine.locate(localities, &orders, &process::container);
                }
                Order::Adopt { listener, socket } => {
                    self.engine.clients.register().arrived(self.engine.facts.worker);
                    self.adopt(listener, socket);
                }
                Order::Report(to) => {
                    let mut metrics = self.engine.metrics.clone();
                    metrics.open_clients = self.engine.clients.len() as u64;
                    metrics.located = self.engine.clients.located();
                    self.engine.servers.report(&mut metrics);
                    let _ = to.send(metrics);
                }
                Order::Drain => {
                    self.close_listener(None);
                    self.engine.clients.drain();
                    let all: Vec<Peer> = self.engine.clients.ids().map(Peer::Client).collect();
                    all.into_iter().for_each(|peer| self.engine.flush_later(peer));
                }
                Order::Stop => return false,
            }
        }
        true
    }

    fn close_listener(&mut self, which: Option<u16>) {
        let reactor = &mut self.reactor;
        self.listeners.retain(|&(number, conn)| {
            let keep = which.is_some_and(|which| which != number);
            if !keep {
                reactor.close(conn);
            }
            keep
        });
    }
}
