//! The state of each server, and the choice of the one that takes writes.
#![allow(
    clippy::disallowed_methods,
    reason = "servers answer the control thread, which has no turns"
)]
#![allow(
    clippy::disallowed_types,
    reason = "the lock is taken when a server has answered a question of the pool's, and not on the way of a request"
)]

mod election;
#[cfg(test)]
mod joint;
#[cfg(test)]
mod moves;
mod node;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod workers;

use std::{
    collections::BTreeMap,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};

use self::node::Node;
use super::{
    answer::{Answer, Status},
    others::together,
    planned_move::PlannedMove,
    reason::{Reason, said},
    word::Word,
};
use crate::{
    event_log::kind,
    protocol::{
        Answerer, HeldWrites, Mark, OneWriter, OtherProxies, Role, RoleStatus, WriterHold, WriterOrders,
        WriterWish,
    },
};

/// Time for which servers may answer first, before one of them is the writer that is not the first by name.
const SETTLING: Duration = Duration::from_millis(500);
/// The longest time for which a server that says that all is well is waited for.
const LONGEST: Duration = Duration::from_secs(3);

/// The servers of a cluster.
#[derive(Default)]
pub(super) struct Nodes {
    all: Mutex<All>,
    has_reader: AtomicBool,
    has_news: AtomicBool,
    is_moving: AtomicBool,
    /// The number of the writer; 0 without a writer.
    writer: AtomicU32,
    /// The time since 1970, in µs, at which the writer has rejected a statement; 0 if it has not.
    rejected: AtomicU64,
    /// The time at which it was asked for the status by which it takes writes.
    confirmed: AtomicU64,
    /// A statement waits for that.
    has_rejected: AtomicBool,
}

#[derive(Default)]
struct All {
    /// By address.
    nodes: BTreeMap<String, Node>,
    last: u32,
    /// The number of the writer; 0 without a writer.
    writer: u32,
    /// The one that will be it when it has waited for the others once more, with how often it had before.
    next: Option<(u32, u32)>,
    /// The addresses to which every connection ends before anything is decided: of one that took writes, and
    /// of those that are silent, so that nobody waits for them.
    closing: Vec<String>,
    /// The time at which the first server answered. Nothing is waited for once there was a writer.
    begun: Option<Instant>,
    had_writer: bool,
    /// The id of the cluster that the last writer belongs to, empty if it is not known, and the time at which
    /// a server of it was well.
    cluster: String,
    cluster_seen: Option<Instant>,
    /// The order which server is to be the writer, and the one that holds its writes.
    wish: Option<WriterWish>,
    hold: Option<WriterHold>,
    moving: Option<PlannedMove>,
    /// The number of the last move.
    moves: u64,
    /// A move has begun of which nobody was told.
    has_begun: bool,
    /// The number of the order that was followed last, and the time before which it is not followed again.
    followed: Option<u64>,
    rests: Option<Instant>,
    /// The time between the last two tries.
    rest: Duration,
    /// No connection to the writer is left behind a move: none needs to be closed.
    was_emptied: bool,
    /// The number of an order that cannot be followed, and why, of which nobody was told; and that of the
    /// last one.
    given_up: Option<(u64, &'static str)>,
    refused: Option<u64>,
    /// What is known of other proxies, in a pool that is said to have one.
    others: OtherProxies,
}

impl Nodes {
    /// Does any server serve reads?
    pub(super) fn has_reader(&self) -> bool {
        self.has_reader.load(SeqCst)
    }

    /// What is known of other proxies.
    pub(super) fn others(&self) -> OtherProxies {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.others.clone()
    }

    /// Is another server about to take writes, so that none does?
    pub(super) fn is_moving(&self) -> bool {
        self.is_moving.load(SeqCst)
    }

    /// The address of the server to which the writer moves; `None`: it does not.
    pub(super) fn moving_to(&self) -> Option<String> {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.address_of(all.moving.as_ref()?.to()?)
    }

