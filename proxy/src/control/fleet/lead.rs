//! The work of the leader: leases, removals, joins, and who votes.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
    time::{Duration, Instant},
};

use openraft::BasicNode;
use tokio::{
    sync::{mpsc, oneshot},
    time::{sleep, timeout},
};

use super::{
    Fleet, guard,
    lease_end::LeaseEnd,
    link::packet,
    message::{Message, Reply},
    micros, now,
    raft::Consensus,
};
use crate::{
    event_log::kind,
    fleet::{
        Act, Candidate, Cause, Change, Grant, Heartbeat, Leadership, Present, Roster, Stay, Voter, choose,
    },
};

/// Interval between two looks at what is to be done.
const LOOK: Duration = Duration::from_millis(20);
/// Interval between two looks at who votes.
const VOTERS: Duration = Duration::from_secs(1);
/// A voter that is away for this long is replaced.
const LOST: Duration = Duration::from_secs(30);
/// Time for a peer to stop answering.
const STOP: Duration = Duration::from_millis(200);
/// Interval between two proofs of leadership: the heartbeats of many peers share one.
const PROOF: Duration = Duration::from_millis(4);

impl Fleet {
    /// Proves leadership for all heartbeats that wait, in one round.
    pub(super) async fn prove(self: Arc<Self>, mut unproved: mpsc::UnboundedReceiver<oneshot::Sender<bool>>) {
        let mut last = Instant::now();
        while let Some(first) = unproved.recv().await {
            sleep(PROOF.saturating_sub(last.elapsed())).await;
            last = Instant::now();
            let mut waiting = vec![first];
            while let Ok(next) = unproved.try_recv() {
                waiting.push(next);
            }
            let proved = self.node.confirm().await.is_ok();
            for one in waiting {
                let _ = one.send(proved);
            }
        }
    }

    /// A heartbeat has come.
    pub(super) async fn take_heartbeat(&self, beat: Heartbeat) -> Reply {
        let Some(term) = self.node.leads() else {
            return Reply::NotLeader(self.leader_address());
        };
        let roster = self.node.committed();
        let granted = self.with_leadership(term, |leadership| {
            leadership.heartbeat(now(), &roster.borrow().view, &beat)
        });
        // The round of messages begins after the heartbeat has come.
        let (tell, proof) = oneshot::channel();
        let asked = self.unproved.send(tell).is_ok();
        if !asked || !proof.await.unwrap_or(false) {
            return Reply::NotLeader(None);
        }
        if self.node.leads() != Some(term) {
            return Reply::NotLeader(None);
        }
        // Whatever was agreed on before the proof is applied now: a peer that it removed gets no lease. The
        // roster is long where there are many peers, and is copied only for a peer that does not know it.
        let committed = roster.borrow();
        let of_sender = committed.view.named(&beat.name);
        let is_peer = of_sender.is_some_and(|peer| peer.stay == beat.stay);
        let (settled, candidates) = self.with_leadership(term, |leadership| {
            (leadership.settled(&committed.view), leadership.candidates())
        });
        let is_behind = beat.knows < committed.view.number || beat.knows == 0;
        Reply::Grant(Box::new(Grant {
            sent: beat.sent,
            granted: granted && is_peer,
            term,
            settled,
            roster: is_behind.then(|| committed.clone()),
            candidates,
        }))
    }

    /// A proxy wants to join.
    pub(super) fn take_candidate(&self, candidate: Candidate) -> Reply {
        let Some(term) = self.node.leads() else {
            return Reply::NotLeader(self.leader_address());
        };
        let committed = self.node.committed();
        let named = committed.borrow().view.named(&candidate.peer.name).cloned();
        if let Some(peer) = named
            && peer.identity != candidate.peer.identity
            && self.book.named(&peer.name).is_some_and(|(_, entry)| {
                entry.who.is_some_and(|who| who.identity == peer.identity) && entry.failure.is_none()
            })
        {
            return Reply::Refused(format!(
                "another peer has the name {}: give this one a name of its own",
                peer.name
            ));
        }
        self.with_leadership(term, |leadership| leadership.candidate(now(), candidate));
        let candidates = self.with_leadership(term, |leadership| leadership.candidates());
        *guard(&self.candidates) = candidates;
        Reply::Done
    }

