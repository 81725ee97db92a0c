//! Orders of the control thread and of other workers, and the mailbox through which they reach a worker.

use std::{
    io::Write,
    os::unix::net::UnixStream,
    rc::Rc,
    sync::{Arc, mpsc::Sender},
};

use socket2::{Domain, Socket};

use super::{FleetOrder, LISTENER, Worker, process};
use crate::{
    client::{AnswerSlot, SessionPage, SessionQuery},
    config::schema::Limits,
    copies::CopyState,
    engine::{ClientId, Endpoint, FlightId},
    members::{Localities, MemberId},
    metrics::Metrics,
    near::OriginReply,
    protocol::Ending,
    reactor::{Reactor, give_back},
    route::{Orders, Tree},
    upstream::{Close, Closed},
};

/// An order to a worker.
pub enum Order {
    /// Serve new requests by this tree and these limits. Listeners are opened and closed by number.
    Swap {
        /// The tree that new requests enter.
        tree: Box<Tree>,
        /// The limits from now on.
        limits: Limits,
        /// Listeners to open, with their numbers.
        open: Vec<(u16, Socket)>,
        /// Numbers of the listeners to close.
        close: Vec<u16>,
        /// Gets an ack once the order is carried out.
        done: Sender<()>,
    },
    /// Follow a proposal: it says what a copy may be used for from now on.
    Propose {
        /// The copy.
        member: MemberId,
        /// The epoch of the proposal, which the ack repeats.
        epoch: u64,
        /// The state of the copy from now on.
        state: CopyState,
    },
    /// Set the state of these copies, which are about to be removed.
    SetCopies {
        /// The copies.
        members: Vec<MemberId>,
        /// Their state from now on.
        state: CopyState,
        /// Gets an ack once the order is carried out.
        done: Sender<()>,
    },
    /// Put samples of requests, or put none.
    Tap(bool),
    /// Use the newest report of the node agent.
    Locate {
        /// The locations of processes; `None` if the agent is no longer followed.
        localities: Option<Arc<Localities>>,
        /// The orders of the tree's nodes that follow from the report.
        orders: Orders,
    },
    /// Take over this client of a Unix socket, which another worker has accepted.
    Adopt {
        /// The number of the listener that accepted it.
        listener: u16,
        /// Its connection.
        socket: Socket,
    },
    /// An order about the fleet.
    Fleet(FleetOrder),
    /// End what a server does for a client, on a connection with the client's login.
    Cancel {
        /// The number of the client's session. Another worker may have it.
        session: u64,
        /// What is ended.
        ending: Ending,
        /// The login of the client that wants it, in the codec's words.
        by: Arc<[u8]>,
        /// The number of that client's listener.
        listener: u16,
        /// Is told whether the server has agreed.
        done: Sender<bool>,
    },
    /// Close these connections, as far as there are any now.
    Close {
        /// Which ones.
        closed: Closed,
        /// The moment at which each of them is closed.
        when: Close,
        /// Gets an ack when all of them have ended.
        done: Sender<()>,
    },
    /// Close the clients that were admitted by one of these cached logins.
    EndLogins(Arc<[u64]>),
    /// Hand out a copy of the metrics.
    Report(Sender<Metrics>),
    /// Hand out facts about the sessions of some clients.
    ListSessions {
        /// The sessions that are wanted.
        query: Arc<SessionQuery>,
        /// The first place of the page; each page says where the next one begins.
        from: usize,
        /// Gets the page.
        to: Sender<SessionPage>,
    },
    /// Give a client the answer to its question.
    Answer {
        /// The slot that the answer goes to.
        slot: AnswerSlot,
        /// The answer in the client's protocol.
        answer: Arc<[u8]>,
    },
    /// Take what an HTTP origin has answered.
    Fetched {
        /// The flight that waits for it.
        flight: FlightId,
        /// The answer.
        fetched: Box<OriginReply>,
    },
    /// Count changes, or no more: a rule of the near cache is on, or none is.
    FollowNear,
    /// Give back what others have freed of its memory.
    GiveBack,
    /// Accept no more clients, and close each client as soon as nothing is due to it.
    Drain {
        /// Gets an ack once the order is carried out: every client that comes later is refused.
        done: Sender<()>,
    },
    /// Close the clients that are left.
    CutOff,
    /// Clients may stay again.
    Resume,
    /// End now.
    Stop,
}