    /// What has become of the hold; `None`: none is followed.
    pub(super) fn held(&self) -> Option<HeldWrites> {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let moving = all.moving.as_ref().filter(|moving| moving.is_held())?;
        let mut nodes = all.nodes.values();
        let to = nodes.find(|node| Some(node.number) == moving.to());
        Some(HeldWrites {
            is_quiet: moving.is_empty(),
            has_all: to.is_some_and(|node| node.is_free_to_write() && moving.is_proved(node.proved)),
        })
    }

    /// The address of the server that the settings name first, of those that can take writes.
    pub(super) fn preferred(&self, settings: &OneWriter) -> Option<String> {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, address) = all.preferred(settings)?;
        Some(address.to_owned())
    }

    /// These orders are in force now.
    pub(super) fn ordered(&self, orders: WriterOrders, settings: &OneWriter) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.take_orders(orders);
        self.decide(&mut all, settings);
        all.doubt_next();
    }

    /// All servers have to say anew that they serve, and to prove it. Until then none takes writes.
    pub(super) fn begin_anew(&self, settings: &OneWriter) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        tracing::warn!(target: kind::ROLE, "the process stood still for longer than its orders: all servers are asked anew");
        let writer = all.address_of(all.writer);
        all.close(writer);
        for node in all.nodes.values_mut() {
            (node.why_not, node.proofs) = (vec![Reason::Unknown], 0);
            node.noted.doubt();
        }
        self.has_news.store(true, SeqCst);
        let all = &mut *all;
        all.nodes
            .keys()
            .for_each(|address| all.note_word(address, settings));
        self.decide(all, settings);
    }

    /// The address of the writer that is to be emptied, with the number of the move; once for each.
    pub(super) fn emptying(&self) -> Option<(String, u64)> {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let address = all.address_of(all.writer)?;
        let order = all.moving.as_mut()?.begin_emptying()?;
        Some((address, order))
    }

    /// Does the move with this number wait for that?
    pub(super) fn is_emptying(&self, number: u64) -> bool {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.moving
            .as_ref()
            .is_some_and(|moving| moving.is_emptying(number))
    }

    /// It is empty, for this move.
    pub(super) fn emptied(&self, number: u64, settings: &OneWriter) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if let Some(moving) = &mut all.moving {
            moving.emptied(number, now);
        }
        all.doubt_next();
        self.decide(&mut all, settings);
    }

    /// The number of an order that cannot be followed, and why; once.
    pub(super) fn take_given_up(&self) -> Option<(u64, &'static str)> {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.given_up.take()
    }

    /// The number of the writer; 0 without a writer.
    pub(super) fn writer(&self) -> u32 {
        self.writer.load(SeqCst)
    }

    /// The writer has rejected a statement at this time, as one does that serves no longer.
    pub(super) fn rejects(&self, unix: u64) {
        self.rejected.fetch_max(unix, SeqCst);
    }

    /// Must a statement that has begun anew at this time wait, as it is not known yet whether the writer that
    /// has rejected one still takes writes? Clients can have a server say so: others do not wait for them.
    pub(super) fn is_doubtful(&self, since: u64) -> bool {
        let rejected = self.rejected.load(SeqCst).min(since);
        if rejected <= self.confirmed.load(SeqCst) {
            return false;
        }
        self.has_rejected.store(true, SeqCst);
        // Its status may have come meanwhile, before it was known that somebody waits for that.
        rejected > self.confirmed.load(SeqCst)
    }

    /// Forgets all servers but those at these addresses, which are the pool's. What is known of others tells
    /// nothing any more, as nobody asks them. What a former writer still does ends first.
    pub(super) fn retain(&self, is_its: &dyn Fn(&str) -> bool, settings: &OneWriter) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        if all.nodes.keys().all(|address| is_its(address)) {
            return;
        }
        let writer = all.address_of(all.writer);
        all.close(writer.filter(|address| !is_its(address)));
        all.nodes.retain(|address, _| is_its(address));
        self.has_news.store(true, SeqCst);
        self.decide(&mut all, settings);
    }

    /// Notes which server takes writes, and whether any serves reads.
    fn decide(&self, all: &mut All, settings: &OneWriter) {
        let now = Instant::now();
        if all.note_cluster(settings, now) {
            self.has_news.store(true, SeqCst);
            all.nodes
                .keys()
                .for_each(|address| all.note_word(address, settings));
        }
        let writer = match all.is_settled(now) {
            true => all.elect(settings, now),
            false => 0,
        };
        if writer != all.writer {
            let former = all.address_of(all.writer);
            let address = all.address_of(writer);
            tracing::info!(target: kind::ROLE,
                server = address.as_deref().unwrap_or("none"),
                "the writer has changed"
            );
            let numbers = [std::mem::replace(&mut all.writer, writer), writer];
            // Before anything goes to the new one: nobody takes the former one for it any more.
            for address in numbers.into_iter().filter_map(|number| all.address_of(number)) {
                all.note_word(&address, settings);
            }
            self.rejected.store(0, SeqCst);
            if !std::mem::take(&mut all.was_emptied) {
                all.close(former);
            }
            self.has_news.store(true, SeqCst);
        }
        let is_moving = all.moving.is_some();
        let has_begun = std::mem::take(&mut all.has_begun);
        all.had_writer |= writer != 0;
        all.nodes
            .values_mut()
            .for_each(|node| node.take_role(writer, !is_moving, now));
        // Whoever sees no writer in between sees that it moves.
        let was_moving = self.is_moving.load(SeqCst);
        self.is_moving.store(is_moving || was_moving, SeqCst);
        self.writer.store(if is_moving { 0 } else { writer }, SeqCst);
        self.is_moving.store(is_moving, SeqCst);
        if was_moving != is_moving || has_begun || !all.closing.is_empty() {
            self.has_news.store(true, SeqCst);
        }
        if let Some(moving) = all.moving.as_ref().filter(|_| has_begun) {
            match moving.to().and_then(|to| all.address_of(to)) {
                Some(server) => {
                    tracing::info!(target: kind::ROLE, server, "the writer moves there: writes wait")
                }
                None => tracing::info!(target: kind::ROLE, "writes wait, as an order holds them"),
            }
        }
        self.has_reader
            .store(all.nodes.values().any(Node::serves), SeqCst);
    }

    /// The first address to which all connections are to end.
    pub(super) fn closing(&self) -> Option<String> {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.closing.first().cloned()
    }

    /// They have ended.
    pub(super) fn closed(&self, address: &str, settings: &OneWriter) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.closing.retain(|one| one != address);
        if all.address_of(all.writer).as_deref() == Some(address)
            && let Some(moving) = &mut all.moving
        {
            moving.closed(Instant::now());
        }
        all.doubt_next();
        self.decide(&mut all, settings);
    }

    /// Has anything changed since this was asked last?
    pub(super) fn take_news(&self) -> bool {
        self.has_news.swap(false, SeqCst)
    }

    /// The role of the server at this address, with the reasons if it serves nothing.
    pub(super) fn role(&self, address: &str) -> RoleStatus {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let node = all.nodes.get(address);
        let (role, since) = node.and_then(|node| node.role).unzip();
        let reasons = node.map_or_else(|| vec![Reason::Unknown], Node::reasons);
        let shown = |reason: &Reason| (reason.word(), reason.to_string());
        RoleStatus {
            role: role.unwrap_or(Role::Out),
            since,
            proved: node.and_then(|node| node.proved.filter(|_| node.proofs > 0)),
            version: node.map_or_else(String::new, |node| node.status.version.clone()),
            progress: node.and_then(Node::progress),
            why_out: reasons.iter().map(shown).collect(),
        }
    }

    /// This server is about to be asked for its status, at this time since 1970, in µs.
    pub(super) fn asks_status(&self, of: &Answerer<'_>, unix: u64) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.node(of.address).status_asked = unix;
    }

    /// This server is about to be asked for a barrier, at this time since 1970, in µs.
    pub(super) fn asks(&self, of: &Answerer<'_>, mark: Mark, unix: u64) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let node = all.node(of.address);
        (node.asked, node.proof_asked) = (Some((mark, unix)), Some(Instant::now()));
    }

    /// This server drains, as a request has found: if it takes writes, they move away.
    pub(super) fn drains(&self, of: &Answerer<'_>, settings: &OneWriter) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.node(of.address).drains = true;
        self.decide(&mut all, settings);
    }

    /// This server is about to be asked for other proxies.
    pub(super) fn asks_others(&self, of: &Answerer<'_>) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.node(of.address).others_asked = Some(Instant::now());
    }

    /// What is known of other proxies now: what servers have told holds for some time only.
    pub(super) fn look_for_others(&self, settings: &OneWriter) -> OtherProxies {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        self.note_others(&mut all, settings);
        all.others.clone()
    }

    /// Notes what servers tell of other proxies: if that has changed, in the notes of all of them at once.
    fn note_others(&self, all: &mut All, settings: &OneWriter) {
        if all.take_others(Instant::now()) {
            self.has_news.store(true, SeqCst);
            all.nodes
                .keys()
                .for_each(|address| all.note_word(address, settings));
        }
    }

    /// Notes what this server has answered.
    pub(super) fn heard(
        &self,
        of: &Answerer<'_>,
        answer: Answer,
        orders: WriterOrders,
        settings: &OneWriter,
    ) {
        let mut guard = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let all = &mut *guard;
        all.take_orders(orders);
        let writer = all.writer;
        if Word(of.noted.get()).number() == 0 {
            // Requests may wait until it is known which member has the address, as one that has another name.
            self.has_news.store(true, SeqCst);
        }
        let node = all.node(of.address);
        (node.noted, node.is_up, node.drains) = (of.noted.clone(), of.is_up, of.drains);
        let proved = node.asked.filter(|_| answer == Answer::Proof(true));
        if answer == Answer::Proof(true) {
            node.proved = node.proof_asked;
        }
        let is_elsewhere = |status: &Status| status.cluster != node.status.cluster;
        let has_nothing = match &answer {
            Answer::Status(status) => is_elsewhere(status),
            Answer::Failed(_) => true,
            _ => false,
        };
        if has_nothing {
            // It may have lost what it had.
            of.reached.begin_anew();
        }
        let served = node.serves();
        let is_silent = matches!(answer, Answer::Failed(_));
        let confirmed = matches!(answer, Answer::Status(_)).then_some(node.status_asked);
        let number = node.number;
        let is_writer = node.number == writer;
        node.note(answer, is_writer, settings);
        let serves = node.serves();
        if serves != served {
            self.has_news.store(true, SeqCst);
            match serves {
                true => tracing::info!(target: kind::ROLE, server = of.address, "it serves"),
                false => tracing::warn!(target: kind::ROLE,
                    server = of.address,
                    why = said(&node.reasons()),
                    "it serves no longer"
                ),
            }
        }
        if served && is_silent {
            all.close(Some(of.address.to_owned()));
        }
        self.decide(all, settings);
        if let Some(asked) = confirmed.filter(|_| number == all.writer) {
            self.confirmed.store(asked, SeqCst);
            if self.has_rejected.swap(false, SeqCst) {
                self.has_news.store(true, SeqCst);
            }
        }
        if settings.is_only_proxy {
            self.note_others(all, settings);
        }
        all.note_word(of.address, settings);
        // Behind what is known of other proxies: nobody reads by the clock of a process that was frozen.
        if let Some((mark, unix)) = proved {
            of.reached.raise_since(mark, unix);
            of.reached.end_wait();
        }
    }
}