    /// A peer leaves, or is removed by an operator.
    pub(super) async fn remove(&self, name: &str, stay: Stay, why: Cause) -> bool {
        if let Some(term) = self.node.leads() {
            self.with_leadership(term, |leadership| leadership.forget_candidate(name));
        }
        let change = Change::Remove {
            peers: vec![(name.to_owned(), stay)],
            why,
        };
        self.propose(change).await
    }

    async fn propose(&self, change: Change) -> bool {
        let begun = Instant::now();
        match self.node.propose(change).await {
            Ok(_) => {
                let mut commits = guard(&self.commits);
                commits.0 += 1;
                commits.1 += micros(begun.elapsed());
                true
            }
            Err(_) => false,
        }
    }

    pub(super) fn with_leadership<T>(&self, term: u64, work: impl FnOnce(&mut Leadership) -> T) -> T {
        let mut leadership = guard(&self.leadership);
        match &mut *leadership {
            Some((known, leadership)) if *known == term => work(leadership),
            other => {
                // Elected a moment ago: it is not later than now.
                let (_, leadership) = other.insert((term, Leadership::new(now(), micros(self.config.lease))));
                work(leadership)
            }
        }
    }

    /// Leads while this node is elected, for ever.
    pub(super) async fn lead(self: Arc<Self>) {
        let mut looked_at_voters = Instant::now();
        let mut away: HashMap<u64, Instant> = HashMap::new();
        let (mut told, mut applied, mut follows) = (None, None, None);
        loop {
            sleep(LOOK).await;
            let looks_at_voters = looked_at_voters.elapsed() > VOTERS;
            if looks_at_voters {
                looked_at_voters = Instant::now();
                // Whoever leads next knows as well for how long they are away.
                self.note_away(&mut away);
            }
            let (leader, _) = self.node.leader();
            if leader.is_some() && std::mem::replace(&mut follows, leader) != leader {
                self.beat_now.notify_one();
            }
            if let Some(why) = self.node.stopped()
                && told.is_none()
                && !guard(&self.mine).leaves
            {
                told = Some(());
                tracing::error!(target: kind::DISK,
                    why,
                    "fleet: this node votes no more; mend its directory and start it again"
                );
            }
            let Some(term) = self.node.leads() else {
                *guard(&self.leadership) = None;
                continue;
            };
            // A node that has just started is elected before it has applied its log. What it knows of the
            // roster until then is old.
            if applied != Some(term) {
                let proved = timeout(self.config.lease, self.node.confirm()).await;
                applied = matches!(proved, Ok(Ok(()))).then_some(term);
                continue;
            }
            let committed = self.node.committed();
            if committed.borrow().fleet == 0 {
                let draw = || {
                    let mut random = guard(&self.drawn);
                    u128::from(random.bits()) << 64 | u128::from(random.bits())
                };
                // Among the pods of a Service it is known before.
                let fleet = self.who.facts().fleet.unwrap_or_else(draw);
                self.propose(Change::Begin { fleet: fleet.max(1) }).await;
                continue;
            }
            let voters = self.voter_names();
            let acts = self.with_leadership(term, |leadership| {
                leadership.decide(now(), &committed.borrow().view, &voters)
            });
            for act in acts {
                match act {
                    Act::Stop { name, stay } => self.stop(term, name, stay),
                    Act::Propose(change) => {
                        // Without a majority it is never agreed on, and what is known of the peers grows old.
                        tokio::select! {
                            _ = self.propose(change) => {}
                            () = self.deposed(term) => break,
                        }
                    }
                }
            }
            if looks_at_voters {
                self.choose_voters(&away).await;
            }
        }
    }

    /// Waits until this node does not lead in this term any more.
    async fn deposed(&self, term: u64) {
        while self.node.leads() == Some(term) {
            sleep(LOOK).await;
        }
    }

