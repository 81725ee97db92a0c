//! Probes of other proxies, and the very first start: silence alone never begins a fleet.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use openraft::BasicNode;
use tokio::{task::JoinSet, time::sleep};

use super::{
    Fleet,
    alert::unix_micros,
    guard,
    message::{Introduction, Message, Reply},
    peer_list::PeerList,
    pods::{Found, Pods},
};
use crate::{
    config::schema::Role,
    control::surroundings::kubernetes::ApiFailure,
    event_log::kind,
    fleet::{Answer, FirstStart, Present, Sight, Voter, choose, first_start, lowest},
};

/// Interval between two rounds of probes.
const LOOK: Duration = Duration::from_millis(200);
/// So many peers of the view are asked in each round, and more only if the fleet has so many that one of them
/// would not be asked for 8 seconds: all ask all, and the work must not grow with the square of their number.
const EACH_ROUND: usize = 50;
const MOST_ROUNDS: usize = 40;
/// Pause behind a failure of the API server.
const AGAIN: Duration = Duration::from_secs(1);
/// Time for the answer to a probe.
const PROBE: Duration = Duration::from_millis(600);

impl Fleet {
    /// The identity of this proxy.
    pub(super) fn introduction(&self) -> Introduction {
        let facts = self.who.facts();
        let empty: Vec<String> = self
            .book
            .pick(|_, entry, who| (entry.is_fresh() && who.fleet.is_none()).then(|| who.name.clone()));
        let lowest = lowest(&self.announced.name, empty.iter().map(String::as_str));
        let (leader, term) = self.node.leader();
        Introduction {
            name: self.announced.name.clone(),
            identity: facts.identity,
            fleet: facts.fleet.or_else(|| guard(&self.mine).taking),
            lowest: lowest.to_owned(),
            leader,
            term,
            votes_for_nobody: self.node.hears_leader() || self.node.stopped().is_some(),
            witness: self.config.role == Role::Witness,
            time: unix_micros(),
            settings: self.settings.clone(),
            round_trips: self.book.round_trips(),
        }
    }

    /// Asks all addresses who is there, for ever.
    pub(super) async fn look_around(self: Arc<Self>) {
        let mut told = BTreeSet::new();
        for round in 0_usize.. {
            let listed = self.peers.addresses().await;
            let mut addresses = listed.clone();
            let others: BTreeSet<SocketAddr> = self.others().into_values().collect();
            addresses.extend(&others);
            addresses.extend(guard(&self.candidates).iter().map(|(_, address)| *address));
            let voters = self.node.voters();
            let voters: BTreeSet<SocketAddr> = voters
                .iter()
                .flat_map(|(node, at)| [self.book.address_of(*node), at.addr.parse().ok()])
                .flatten()
                .collect();
            addresses.extend(&voters);
            addresses.retain(|address| *address != self.announced.address);
            addresses.sort_unstable();
            addresses.dedup();
            self.book.retain(&addresses);
            // Voters, and proxies in no view, are asked in every round. A proxy that joins must reach all
            // peers first.
            let rounds = match self.me() {
                Some(_) => others.len().div_ceil(EACH_ROUND).clamp(1, MOST_ROUNDS),
                None => 1,
            };
            let mut number = 0;
            addresses.retain(|address| {
                let waits = others.contains(address) && !voters.contains(address);
                number += usize::from(waits);
                !waits || number % rounds == round % rounds
            });
            self.probe(&addresses).await;
            self.begin(&listed).await;
            self.tell_of_alerts(&mut told);
            sleep(LOOK).await;
        }
    }

    async fn probe(self: &Arc<Self>, addresses: &[SocketAddr]) {
        let mut probes = JoinSet::new();
        for &address in addresses {
            let fleet = Arc::clone(self);
            probes.spawn(async move {
                let asked = Instant::now();
                match fleet.links.ask(address, Message::Probe, PROBE).await {
                    Ok(Reply::Probe(who)) => fleet.book.answered(address, who, asked.elapsed()),
                    Ok(_) => fleet
                        .book
                        .failed(address, "it gives another answer than was asked for".to_owned()),
                    Err(error) => fleet.book.failed(address, error.to_string()),
                }
            });
        }
        while probes.join_next().await.is_some() {}
    }

    /// How many peers the first start waits for: as many as are expected, and a majority of those that are
    /// listed, so that no two groups of them begin a fleet each. Addresses of the other family are other ways
    /// to the same peers.
    fn expected(&self, listed: &[SocketAddr]) -> usize {
        let own = self.announced.address;
        let is_own = |address: &SocketAddr| {
            let who = self.book.at(*address);
            *address == own || who.is_some_and(|who| who.identity == self.announced.identity)
        };
        let others = listed
            .iter()
            .filter(|address| address.is_ipv4() == own.is_ipv4() && !is_own(address));
        self.config.expect.max(others.count().div_ceil(2) + 1)
    }

    /// The others that have answered a moment ago.
    fn present(&self) -> Vec<(SocketAddr, Introduction)> {
        let mut present = self.book.present();
        present.retain(|(_, who)| who.identity != self.announced.identity);
        present
    }

