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
};
use crate::{
    config::schema::Role,
    fleet::{Present, choose},
};

/// Interval between two rounds of probes.
const LOOK: Duration = Duration::from_millis(200);
/// So many peers of the view are asked in each round, and more only if the fleet has so many that one of them
/// would not be asked for 8 seconds: all ask all, and the work must not grow with the square of their number.
const EACH_ROUND: usize = 50;
const MOST_ROUNDS: usize = 40;
/// Time for the answer to a probe.
const PROBE: Duration = Duration::from_millis(600);

impl Fleet {
    /// The identity of this proxy.
    pub(super) fn introduction(&self) -> Introduction {
        let facts = self.who.facts();
        let empty: Vec<String> = self
            .book
            .pick(|_, entry, who| (entry.is_fresh() && who.fleet.is_none()).then(|| who.name.clone()));
        let names = empty.iter().map(String::as_str);
        let lowest = names
            .chain([self.announced.name.as_str()])
            .min()
            .unwrap_or_default();
        let (leader, term) = self.node.leader();
        Introduction {
            name: self.announced.name.clone(),
            identity: facts.identity,
            fleet: facts.fleet,
            lowest: lowest.to_owned(),
            leader,
            term,
            votes_for_nobody: self.node.hears_leader() || self.node.stopped().is_some(),
            witness: self.config.role == Role::Witness,
            time: unix_micros(),
            settings: self.settings.clone(),
        }
    }

    /// Asks all addresses who is there, for ever.
    pub(super) async fn look_around(self: Arc<Self>) {
        let mut told = BTreeSet::new();
        for round in 0_usize.. {
            let mut addresses: Vec<SocketAddr> = self.listed().await;
            let expected = self.expected(&addresses);
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
            self.begin(expected).await;
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

    /// Finds the fleet of those who are there, or begins one with them, if so many are there.
    async fn begin(&self, expected: usize) {
        if self.who.facts().fleet.is_some() || self.node.has_begun().await {
            return;
        }
        let mut present = self.book.present();
        present.retain(|(_, who)| who.identity != self.announced.identity);
        let fleets: BTreeSet<u128> = present.iter().filter_map(|(_, who)| who.fleet).collect();
        let wait = |why: String| guard(&self.mine).waits_for = why;
        match fleets.len() {
            0 => {}
            1 => {
                if let Some(fleet) = fleets.first()
                    && let Err(error) = self.adopt(*fleet)
                {
                    tracing::error!(%error, "fleet: its identity cannot be written down");
                }
                return;
            }
            _ => {
                return wait("the listed peers belong to several fleets: list those of one".to_owned());
            }
        }
        let me = self.introduction();
        let names: BTreeSet<&str> = present
            .iter()
            .map(|(_, who)| who.name.as_str())
            .chain([me.name.as_str()])
            .collect();
        if names.len() < expected {
            return wait(format!(
                "the first start waits for {} peers, and {} are there: {}",
                expected,
                names.len(),
                names.into_iter().collect::<Vec<_>>().join(", ")
            ));
        }
        let agree = present.iter().all(|(_, who)| who.lowest == me.lowest);
        if !agree || me.lowest != me.name {
            return wait(format!("{} begins the fleet", me.lowest));
        }
        let mut able: Vec<Present> = present
            .iter()
            .map(|(address, who)| Present {
                name: who.name.clone(),
                node: who.identity as u64,
                address: *address,
                witness: who.witness,
            })
            .collect();
        able.push(self.present());
        let voters = choose(&[], &able, &[], self.config.voters.as_deref());
        let nodes: BTreeMap<u64, BasicNode> = voters
            .iter()
            .map(|voter| (voter.node, BasicNode::new(voter.address)))
            .collect();
        tracing::info!(
            voters = nodes.len(),
            "fleet: the first start: all expected peers are there"
        );
        if let Err(error) = self.node.begin(nodes).await {
            tracing::warn!(%error, "fleet: it cannot begin yet");
        }
    }

    /// This proxy, as one that could vote.
    pub(super) fn present(&self) -> Present {
        Present {
            name: self.announced.name.clone(),
            node: self.node.id(),
            address: self.announced.address,
            witness: self.config.role == Role::Witness,
        }
    }
}