    /// Takes a peer's lease away.
    fn stop(self: &Arc<Self>, term: u64, name: String, stay: Stay) {
        let others = self.others();
        tracing::warn!(target: kind::PEER,
            peer = name,
            "fleet: it is to be left out, as changes are not answered in time"
        );
        let fleet = Arc::clone(self);
        tokio::spawn(async move {
            let stopped = match others.get(&name) {
                Some(&address) => {
                    let asked = fleet.links.ask(address, Message::Stop { stay, term }, STOP).await;
                    matches!(asked, Ok(Reply::Done))
                }
                None => {
                    fleet.end_lease(LeaseEnd::TakenAway { stay, term });
                    true
                }
            };
            if stopped {
                fleet.with_leadership(term, |leadership| leadership.stopped(&name, stay));
            }
        });
    }

    /// Tells all peers what leads from one roster to the next. A peer that has another one than that before
    /// asks for the whole.
    pub(super) fn spread_difference(self: &Arc<Self>, before: &Roster, roster: &Roster) {
        let here = self.announced.address;
        let message = Message::Difference(Box::new(roster.difference(before)));
        let Ok(text) = packet::text(&message) else {
            return;
        };
        let version = message.version();
        for peer in roster.view.peers.iter().filter(|peer| peer.address != here) {
            let (fleet, text, address) = (Arc::clone(self), Arc::clone(&text), peer.address);
            tokio::spawn(async move {
                // A peer that does not hear it now, as builds before the message do not, has it with its next
                // heartbeat.
                let _ = fleet
                    .links
                    .ask_in_text(address, (text, version), fleet.config.lease)
                    .await;
            });
        }
    }

    fn voter_names(&self) -> BTreeSet<String> {
        let voters = self.node.voters();
        let mut names: BTreeSet<String> = self.book.pick(|_, entry, who| {
            let votes = entry.is_fresh() && voters.contains_key(&(who.identity as u64));
            votes.then(|| who.name.clone())
        });
        if voters.contains_key(&self.node.id()) {
            names.insert(self.announced.name.clone());
        }
        names
    }

    fn own_voters(&self) -> Vec<Voter> {
        let voter = |(node, at): (&u64, &BasicNode)| {
            Some(Voter {
                node: *node,
                address: at.addr.parse().ok()?,
            })
        };
        self.node.voters().iter().filter_map(voter).collect()
    }

    /// The peers of this fleet that answer, as ones that could vote.
    fn present_voters(&self) -> Vec<Present> {
        let ours = self.who.facts().fleet;
        let mut present: Vec<Present> = self.book.pick(|address, entry, who| {
            (entry.is_fresh() && who.fleet == ours).then(|| Present {
                name: who.name.clone(),
                node: who.identity as u64,
                address,
                witness: who.witness,
            })
        });
        present.push(self.as_voter());
        present
    }

    /// Notes since when each voter is away.
    fn note_away(&self, away: &mut HashMap<u64, Instant>) {
        let (voters, present) = (self.own_voters(), self.present_voters());
        away.retain(|node, _| voters.iter().any(|voter| voter.node == *node));
        for voter in &voters {
            match present.iter().any(|one| one.node == voter.node) {
                true => drop(away.remove(&voter.node)),
                false => {
                    away.entry(voter.node).or_insert_with(Instant::now);
                }
            }
        }
    }

    /// Replaces voters that are lost, and follows those that are elsewhere now. A voter is lost that is away for
    /// long, or has another node in its place: its directory is gone.
    async fn choose_voters(&self, away: &HashMap<u64, Instant>) {
        let (now, present) = (self.own_voters(), self.present_voters());
        let is_lost = |voter: &&Voter| {
            let since = away.get(&voter.node);
            let has_follower = || present.iter().any(|one| one.address == voter.address);
            since.is_some_and(|since| since.elapsed() > LOST || has_follower())
        };
        let lost: Vec<u64> = now.iter().filter(is_lost).map(|voter| voter.node).collect();
        let chosen = choose(&now, &present, &lost, self.config.voters.as_deref());
        if chosen.is_empty() || chosen == now {
            return;
        }
        let nodes: BTreeMap<u64, BasicNode> = chosen
            .iter()
            .map(|voter| (voter.node, BasicNode::new(voter.address)))
            .collect();
        tracing::info!(target: kind::PEER, voters = ?chosen, "fleet: other voters, or the same elsewhere");
        if let Err(error) = self.node.set_voters(nodes).await {
            tracing::warn!(%error, "fleet: the voters cannot be changed yet");
        }
    }
}