    /// What this proxy does while it has no fleet, where these are listed.
    fn first_start(&self, listed: &[SocketAddr]) -> FirstStart {
        let own = self.announced.address;
        let present = self.present();
        let answers: Vec<Answer> = present
            .iter()
            .map(|(_, who)| Answer {
                name: who.name.clone(),
                lowest: who.lowest.clone(),
                fleet: who.fleet,
            })
            .collect();
        let mut silent = Vec::new();
        let (expected, unlisted) = match &self.peers {
            PeerList::At(_) => (self.expected(listed), None),
            PeerList::Pods(_) => {
                let is_there = |at: &SocketAddr| present.iter().any(|(known, _)| known == at);
                silent.extend(listed.iter().filter(|&at| *at != own && !is_there(at)));
                (self.config.expect, (!listed.contains(&own)).then_some(own))
            }
        };
        first_start(&Sight {
            me: &self.announced.name,
            answers: &answers,
            expected,
            unlisted,
            silent: &silent,
        })
    }

    /// Finds the fleet of those who are there, or begins one with them.
    async fn begin(self: &Arc<Self>, listed: &[SocketAddr]) {
        if let Some(fleet) = self.who.facts().fleet {
            // It has begun this one, and was interrupted.
            if fleet == self.announced.identity && !self.node.has_begun().await {
                self.initialize_alone().await;
            }
            return;
        }
        if self.node.has_begun().await {
            return;
        }
        match (self.first_start(listed), &self.peers) {
            (FirstStart::Begin, PeerList::At(_)) => {
                let mut able: Vec<Present> = self
                    .present()
                    .iter()
                    .map(|(address, who)| Present {
                        name: who.name.clone(),
                        node: who.identity as u64,
                        address: *address,
                        witness: who.witness,
                    })
                    .collect();
                able.push(self.as_voter());
                self.initialize(choose(&[], &able, &[], self.config.voters.as_deref()))
                    .await;
            }
            (FirstStart::Adopt(fleet), PeerList::At(_)) => self.adopt_or_tell(fleet),
            (FirstStart::Wait(why), _) => self.wait(why.to_string()),
            (decided, PeerList::Pods(pods)) => {
                let done = match decided {
                    FirstStart::Adopt(fleet) => self.join_pods(pods, fleet).await,
                    _ => self.begin_among(pods).await,
                };
                if let Err(failure) = done {
                    self.wait(format!(
                        "the API server does not say which fleet is that of the Service: {failure}"
                    ));
                    sleep(AGAIN).await;
                }
            }
        }
    }

    /// Takes the fleet of other pods, if it is that of the Service.
    async fn join_pods(&self, pods: &Pods, fleet: u128) -> Result<(), ApiFailure> {
        guard(&self.mine).taking = Some(fleet);
        let found = pods
            .take(fleet, (self.announced.address, &self.announced.name))
            .await;
        match &found {
            Ok(Found::Same) => self.adopt_or_tell(fleet),
            Ok(Found::Other(other)) => self.wait(format!(
                "a pod is of fleet {fleet:032x}, and that of the Service is {other:032x}"
            )),
            // It tries again. Of many that join at once one alone is faster.
            Ok(Found::Unlisted | Found::Changed) => sleep(self.spread()).await,
            Err(_) => {}
        }
        guard(&self.mine).taking = None;
        found.map(drop)
    }

    /// A pause of up to [`LOOK`].
    fn spread(&self) -> Duration {
        LOOK.mul_f64(guard(&self.drawn).fraction())
    }

    /// Begins a fleet among the pods of a Service, with itself as the only voter at first. Of all that try, one
    /// alone changes the Lease from what it was before they had seen that nobody has a fleet.
    async fn begin_among(self: &Arc<Self>, pods: &Pods) -> Result<(), ApiFailure> {
        let read = pods.lease().await?;
        let listed = pods.list().await?;
        self.book.retain(&listed);
        let mut others = listed.clone();
        others.retain(|address| *address != self.announced.address);
        self.probe(&others).await;
        if self.first_start(&listed) != FirstStart::Begin {
            return Ok(());
        }
        let (fleet, name) = (self.announced.identity, &self.announced.name);
        if pods.hold(read, (fleet, name)).await? {
            self.adopt_or_tell(fleet);
            self.initialize_alone().await;
        }
        Ok(())
    }

    fn wait(&self, why: String) {
        let before = std::mem::replace(&mut guard(&self.mine).waits_for, why.clone());
        if before != why {
            tracing::info!(target: kind::PEER, why, "fleet: this proxy waits");
        }
    }

    fn adopt_or_tell(&self, fleet: u128) {
        if let Err(error) = self.adopt(fleet) {
            tracing::error!(%error, "fleet: its identity cannot be written down");
        }
    }

    /// Begins the log of a fleet with this proxy as the only voter. The leader chooses others, also where the
    /// configuration names them, as soon as they are there.
    async fn initialize_alone(&self) {
        self.initialize(choose(&[], &[self.as_voter()], &[], None)).await;
    }

    async fn initialize(&self, voters: Vec<Voter>) {
        // One that votes no more has said why, and begins nothing before it is started again.
        if self.node.stopped().is_some() {
            return;
        }
        let nodes: BTreeMap<u64, BasicNode> = voters
            .iter()
            .map(|voter| (voter.node, BasicNode::new(voter.address)))
            .collect();
        tracing::info!(target: kind::PEER,
            voters = nodes.len(),
            "fleet: the first start: all expected peers are there"
        );
        if let Err(error) = self.node.begin(nodes).await {
            tracing::warn!(%error, "fleet: it cannot begin yet");
        }
    }

    /// This proxy, as one that could vote.
    pub(super) fn as_voter(&self) -> Present {
        Present {
            name: self.announced.name.clone(),
            node: self.node.id(),
            address: self.announced.address,
            witness: self.config.role == Role::Witness,
        }
    }
}