impl All {
    /// Is it known which servers there are to choose from? Otherwise the one that happens to answer first
    /// would take writes at one proxy, and another one at the next.
    fn is_settled(&mut self, now: Instant) -> bool {
        let elapsed = now - *self.begun.get_or_insert(now);
        let is_pending = |node: &Node| node.why_not.is_empty() && !node.serves();
        let is_pending = elapsed < LONGEST && self.nodes.values().any(is_pending);
        self.had_writer || elapsed >= SETTLING && !is_pending
    }

    fn take_orders(&mut self, WriterOrders { wish, hold }: WriterOrders) {
        // One that was given up is taken back in this moment.
        self.wish = wish.filter(|wish| self.refused != Some(wish.number));
        self.hold = hold;
    }

    /// The server at this address, of which nothing may be known yet.
    fn node(&mut self, address: &str) -> &mut Node {
        let next = self.last + 1;
        let node = self.nodes.entry(address.to_owned()).or_insert_with(|| Node {
            number: next,
            why_not: vec![Reason::Unknown],
            ..Node::default()
        });
        self.last = self.last.max(node.number);
        node
    }

    /// Notes which servers belong to another cluster than the writer: they have none of its writes, whatever
    /// they say, and their barriers prove nothing. Another cluster may have the place of the last writer's
    /// when no server of that was well for as long as writes wait. Returns whether that has changed for any.
    fn note_cluster(&mut self, settings: &OneWriter, now: Instant) -> bool {
        let mut nodes = self.nodes.values();
        if let Some(writer) = nodes.find(|node| node.number == self.writer && node.serves()) {
            self.cluster.clone_from(&writer.status.cluster);
        }
        let is_of = |node: &Node| node.why_not.is_empty() && node.status.cluster == self.cluster;
        if self.nodes.values().any(is_of) {
            self.cluster_seen = Some(now);
        } else if self.cluster_seen.is_none_or(|seen| now - seen >= settings.wait) {
            self.cluster.clear();
        }
        let mut has_changed = false;
        for node in self.nodes.values_mut() {
            let is_known = !self.cluster.is_empty() && !node.status.cluster.is_empty();
            let is_foreign = is_known && node.status.cluster != self.cluster;
            has_changed |= std::mem::replace(&mut node.is_foreign, is_foreign) != is_foreign;
        }
        has_changed
    }

