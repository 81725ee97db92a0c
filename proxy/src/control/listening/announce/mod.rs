//! Tells the clients of a listener which proxies they may use: this one and its peers.
//!
//! ```text
//!  list, file or DNS ─▶ proxies ─▶ differs from what is told? ─▶ version ─▶ told ─▶ workers
//!                                    peers ─▶ what they tell ────────┘        └─▶ kept on disk
//! ```

mod proxies;
mod version;

use std::{collections::BTreeMap, net::SocketAddr, sync::Arc, time::Duration};

use proxima_wire::memcache;
use tokio::{
    task::JoinSet,
    time::{MissedTickBehavior, interval, timeout},
};

use self::{
    proxies::Proxies,
    version::{PeerVersions, version},
};
use crate::{
    client::Announcements,
    config::{
        listen_socket,
        schema::{ClientTls, Discovery, Verify},
    },
    control::{
        Proxy,
        surroundings::{
            discovery::{Keeper, ask},
            dns::System,
        },
    },
    event_log::kind,
    members::discovery::{NodeList, answer},
    tls::Connector,
};

/// Time between two looks at who the proxies are.
const ROUND: Duration = Duration::from_secs(1);
/// Rounds without a change until the peers are asked again.
const QUIET: u32 = 5;
/// Time in which a peer must tell its list.
const ANSWER: Duration = Duration::from_secs(1);
/// Time in which all peers must tell theirs.
const ANSWERS: Duration = Duration::from_secs(10);
/// The name by which another proxy is asked.
const NAME: &str = "proxima";
/// Peers that are asked at the same time.
const AT_ONCE: usize = 64;

/// Tells clients of the proxies until the process ends.
pub(in crate::control) async fn announce(proxy: Arc<Proxy>) {
    let mut round = interval(ROUND);
    round.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut system = System::default();
    let mut announcements: BTreeMap<String, Announcement> = BTreeMap::new();
    loop {
        round.tick().await;
        let wanted = proxy.announcing();
        announcements.retain(|address, before| {
            let now = wanted.iter().find(|now| now.listener == *address);
            now.is_some_and(|now| now.discovery == before.discovery)
        });
        for Announcing {
            listener,
            discovery,
            bound,
            tls,
        } in wanted
        {
            if !announcements.contains_key(&listener) {
                let new = Announcement::begin(&listener, discovery).await;
                announcements.insert(listener.clone(), new);
                // What was kept is told while peers are asked.
                proxy.tell(&announcements);
            }
            if let Some(announcement) = announcements.get_mut(&listener) {
                announcement.round(bound, tls.as_ref(), &mut system).await;
                proxy.tell(&announcements);
            }
        }
    }
}

/// A listener whose clients discover the proxies.
struct Announcing {
    listener: String,
    discovery: Discovery,
    /// Where it listens. `None`: at a Unix socket.
    bound: Option<SocketAddr>,
    /// TLS with the others, who are asked where clients are. `None`: clients speak plainly.
    tls: Option<Arc<Connector>>,
}

impl Proxy {
    /// The listeners of the running configuration whose clients discover the proxies.
    fn announcing(&self) -> Vec<Announcing> {
        let rooms = self.rooms();
        let listening = &rooms.listening;
        let bound = |address: &str| {
            let number = listening.addresses.iter().position(|known| known == address)?;
            match listening.bound.get(number)? {
                Some(bound) => bound.parse().ok(),
                // A drain has closed it. It will be there again.
                None => listen_socket(address),
            }
        };
        let listeners = rooms.configuration.config().listeners.iter();
        let announcing = listeners.filter_map(|listener| {
            Some(Announcing {
                discovery: listener.discovery.clone()?,
                bound: bound(&listener.address),
                tls: listener.tls.as_ref().and_then(|_| self.among_proxies()),
                listener: listener.address.clone(),
            })
        });
        announcing.collect()
    }

    /// TLS with another proxy's listener. Which authority its certificate has is not said anywhere, and what it
    /// tells is no secret: the version of a list that this proxy knows by itself.
    fn among_proxies(&self) -> Option<Arc<Connector>> {
        let tls = ClientTls {
            ca: None,
            name: Some(NAME.to_owned()),
            identity: None,
            verify: Verify::None,
        };
        self.certificates.connector(&tls, None).ok().map(Arc::new)
    }

