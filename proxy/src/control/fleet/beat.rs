//! Heartbeats: this proxy lives. What the leader says to them is its lease, and the newest view. Without a
//! stay it asks to join.

use std::{
    collections::BTreeSet,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::time::{sleep, timeout};

use super::{
    Fleet, guard,
    lease_end::LeaseEnd,
    message::{Message, Reply},
    micros, now,
    raft::Consensus,
};
use crate::{
    config::schema::Role,
    event_log::kind,
    fleet::{Candidate, Cause, Grant, Heartbeat, Stay},
};

/// A complaint that was not told again for this long is over.
const LATE: Duration = Duration::from_millis(400);
/// Interval between two attempts to join.
const JOIN: Duration = Duration::from_millis(150);
/// Time for the workers to install the view without this proxy.
const LEFT: Duration = Duration::from_secs(1);
/// Time for all others to renew their leases once more, when the leader says goodbye.
const RENEWED: Duration = Duration::from_millis(300);
/// Interval between two looks whether they have.
const LOOK: Duration = Duration::from_millis(2);
/// Time for the answer to a goodbye.
const ANSWER: Duration = Duration::from_millis(500);
/// Time for a goodbye, with all attempts.
const GOODBYE: Duration = Duration::from_secs(2);

impl Fleet {
    fn interval(&self) -> Duration {
        self.config.lease / 5
    }

    /// Tells the leader that this proxy lives, for ever.
    pub(super) async fn beat(self: Arc<Self>) {
        loop {
            let pause = match (self.me(), self.config.role) {
                (Some(me), Role::Peer) if !guard(&self.mine).leaves => {
                    let fleet = Arc::clone(&self);
                    // The next heartbeat does not wait for the answer to this one.
                    tokio::spawn(async move { fleet.beat_once(me.stay).await });
                    self.interval()
                }
                (None, Role::Peer) if self.who.facts().fleet.is_some() && !guard(&self.mine).leaves => {
                    self.ask_to_join().await;
                    JOIN
                }
                _ => {
                    self.follow_leader().await;
                    self.interval()
                }
            };
            self.tell_of_lease();
            let _ = timeout(pause, self.beat_now.notified()).await;
        }
    }

    /// One line when the lease is lost, and one when it is had again.
    fn tell_of_lease(&self) {
        let has = self.lease.is_valid(now());
        let had = std::mem::replace(&mut guard(&self.mine).had_lease, has);
        match (had, has) {
            (true, false) => {
                tracing::warn!(target: kind::LEASE, "fleet: the lease has ended: reads miss, and writes are refused")
            }
            (false, true) => tracing::info!(target: kind::LEASE, "fleet: this proxy has a lease"),
            _ => {}
        }
    }

    fn heartbeat(&self, stay: Stay) -> Heartbeat {
        let roster = self.roster.borrow();
        let mut strangers = self.reaches();
        strangers.retain(|name| roster.view.named(name).is_none());
        let mut mine = guard(&self.mine);
        // A peer that has joined again meanwhile is complained of anew, or not at all.
        let is_there = |name: &str, stay: Stay| roster.view.named(name).is_some_and(|peer| peer.stay == stay);
        mine.late
            .retain(|name, (stay, at)| is_there(name, *stay) && at.elapsed() < LATE);
        Heartbeat {
            name: self.announced.name.clone(),
            stay,
            sent: now(),
            installed: mine.installed,
            settled: mine.settled,
            late: mine.late.keys().cloned().collect(),
            reaches: strangers,
            can_decide: mine.can_decide,
            knows: roster.view.number,
        }
    }

    fn reaches(&self) -> BTreeSet<String> {
        // A peer whose clock is far off would be left out as soon as it had joined.
        self.book
            .pick(|_, entry, who| (entry.is_fresh() && entry.clock.is_none()).then(|| who.name.clone()))
    }

    async fn beat_once(self: Arc<Self>, stay: Stay) {
        let beat = self.heartbeat(stay);
        let reply = match self.node.leads() {
            Some(_) => self.take_heartbeat(beat).await,
            None => match self.leader_address() {
                Some(leader) => match self
                    .links
                    .ask(leader, Message::Heartbeat(beat), self.config.lease)
                    .await
                {
                    Ok(reply) => reply,
                    Err(_) => return,
                },
                None => return,
            },
        };
        if let Reply::Grant(grant) = reply {
            self.hear_grant(stay, &grant);
        }
    }

    fn hear_grant(&self, stay: Stay, grant: &Grant) {
        if let Some(roster) = &grant.roster {
            self.hear_roster(roster);
        }
        guard(&self.candidates).clone_from(&grant.candidates);
        self.lease.settle(grant.settled);
        let void = guard(&self.mine).void;
        let is_void = void.is_some_and(|(of, term)| of == stay && grant.term <= term);
        if grant.granted && !is_void && self.me().is_some_and(|me| me.stay == stay) {
            self.lease.renew(grant.sent + micros(self.config.lease));
        }
    }

    /// A proxy without a stay hears of views in this way.
    async fn follow_leader(&self) {
        let beat = self.heartbeat(Stay::default());
        if self.node.leads().is_some() {
            return;
        }
        if let Some(leader) = self.leader_address()
            && let Ok(Reply::Grant(grant)) = self
                .links
                .ask(leader, Message::Heartbeat(beat), self.config.lease)
                .await
        {
            if let Some(roster) = &grant.roster {
                self.hear_roster(roster);
            }
            guard(&self.candidates).clone_from(&grant.candidates);
        }
    }

    /// Where the leader is, as far as this proxy or anybody that it reaches knows.
    pub(super) fn leader_address(&self) -> Option<SocketAddr> {
        let (known, _) = self.node.leader();
        let ours = self.who.facts().fleet;
        let said = || {
            // The latest term counts, and in it a leader that names itself.
            let all: Vec<(u64, bool, u64)> = self.book.pick(|_, entry, who| {
                let leader = who.leader.filter(|_| entry.is_fresh() && who.fleet == ours)?;
                Some((who.term, leader == who.identity as u64, leader))
            });
            all.into_iter().max().map(|(.., leader)| leader)
        };
        let known = known.filter(|node| *node != self.node.id());
        // A former voter hears no leader, and its log names the last one that it heard as a voter.
        let heard = known.filter(|_| self.node.hears_leader());
        let node = heard.or_else(said).or(known)?;
        self.address_of(node)
    }

    async fn ask_to_join(&self) {
        let candidate = Candidate {
            peer: self.announced.clone(),
            reaches: self.reaches(),
        };
        if self.node.leads().is_some() {
            self.take_candidate(candidate);
            return;
        }
        let wait = |why: String| guard(&self.mine).waits_for = why;
        let Some(leader) = self.leader_address() else {
            return wait("nobody in reach knows the leader of the voters".to_owned());
        };
        match self.links.ask(leader, Message::Join(candidate), JOIN * 4).await {
            Ok(Reply::Done) => {
                wait("the leader waits until all peers and this one reach each other".to_owned())
            }
            Ok(Reply::Refused(why)) => wait(why),
            Ok(_) => wait("the voters elect a leader".to_owned()),
            Err(error) => wait(format!("the leader at {leader} does not answer: {error}")),
        }
        self.follow_leader().await;
    }

    /// Leaves the fleet: the others do not wait for this proxy any more. Its workers have ended, or serve
    /// nobody.
    pub(in crate::control) async fn goodbye(&self) {
        self.end_lease(LeaseEnd::Goodbye);
        let end = Instant::now() + GOODBYE;
        while let Some(me) = self.me() {
            let (name, stay) = (me.name, me.stay);
            let done = match (self.node.leads(), self.leader_address()) {
                // Without a majority of the voters a proposal waits for ever.
                (Some(term), _) => {
                    let begun = now();
                    let removed = timeout(ANSWER, self.remove(&name, stay, Cause::Goodbye)).await;
                    let is_removed = removed.unwrap_or(false);
                    if is_removed {
                        self.renew_all(term, begun).await;
                    }
                    is_removed
                }
                (None, Some(leader)) => {
                    let message = Message::Goodbye { name, stay };
                    matches!(self.links.ask(leader, message, ANSWER).await, Ok(Reply::Done))
                }
                (None, None) => false,
            };
            if done {
                break;
            }
            if Instant::now() > end {
                tracing::warn!(target: kind::PEER, "fleet: nobody has heard the goodbye: the others wait until the lease ends");
                break;
            }
            sleep(Duration::from_millis(20)).await;
        }
        let _ = timeout(LEFT, self.left.notified()).await;
        self.node.end().await;
    }

    /// Waits until all others have a lease that was granted since this time by this leader, which is about to go:
    /// theirs have to last until the next one leads.
    async fn renew_all(&self, term: u64, since: u64) {
        let end = Instant::now() + RENEWED;
        let committed = self.node.committed();
        while self.node.leads() == Some(term) && Instant::now() < end {
            let view = committed.borrow().view.clone();
            if self.with_leadership(term, |leadership| leadership.has_heard_all(&view, since)) {
                return;
            }
            sleep(LOOK).await;
        }
    }
}
