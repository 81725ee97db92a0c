//! The fleet, as the control thread of one of its proxies takes part in it.
//!
//! * `who`: what this proxy keeps in its directory; `security`: certificates; `link`: connections and
//!   their handshakes; `links`: requests to other control threads; `message`: what is said; `book`: who is
//!   where
//! * `raft`: the log of the roster; `types`: the types of its entries
//! * `peer_list`: where the others are; `pods`: the pods of a Service as the others
//! * `begin`: the first start; `beat`: heartbeats, the lease, joining and leaving; `lead`: the work of the
//!   leader
//! * `settings`: what must be equal at all peers; `alert`: what is wrong among them
//! * `serve`: requests of other peers
//! * `peering`: the workers' part: views, channels, what a joiner missed, and the own copies
//! * `subscribers`: a measurement of what many peers cost their leader

mod alert;
mod beat;
mod begin;
mod book;
mod identity;
mod keys;
mod lead;
mod lease_end;
mod link;
mod links;
mod message;
mod peer_list;
mod peering;
mod pods;
mod raft;
mod security;
mod serve;
mod settings;
mod status;
#[cfg(test)]
mod subscribers;
mod types;

use std::{
    collections::{BTreeMap, HashMap},
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use tokio::{
    net::TcpListener,
    sync::{Notify, mpsc, oneshot, watch},
};

pub(super) use self::peering::Peering;
use self::{
    book::Book,
    identity::OwnIdentity,
    link::{Purpose, RawLink},
    links::Links,
    message::Gift,
    peer_list::PeerList,
    raft::{Consensus, Node},
    security::Security,
    settings::Settings,
};
pub use self::{
    identity::{InitError, init_directory},
    keys::{BadKeys, Due, KeysError, SecretError, keep_keys, keep_token, make_keys},
    status::Status,
};
use crate::{
    config::schema,
    control::surroundings::{dns::Names, host},
    event_log::kind,
    fleet::{Difference, Leadership, Lease, Peer, Roster, Slot, Stay},
    random::Random,
    tls::{Certificates, TlsError},
    worker::boot_time,
};

/// This proxy in its fleet.
pub struct Fleet {
    config: schema::Fleet,
    peers: PeerList,
    who: Arc<OwnIdentity>,
    security: Arc<Security>,
    book: Arc<Book>,
    links: Arc<Links>,
    node: Node,
    /// What this proxy announces when it joins.
    announced: Peer,
    /// What must be equal at all peers.
    settings: Settings,
    lease: Arc<Lease>,
    /// The newest roster that this proxy knows.
    roster: watch::Sender<Roster>,
    mine: Mutex<WorkerReports>,
    /// The leadership of this term, if this node leads.
    leadership: Mutex<Option<(u64, Leadership)>>,
    /// Heartbeats that wait for a proof of leadership.
    unproved: mpsc::UnboundedSender<oneshot::Sender<bool>>,
    /// The next heartbeat does not wait for its time.
    beat_now: Notify,
    /// All workers have left the fleet, and what they left is written down.
    left: Notify,
    /// For the workers.
    arrivals: mpsc::UnboundedSender<Arrival>,
    /// Those who want to join, as the leader says.
    candidates: Mutex<Vec<(String, SocketAddr)>>,
    /// How long commits take, in microseconds: their number and their sum.
    commits: Mutex<(u64, u64)>,
    drawn: Mutex<Random>,
}

/// Something of a peer that the workers' part has to deal with.
enum Arrival {
    /// A channel of a worker, and what it said about itself.
    Link {
        name: String,
        identity: u128,
        purpose: Purpose,
        opened: RawLink,
    },
    /// A peer asks what it has missed.
    Missed {
        name: String,
        identity: u128,
        view: u64,
        reply: oneshot::Sender<Gift>,
    },
}

/// What this proxy's workers have told.
#[derive(Default)]
struct WorkerReports {
    installed: u64,
    settled: u64,
    /// Peers that have left changes unanswered, since when that was last told.
    late: HashMap<String, (Stay, Instant)>,
    can_decide: bool,
    /// The leader of this term has taken this stay away. No lease is had in it any more, unless a leader of a
    /// later term grants one: then the removal was never agreed on, and never will be.
    void: Option<(Stay, u64)>,
    /// This proxy says goodbye: it does not join again.
    leaves: bool,
    /// The fleet that this proxy is about to take.
    taking: Option<u128>,
    /// The lease was had when it was last looked at.
    had_lease: bool,
    /// Why this proxy does not join, for people.
    waits_for: String,
    /// How often this proxy has joined and repaired the keys that its copies had missed, or flushed them.
    repaired_keys: u64,
    flushed: u64,
}

/// What cannot be begun. The operator has to correct the configuration, or the machine.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// The directory or the journal cannot be used.
    #[error("the fleet cannot be joined: {0}")]
    Files(#[source] io::Error),
    /// The certificates cannot be used.
    #[error("the fleet cannot be joined: {0}")]
    Tls(#[from] TlsError),
    /// Others could not reach this proxy.
    #[error("fleet: cannot listen on {address}: {source}")]
    #[allow(missing_docs, reason = "the message names the fields")]
    Listen { address: String, source: io::Error },
    /// The address is that of every interface, and no other is known.
    #[error("fleet: nobody could reach this proxy at {0}: write `announce: ADDRESS`")]
    Address(SocketAddr),
    /// The others would not see it.
    #[error(
        "fleet: the Service {service} does not have this peer's endpoint {address}: does it select this pod, is that its \
         port, and does it publish addresses that are not ready?"
    )]
    #[allow(missing_docs, reason = "the message names the fields")]
    Unlisted { service: String, address: SocketAddr },
}