    /// Notes what the servers that serve tell of other proxies. Returns whether that is new.
    fn take_others(&mut self, now: Instant) -> bool {
        let serving = self.nodes.values().filter(|node| node.serves());
        let others = together(serving.map(|node| node.others(now)));
        if others == self.others {
            return false;
        }
        match others.may_be() {
            false => tracing::info!(target: kind::ROLE, "no other proxy uses the servers: `causal` is kept"),
            true => tracing::warn!(target: kind::ROLE, why = %others, "`causal` reads are `strict` for now"),
        }
        self.others = others;
        true
    }

    /// Notes for all workers what is known of the server at this address.
    fn note_word(&self, address: &str, settings: &OneWriter) {
        if let Some(node) = self.nodes.get(address) {
            let word = Word::new(node.number)
                .serving(node.serves())
                .writing(node.number == self.writer)
                .with_others(settings.is_only_proxy && self.others.may_be())
                .solving_conflicts(settings.conflict_retries > 0);
            node.noted.set(word.0);
        }
    }

    /// The server to which the writer moves is asked for its barrier now, and not when it is due.
    fn doubt_next(&self) {
        let to = self.moving.as_ref().and_then(PlannedMove::to);
        if let Some(node) = self.nodes.values().find(|node| Some(node.number) == to) {
            node.noted.doubt();
        }
    }

    fn address_of(&self, number: u32) -> Option<String> {
        let found = self.nodes.iter().find(|(_, node)| node.number == number);
        found.map(|(address, _)| address.clone())
    }

    /// Has all connections to this address end.
    fn close(&mut self, address: Option<String>) {
        let is_new = |address: &String| !self.closing.contains(address);
        let address = address.filter(is_new);
        self.closing.extend(address);
    }
}