    /// Hands the workers what clients are told, by the number of the listener.
    fn tell(&self, announcements: &BTreeMap<String, Announcement>) {
        let listening = &mut self.rooms().listening;
        listening.told = announcements.values().map(AnnouncementStatus::by).collect();
        let answers = listening.addresses.iter().map(|address| {
            let told = announcements.get(address).and_then(|told| told.told.as_ref());
            told.map_or_else(Announcements::new, answers)
        });
        self.register.announce(answers.collect());
    }
}

/// The answers with this list, in each form of memcached's protocol.
fn answers(list: &NodeList) -> Announcements {
    let forms = memcache::Discovery::ALL;
    forms.iter().map(|&form| answer(form, list)).collect()
}

/// What the clients of one listener are told, for operators.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnnouncementStatus {
    /// The listener's address.
    pub listener: String,
    /// Whether it was known in the last round who the proxies are.
    pub is_up: bool,
    /// The number of proxies that clients are told of; 0: not known yet.
    pub proxies: usize,
    /// The version of their list; 0: it is not known yet.
    pub version: u64,
}

impl AnnouncementStatus {
    fn by(announcement: &Announcement) -> Self {
        let list = announcement.told.as_ref();
        Self {
            listener: announcement.listener.clone(),
            is_up: list.is_some() && announcement.failure.is_empty(),
            proxies: list.map_or(0, |list| list.nodes().len()),
            version: list.map_or(0, |list| list.version),
        }
    }
}

/// What the clients of one listener are told.
struct Announcement {
    listener: String,
    discovery: Discovery,
    keeper: Keeper,
    proxies: Proxies,
    /// The list with its version. `None`: the proxies are not known yet.
    told: Option<NodeList>,
    /// Rounds since the peers were asked.
    quiet: u32,
    /// Why the proxies were not known in the last round, which is logged once.
    failure: String,
}

impl Announcement {
    /// Begins with the list that an earlier process has kept, if it has.
    async fn begin(listener: &str, discovery: Discovery) -> Self {
        let keeper = Keeper::new(discovery.keep.as_deref(), &format!("announced-{listener}"), true);
        Self {
            listener: listener.to_owned(),
            discovery,
            told: keeper.read().await,
            keeper,
            proxies: Proxies::default(),
            quiet: QUIET,
            failure: String::new(),
        }
    }

    /// Looks who the proxies are, and tells clients of a change. `bound` is where the listener listens;
    /// `None`: at a Unix socket.
    async fn round(&mut self, bound: Option<SocketAddr>, tls: Option<&Arc<Connector>>, system: &mut System) {
        let listener = &self.listener;
        let found = self.proxies.find(&self.discovery, bound, &system.read()).await;
        let (mut list, own) = match found {
            Ok(found) => found,
            Err(failure) => {
                let failure = failure.to_string();
                if failure != self.failure {
                    tracing::warn!(target: kind::SOURCE, %listener, %failure, "it is not known who the proxies are; clients are told what is known");
                }
                self.failure = failure;
                return;
            }
        };
        self.failure.clear();
        let is_new = self.told.as_ref().is_none_or(|told| told.nodes() != list.nodes());
        self.quiet += 1;
        if !is_new && self.quiet < QUIET {
            return;
        }
        self.quiet = 0;
        let heard = ask_peers(&list, &own, tls).await;
        list.version = version(self.told.as_ref(), &list, heard);
        if self.told.as_ref() != Some(&list) {
            let (proxies, version) = (list.nodes().len(), list.version);
            tracing::info!(target: kind::SOURCE, %listener, proxies, version, %own, "clients are told of these proxies");
            self.keeper.write(list.text()).await;
            self.told = Some(list);
        }
    }
}

/// The versions that the other proxies of this list tell their clients. Those that do not answer in time are
/// left out.
async fn ask_peers(list: &NodeList, own: &str, tls: Option<&Arc<Connector>>) -> PeerVersions {
    let mut heard = PeerVersions::default();
    let peers = list.nodes().iter().filter(|peer| peer.name() != own);
    let places = peers.filter_map(|peer| Some(SocketAddr::new(peer.ip()?, peer.port())));
    let mut places = places.collect::<Vec<_>>().into_iter();
    let mut asked = JoinSet::new();
    let all = async {
        loop {
            let free = AT_ONCE - asked.len();
            for place in places.by_ref().take(free) {
                let tls = tls.cloned();
                asked.spawn(timeout(ANSWER, async move { ask(place, tls.as_deref()).await }));
            }
            match asked.join_next().await {
                Some(Ok(Ok(Ok(told)))) => heard.add(&told, list),
                Some(_) => {}
                None => return,
            }
        }
    };
    let _ = timeout(ANSWERS, all).await;
    heard
}