fn guard<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Every change is one assignment: a panic elsewhere leaves nothing half done.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Fleet {
    /// Opens the directory, listens, and begins to take part: with so many workers, in this zone, with these
    /// pools and those of its own copies with the addresses of their servers.
    ///
    /// # Errors
    /// See [`FleetError`].
    pub(super) async fn start(
        config: schema::Fleet,
        mut random: Random,
        (workers, zone): (usize, Option<String>),
        (pools, copies): (Vec<String>, Vec<(String, String)>),
        (certificates, names): (&Certificates, &Arc<Names>),
    ) -> Result<(Arc<Self>, Peering), FleetError> {
        let name = config.name.clone().unwrap_or_else(host::name);
        let security = Arc::new(Security::open(config.tls.as_ref(), certificates)?);
        let told = |source| FleetError::Listen {
            address: config.listen.clone(),
            source,
        };
        let listener = TcpListener::bind(&config.listen).await.map_err(told)?;
        let bound = listener.local_addr().map_err(told)?;
        let peers = PeerList::new(&config.peers, names);
        let address = peers.reachable(config.announce.as_deref(), bound).await?;
        let mut draw = || u128::from(random.bits()) << 64 | u128::from(random.bits());
        let mut who = OwnIdentity::open(name.clone(), &config.dir, draw()).map_err(FleetError::Files)?;
        if let (PeerList::Pods(pods), Some(fleet)) = (&peers, who.facts().fleet)
            && !pods.is_still(fleet, (address, &name)).await?
        {
            drop(who);
            init_directory(&config.dir, true).map_err(|error| FleetError::Files(io::Error::other(error)))?;
            who = OwnIdentity::open(name.clone(), &config.dir, draw()).map_err(FleetError::Files)?;
        }
        let who = Arc::new(who);
        let book = Arc::new(Book::default());
        let links = Arc::new(Links::new(Arc::clone(&who), Arc::clone(&security)));
        let identity = who.facts().identity;
        let node = Node::open(
            who.dir(),
            (identity as u64, config.lease),
            Arc::clone(&book),
            Arc::clone(&links),
        )
        .await
        .map_err(FleetError::Files)?;
        let settings = Settings::new(&config, pools);
        let announced = Peer {
            name,
            identity,
            process: random.bits(),
            address,
            stay: Stay::default(),
            slot: Slot::default(),
            decides: false,
            workers: workers as u16,
            lease: micros(config.lease),
            zone,
            copies,
        };
        let (arrivals, inbox) = mpsc::unbounded_channel();
        let (unproved, proofs) = mpsc::unbounded_channel();
        let (roster, _) = watch::channel(node.committed().borrow().clone());
        tracing::info!(
            name = announced.name,
            %address,
            expect = config.expect,
            tls = config.tls.is_some(),
            "fleet: this proxy takes part"
        );
        let fleet = Arc::new(Self {
            config,
            peers,
            who: Arc::clone(&who),
            security: Arc::clone(&security),
            book,
            links,
            node,
            announced,
            settings,
            lease: Arc::default(),
            roster,
            mine: Mutex::default(),
            leadership: Mutex::default(),
            unproved,
            beat_now: Notify::new(),
            left: Notify::new(),
            arrivals,
            candidates: Mutex::default(),
            commits: Mutex::default(),
            drawn: Mutex::new(random),
        });
        tokio::spawn(link::listen(listener, who, security, Arc::clone(&fleet)));
        tokio::spawn(Arc::clone(&fleet).look_around());
        tokio::spawn(Arc::clone(&fleet).follow_log());
        tokio::spawn(Arc::clone(&fleet).beat());
        tokio::spawn(Arc::clone(&fleet).prove(proofs));
        tokio::spawn(Arc::clone(&fleet).lead());
        let peering = Peering::new(Arc::clone(&fleet), inbox, workers);
        Ok((fleet, peering))
    }

    /// Has the process before this one said goodbye? A new directory knows of none.
    pub(super) fn began_clean(&self) -> bool {
        let facts = self.who.facts();
        facts.clean && facts.stay.is_some()
    }

    /// The lease of this proxy.
    pub(super) fn lease(&self) -> &Arc<Lease> {
        &self.lease
    }

    /// This proxy in the newest roster; `None`: the roster lacks it.
    pub(super) fn me(&self) -> Option<Peer> {
        self.roster
            .borrow()
            .view
            .named(&self.announced.name)
            .filter(|peer| self.is_me(peer))
            .cloned()
    }

    fn is_me(&self, peer: &Peer) -> bool {
        (peer.identity, peer.process) == (self.announced.identity, self.announced.process)
    }

    /// A roster was heard of; an older one changes nothing.
    fn hear_roster(&self, roster: &Roster) {
        if roster.fleet != 0
            && self.who.facts().fleet != Some(roster.fleet)
            && let Err(error) = self.adopt(roster.fleet)
        {
            tracing::error!(%error, "fleet: its identity cannot be written down");
            return;
        }
        self.roster.send_if_modified(|known| {
            let is_newer = roster.view.number > known.view.number || known.fleet == 0 && roster.fleet != 0;
            if is_newer {
                let peers = roster.view.peers.len();
                tracing::info!(target: kind::VIEW, before = known.view.number, view = roster.view.number, peers, why = roster.why, "fleet: view");
                self.note_goodbyes(known, roster);
                known.clone_from(roster);
            }
            is_newer
        });
    }

    /// Peers have left. If one of them is the leader, the next one comes as soon as may be, and leases have to last
    /// until then: they are renewed once more at once.
    fn note_goodbyes(&self, before: &Roster, after: &Roster) {
        let stays = |identity: u128| after.view.peers.iter().any(|peer| peer.identity == identity);
        let mut left = before
            .view
            .peers
            .iter()
            .map(|peer| peer.identity)
            .filter(|identity| !stays(*identity))
            .peekable();
        if left.peek().is_some() {
            self.beat_now.notify_one();
        }
        let (leader, _) = self.node.leader();
        if let Some(leader) = left
            .map(|identity| identity as u64)
            .find(|node| Some(*node) == leader)
        {
            self.node.hear_goodbye(leader);
        }
    }

    /// The roster has changed. A proxy that does not know the one before asks for the whole at once.
    fn hear_difference(&self, difference: &Difference) {
        let next = self.roster.borrow().follow(difference);
        match next {
            Some(roster) => self.hear_roster(&roster),
            None if difference.is_ahead_of(&self.roster.borrow()) => self.beat_now.notify_one(),
            None => {}
        }
    }

    /// This proxy is of that fleet from now on. It does not change its fleet.
    fn adopt(&self, fleet: u128) -> io::Result<()> {
        match self.who.facts().fleet {
            Some(ours) if ours != fleet => Err(io::Error::other("this proxy is of another fleet")),
            Some(_) => Ok(()),
            None => {
                tracing::info!(target: kind::PEER, "fleet: this proxy is of fleet {fleet:032x} from now on");
                self.who.change(|facts| facts.fleet = Some(fleet))
            }
        }
    }

    /// Follows the log, if this node votes.
    async fn follow_log(self: Arc<Self>) {
        let mut committed = self.node.committed();
        let mut before = Roster::default();
        loop {
            let roster = committed.borrow_and_update().clone();
            self.hear_roster(&roster);
            if self.node.leads().is_some() {
                self.spread_difference(&before, &roster);
            }
            before = roster;
            if committed.changed().await.is_err() {
                return;
            }
        }
    }

    /// The address at which the node of this number is.
    fn address_of(&self, node: u64) -> Option<SocketAddr> {
        if node == self.node.id() {
            return Some(self.announced.address);
        }
        let stored = || self.node.voters().get(&node)?.addr.parse().ok();
        self.book.address_of(node).or_else(stored)
    }

    /// The peers of the roster but this one, with their addresses.
    fn others(&self) -> BTreeMap<String, SocketAddr> {
        let roster = self.roster.borrow();
        let others = roster
            .view
            .peers
            .iter()
            .filter(|peer| peer.name != self.announced.name);
        others.map(|peer| (peer.name.clone(), peer.address)).collect()
    }
}

/// A time of leases, in microseconds.
fn micros(time: Duration) -> u64 {
    time.as_micros() as u64
}

/// Now, on the clock of leases.
fn now() -> u64 {
    boot_time()
}
