//! The workers' part in the fleet, as the control thread runs it: they are told of views, given channels, and
//! hear what this peer missed. The own copies are not read before that is repaired.
//!
//! ```text
//!  a new stay ─▶ all workers have installed its view ─▶ ask the others what was missed ─▶ floor ─▶ repair ─▶ read
//! ```

use std::{
    collections::HashSet,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::{
    sync::{mpsc, oneshot},
    task::JoinSet,
    time::{MissedTickBehavior, interval, timeout},
};

use super::{
    Arrival, Fleet, guard,
    lease_end::LeaseEnd,
    link::{Hello, Purpose, RawLink, connect},
    message::{Gift, Message, Reply},
};
use crate::{
    control::Proxy,
    copies::Membership,
    event_log::kind,
    fleet::{
        Slot, Stamp, Stay, View,
        keeper::{MissedByPeer, Shared},
    },
    peers::{Event, Role},
    worker::{FleetOrder, Order},
};

/// Interval between two looks at what waits.
const LOOK: Duration = Duration::from_millis(20);
/// Interval between two attempts to reach a peer.
const RETRY: Duration = Duration::from_millis(100);
/// Time for a channel with its handshake.
const CONNECT: Duration = Duration::from_millis(700);
/// A channel or a question of a peer waits this long for the view that it is of.
const AHEAD: Duration = Duration::from_secs(2);

/// A channel that this proxy is to have: the peer, its stay, and the number of the worker.
type LinkTarget = (Slot, Stay, usize);

/// The workers' part in the fleet.
pub(in crate::control) struct Peering {
    fleet: Arc<Fleet>,
    shared: Arc<Shared>,
    inbox: mpsc::UnboundedReceiver<Arrival>,
    /// By worker, the newest view that it has installed, and that before which its decisions have ended.
    installed: Vec<u64>,
    settled: Vec<u64>,
    view: Arc<View>,
    me: Option<(Slot, Stay)>,
    /// The stay whose floor is being asked for.
    joining: Option<Joining>,
    /// Keys of which the own copies may hold what others do not.
    uncertain: MissedByPeer,
    /// Nothing is known of what the own copies hold.
    unknown: bool,
    links: HashSet<LinkTarget>,
    /// Channels that are being made, each with the stay of this proxy that it is of.
    connecting: HashSet<(LinkTarget, Stay)>,
    opened: (
        mpsc::UnboundedSender<LinkAttempt>,
        mpsc::UnboundedReceiver<LinkAttempt>,
    ),
    tried: Instant,
    /// What waits for this proxy's workers to install a view.
    waiting: Vec<(Instant, Arrival)>,
    gifts: (
        mpsc::UnboundedSender<Vec<Gift>>,
        mpsc::UnboundedReceiver<Vec<Gift>>,
    ),
}

/// A channel with the stay of this proxy that it is of, or why there is none.
type LinkAttempt = (LinkTarget, Stay, std::io::Result<RawLink>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Joining {
    stay: Stay,
    asked: bool,
}

impl Peering {
    pub(super) fn new(fleet: Arc<Fleet>, inbox: mpsc::UnboundedReceiver<Arrival>, workers: usize) -> Self {
        let facts = fleet.who.facts();
        Self {
            shared: Arc::default(),
            inbox,
            installed: vec![0; workers],
            settled: vec![0; workers],
            view: Arc::default(),
            me: None,
            joining: None,
            // A process that did not say goodbye has left changes half done, and nobody knows which.
            unknown: !facts.clean || facts.stay.is_none(),
            uncertain: facts.uncertain,
            links: HashSet::new(),
            connecting: HashSet::new(),
            opened: mpsc::unbounded_channel(),
            tried: Instant::now(),
            waiting: Vec::new(),
            gifts: mpsc::unbounded_channel(),
            fleet,
        }
    }

    /// What the workers of this process have in common.
    pub(in crate::control) fn membership(&self) -> Membership {
        Membership {
            shared: Arc::clone(&self.shared),
            lease: Arc::clone(self.fleet.lease()),
            suspect: self.fleet.config.suspect.into(),
            zone: self.fleet.announced.zone.clone(),
        }
    }

    /// Serves the workers until the process ends.
    pub(in crate::control) async fn run(
        mut self,
        proxy: Arc<Proxy>,
        mut events: mpsc::UnboundedReceiver<Event>,
    ) {
        let mut roster = self.fleet.roster.subscribe();
        let mut look = interval(LOOK);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        roster.mark_changed();
        loop {
            tokio::select! {
                changed = roster.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    let view = roster.borrow_and_update().view.clone();
                    self.follow(&proxy, view);
                }
                Some(event) = events.recv() => self.hear(&proxy, event),
                Some(arrival) = self.inbox.recv() => self.waiting.push((Instant::now(), arrival)),
                Some(made) = self.opened.1.recv() => self.add_link(&proxy, made),
                Some(gifts) = self.gifts.1.recv() => self.take(&proxy, &gifts),
                _ = look.tick() => {}
            }
            self.go_on(&proxy);
        }
    }

    /// Tells the workers of a view.
    fn follow(&mut self, proxy: &Arc<Proxy>, view: View) {
        if view.number <= self.view.number {
            return;
        }
        self.view = Arc::new(view);
        let me = self.fleet.me().map(|peer| (peer.slot, peer.stay));
        if self.me.is_some() && me != self.me {
            // Before any worker hears of another stay.
            self.fleet.end_lease(LeaseEnd::NotInView);
            self.shared.drop_floor();
            self.joining = None;
            let why = self.view_reason();
            tracing::warn!(target: kind::PEER, why, "fleet: this proxy is not in the view any more");
            proxy.hold_own_copies(&why);
        }
        if let Some((_, stay)) = me.filter(|_| me != self.me) {
            self.joining = Some(Joining { stay, asked: false });
            let noted = self.fleet.who.change(|facts| {
                (facts.stay, facts.clean) = (Some(stay), false);
            });
            if let Err(error) = noted {
                tracing::error!(%error, "fleet: the stay cannot be written down; after a crash the copies are flushed");
            }
        }
        if me != self.me {
            guard(&self.fleet.mine).late.clear();
        }
        self.me = me;
        let view = &self.view;
        self.links
            .retain(|(slot, stay, _)| view.slot(*slot).is_some_and(|peer| peer.stay == *stay));
        proxy.workers.order(|_| {
            Order::Fleet(FleetOrder::View {
                view: Arc::clone(view),
                me,
            })
        });
    }

    fn view_reason(&self) -> String {
        self.fleet.roster.borrow().why.clone()
    }

    /// A worker has told something.
    fn hear(&mut self, proxy: &Arc<Proxy>, event: Event) {
        match event {
            Event::Installed { worker, view } => {
                if let Some(installed) = self.installed.get_mut(worker) {
                    *installed = view;
                }
            }
            Event::Settled { worker, view } => {
                if let Some(settled) = self.settled.get_mut(worker) {
                    *settled = view;
                }
            }
            Event::Late { slot, stay, .. } => {
                let peer = self.view.slot(slot).filter(|peer| peer.stay == stay);
                if let Some(peer) = peer {
                    let late = (stay, Instant::now());
                    let before = guard(&self.fleet.mine).late.insert(peer.name.clone(), late);
                    if before.is_none() {
                        tracing::warn!(target: kind::PEER, peer = peer.name, "fleet: it leaves changes unanswered");
                        self.fleet.beat_now.notify_one();
                    }
                }
            }
            Event::Left { keys, .. } => {
                self.uncertain.merge(&keys);
                let _ = proxy;
            }
            Event::Lost {
                worker,
                slot,
                stay,
                why,
            } => {
                if self.links.remove(&(slot, stay, worker)) {
                    let peer = self.view.slot(slot).filter(|peer| peer.stay == stay);
                    if let Some(peer) = peer {
                        tracing::debug!(peer = peer.name, worker, why, "fleet: a channel has ended");
                    }
                }
            }
        }
    }

    /// Does what can be done now.
    fn go_on(&mut self, proxy: &Arc<Proxy>) {
        let installed = self.installed.iter().copied().min().unwrap_or(0);
        let settled = self.settled.iter().copied().min().unwrap_or(0);
        let can_decide = self.me.is_some() && self.shared.has_floor() && proxy.reads_own_copies();
        let has_changed = {
            let mut mine = guard(&self.fleet.mine);
            let told = (mine.installed, mine.settled, mine.can_decide);
            (mine.installed, mine.settled, mine.can_decide) = (installed, settled, can_decide);
            told != (installed, settled, can_decide)
        };
        if has_changed {
            self.fleet.beat_now.notify_one();
        }
        self.note_leaving(installed);
        self.connect(proxy);
        self.serve_waiting(proxy, installed);
        self.ask_for_gift(installed);
    }

    /// All workers have left: what is uncertain is written down, and the process may end.
    fn note_leaving(&mut self, installed: u64) {
        let leaves = guard(&self.fleet.mine).leaves;
        if !leaves || self.me.is_some() || installed < self.view.number {
            return;
        }
        let facts = self.fleet.who.facts();
        if facts.clean {
            return;
        }
        let uncertain = match self.unknown {
            true => MissedByPeer::everything(),
            false => self.uncertain.clone(),
        };
        let noted = self
            .fleet
            .who
            .change(|facts| (facts.clean, facts.uncertain) = (true, uncertain));
        if let Err(error) = noted {
            tracing::error!(%error, "fleet: the goodbye cannot be written down; the copies are flushed at the next start");
        }
        self.fleet.left.notify_one();
    }

    /// Makes the channels that are missing.
    fn connect(&mut self, proxy: &Arc<Proxy>) {
        let Some((_, mine)) = self.me else { return };
        if self.tried.elapsed() < RETRY && !self.connecting.is_empty() {
            return;
        }
        self.tried = Instant::now();
        for peer in self
            .view
            .peers
            .iter()
            .filter(|peer| Some((peer.slot, peer.stay)) != self.me)
        {
            for worker in 0..proxy.workers.len() {
                let wanted = (peer.slot, peer.stay, worker);
                if self.links.contains(&wanted) || !self.connecting.insert((wanted, mine)) {
                    continue;
                }
                let purpose = Purpose::Data {
                    worker: worker as u16,
                    stay: mine,
                    to: peer.stay,
                };
                let hello = Hello::of(&self.fleet.who, purpose);
                let (fleet, address) = (Arc::clone(&self.fleet), peer.address);
                let tell = self.opened.0.clone();
                tokio::spawn(async move {
                    let made = timeout(CONNECT, connect(address, &fleet.security, &hello)).await;
                    let late = |_| std::io::Error::from(std::io::ErrorKind::TimedOut);
                    let made = made.map_err(late).and_then(|made| made);
                    let made = made.and_then(|(stream, early, _)| stream.take_over(early));
                    if made.is_err() {
                        tokio::time::sleep(RETRY).await;
                    }
                    let _ = tell.send((wanted, mine, made));
                });
            }
        }
    }

    fn add_link(&mut self, proxy: &Arc<Proxy>, (wanted, mine, made): LinkAttempt) {
        self.connecting.remove(&(wanted, mine));
        let (slot, stay, worker) = wanted;
        // The other end takes nothing from a stay of this proxy that has ended.
        let is_ours = self.me.is_some_and(|(_, stay)| stay == mine);
        let is_wanted = is_ours && self.view.slot(slot).is_some_and(|peer| peer.stay == stay);
        if let (Ok(opened), true) = (made, is_wanted) {
            self.links.insert(wanted);
            give(proxy, worker, (slot, stay), Role::Coordinator, opened);
        }
    }

    /// Channels and questions whose view is there.
    fn serve_waiting(&mut self, proxy: &Arc<Proxy>, installed: u64) {
        let waiting = std::mem::take(&mut self.waiting);
        for (since, arrival) in waiting {
            if since.elapsed() > AHEAD {
                continue;
            }
            match arrival {
                Arrival::Link {
                    name,
                    identity,
                    purpose: Purpose::Data { worker, stay, to },
                    opened,
                } => {
                    let peer = self.view.named(&name);
                    let peer = peer.filter(|peer| (peer.identity, peer.stay) == (identity, stay));
                    match (peer, self.me) {
                        (Some(peer), Some((_, mine))) if mine == to => {
                            let number = usize::from(worker) % proxy.workers.len();
                            give(proxy, number, (peer.slot, stay), Role::Keeper { worker }, opened);
                        }
                        // The view that it is of has not come yet, or never will.
                        _ => self.waiting.push((
                            since,
                            Arrival::Link {
                                name,
                                identity,
                                purpose: Purpose::Data { worker, stay, to },
                                opened,
                            },
                        )),
                    }
                }
                Arrival::Link { .. } => {}
                Arrival::Missed {
                    name,
                    identity,
                    view,
                    reply,
                } if installed >= view => self.give_missed(proxy, (name, identity), reply),
                question @ Arrival::Missed { .. } => self.waiting.push((since, question)),
            }
        }
    }

    /// Tells a peer that has joined again what it missed. All workers have installed the view that it joined
    /// with.
    fn give_missed(
        &self,
        proxy: &Arc<Proxy>,
        (name, identity): (String, u128),
        reply: oneshot::Sender<Gift>,
    ) {
        let (tell, missed) = std::sync::mpsc::channel();
        proxy.workers.order(|_| {
            Order::Fleet(FleetOrder::Missed {
                name: name.clone(),
                identity,
                reply: tell.clone(),
            })
        });
        drop(tell);
        let (shared, workers) = (Arc::clone(&self.shared), proxy.workers.len());
        tokio::task::spawn_blocking(move || {
            let parts: Vec<Option<MissedByPeer>> = missed.iter().collect();
            let all = parts.len() == workers;
            let merged = parts
                .into_iter()
                .try_fold(MissedByPeer::default(), |mut sum, part| {
                    sum.merge(&part?);
                    Some(sum)
                });
            let clock = shared.has_floor().then(|| shared.clock().bits());
            let _ = reply.send(Gift {
                missed: merged.filter(|_| all),
                clock,
            });
        });
    }

    /// Asks the others what this peer has missed, when all of its workers take part in its new stay.
    fn ask_for_gift(&mut self, installed: u64) {
        let Some(joining) = &mut self.joining else { return };
        if joining.asked || installed < joining.stay.0 {
            return;
        }
        joining.asked = true;
        let others: Vec<_> = self.fleet.others().into_values().collect();
        let (fleet, view, tell) = (Arc::clone(&self.fleet), joining.stay.0, self.gifts.0.clone());
        tokio::spawn(async move {
            let mut asked = JoinSet::new();
            for address in others.iter().copied() {
                let fleet = Arc::clone(&fleet);
                asked.spawn(async move {
                    let message = Message::Missed {
                        name: fleet.announced.name.clone(),
                        identity: fleet.announced.identity,
                        view,
                    };
                    match fleet.links.ask(address, message, AHEAD).await {
                        Ok(Reply::Missed(gift)) => Some(gift),
                        _ => None,
                    }
                });
            }
            let gifts: Vec<Gift> = asked.join_all().await.into_iter().flatten().collect();
            let _ = tell.send(gifts);
        });
    }

    /// The others have answered.
    fn take(&mut self, proxy: &Arc<Proxy>, gifts: &[Gift]) {
        let Some(joining) = &mut self.joining else { return };
        let Some((slot, stay)) = self.me.filter(|(_, stay)| *stay == joining.stay) else {
            return;
        };
        let others = self.view.peers.len() - 1;
        // If no peer has a floor, the one that joined first sets it.
        let is_first = self
            .view
            .peers
            .iter()
            .all(|peer| (peer.stay, peer.slot) >= (stay, slot));
        let clock = gifts.iter().filter_map(|gift| gift.clock).max();
        let clock = match clock {
            Some(clock) => Stamp::from_bits(clock),
            None if is_first && gifts.len() == others => self.shared.clock(),
            None => {
                joining.asked = false;
                return;
            }
        };
        let mut missed = match gifts.iter().find_map(|gift| gift.missed.as_ref()) {
            Some(missed) if !self.unknown => missed.clone(),
            _ => MissedByPeer::everything(),
        };
        missed.merge(&self.uncertain);
        self.shared.set_floor(clock);
        (self.joining, self.unknown) = (None, false);
        self.uncertain = MissedByPeer::default();
        let keys = missed
            .count()
            .map_or_else(|| "everything".to_owned(), |count| count.to_string());
        {
            let mut mine = guard(&self.fleet.mine);
            match missed.count() {
                Some(_) => mine.repaired_keys += 1,
                None => mine.flushed += 1,
            }
        }
        tracing::info!(target: kind::PEER, keys, "fleet: this proxy has joined; its copies are repaired");
        proxy.release_own_copies(&missed);
    }
}

/// Gives a channel to a worker.
fn give(proxy: &Proxy, worker: usize, (slot, stay): (Slot, Stay), role: Role, opened: RawLink) {
    let RawLink {
        socket,
        transform,
        early,
    } = opened;
    proxy.workers.order_one(
        worker,
        Order::Fleet(FleetOrder::Link {
            slot,
            stay,
            role,
            socket,
            transform,
            early,
        }),
    );
}