/// The mailbox of a worker. Any thread may put orders into it.
#[derive(Clone)]
pub struct Mailbox {
    /// The sending end of the orders' queue.
    pub orders: Sender<Order>,
    /// A byte written here wakes the worker.
    pub bell: Arc<UnixStream>,
}

impl Mailbox {
    /// Puts an order into the mailbox. A worker that has ended receives no orders; the end of its thread is
    /// reported where the thread is joined.
    pub fn order(&self, order: Order) {
        let _ = self.orders.send(order);
        self.ring();
    }

    /// Wakes the worker. A full pipe means that the worker has not read the last wake-ups yet.
    pub fn ring(&self) {
        let _ = (&*self.bell).write(&[0]);
    }
}

impl<R: Reactor> Worker<R> {
    /// Carries out the orders in the mailbox. Returns `false` if the worker is to stop.
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
                    tree.tap(self.engine.is_tapped);
                    let old = std::mem::replace(&mut self.engine.tree, Rc::new(*tree));
                    // The numbers of removed members may be given to others.
                    for member in old.gone(&self.engine.tree) {
                        self.engine.copies.forget(member);
                        self.engine.metrics.forget(member);
                    }
                    self.engine.follow_near();
                    self.engine.find_fleet_pools();
                    self.engine.servers.limit_logins(limits.logins);
                    self.engine.limits = limits;
                    self.engine.share_memory();
                    self.engine.renew_lanes();
                    self.has_useless_lanes |= !self.engine.retire_lanes();
                    self.engine.preconnect();
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
                    // A control thread that has ended needs no ack.
                    let _ = done.send(());
                }
                Order::Propose { member, epoch, state } => self.engine.follow(member, epoch, state),
                Order::SetCopies { members, state, done } => {
                    self.engine.set_copies(&members, state);
                    let _ = done.send(());
                }
                Order::Tap(on) => {
                    self.engine.is_tapped = on;
                    self.engine.tree.tap(on);
                }
                Order::Locate { localities, orders } => {
                    self.engine.locate(localities, &orders, &process::container);
                }
                Order::Adopt { listener, socket } => {
                    self.engine.clients.register().arrived(self.engine.facts.worker);
                    self.adopt(listener, socket, None);
                }
                Order::Fleet(order) => self.take_fleet_order(order),
                Order::Cancel {
                    session,
                    ending,
                    by,
                    listener,
                    done,
                } => self.engine.cancel((session, ending), (&by, listener), done),
                Order::Close { closed, when, done } => self.engine.close_lanes(closed, when, done),
                Order::Report(to) => {
                    let mut metrics = self.engine.metrics.clone();
                    for listener in self.engine.clients.listeners() {
                        metrics.listener(listener).clients += 1;
                    }
                    metrics.open_clients = self.engine.clients.len() as u64;
                    metrics.located = self.engine.clients.located();
                    metrics.sessions = self.engine.clients.sessions();
                    self.engine.servers.report(&mut metrics);
                    self.engine.report_parked(&mut metrics);
                    self.engine.report_fleet(&mut metrics.fleet);
                    let _ = to.send(metrics);
                }
                Order::ListSessions { query, from, to } => {
                    let _ = to.send(self.engine.list_sessions(&query, from));
                }
                Order::Answer { slot, answer } => self.engine.answered(slot, &answer),
                Order::Fetched { flight, fetched } => self.engine.take_fetched(flight, &fetched),
                Order::FollowNear => self.engine.follow_near(),
                Order::EndLogins(numbers) => self.engine.end_logins(&numbers),
                Order::GiveBack => give_back(),
                Order::Drain { done } => {
                    self.close_listener(None);
                    self.engine.clients.set_draining(true);
                    let all: Vec<Endpoint> = self.engine.clients.ids().map(Endpoint::Client).collect();
                    all.into_iter()
                        .for_each(|endpoint| self.engine.flush_later(endpoint));
                    let _ = done.send(());
                }
                Order::CutOff => {
                    let all: Vec<ClientId> = self.engine.clients.ids().collect();
                    all.into_iter().for_each(|id| self.engine.close_client(id, true));
                }
                Order::Resume => self.engine.clients.set_draining(false),
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
