//! The state of each server, and the choice of the one that takes writes.
#![allow(
    clippy::disallowed_methods,
    reason = "servers answer the control thread, which has no turns"
)]
#![allow(
    clippy::disallowed_types,
    reason = "the lock is taken when a server has answered a question of the pool's, and not on the way of a request"
)]

use std::{
    cmp::Ordering,
    collections::BTreeMap,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU32, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};

use super::{
    answer::{Answer, Status},
    others::together,
    reason::{Reason, said},
};
use crate::protocol::{Answerer, Mark, MemberNote, OneWriter, OtherProxies, Role, RoleStatus};

/// Time for which servers may answer first, before one of them is the writer that is not the first by name.
const SETTLING: Duration = Duration::from_millis(500);
/// The time for which an answer about other proxies holds. The server keeps the lock by which another proxy
/// finds this one for [twice as long](super::others::ASK): a process that was frozen asks before it trusts.
const ALONE: Duration = Duration::from_secs(5);
/// The longest time for which a server that says that all is well is waited for.
const LONGEST: Duration = Duration::from_secs(3);

/// The servers of a cluster.
#[derive(Default)]
pub(super) struct Nodes {
    all: Mutex<All>,
    has_reader: AtomicBool,
    has_news: AtomicBool,
    /// The number of the writer; 0 without a writer.
    writer: AtomicU32,
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
    /// The address of the writer that was known with other settings. It stays the writer, or all connections
    /// to it end before another server is.
    former: Option<String>,
    /// The time at which the first server answered. Nothing is waited for once there was a writer.
    begun: Option<Instant>,
    had_writer: bool,
    /// What is known of other proxies, in a pool that is said to have one.
    others: OtherProxies,
}

/// The state of a server.
#[derive(Default)]
struct Node {
    number: u32,
    status: Status,
    /// The reasons why nobody is sent there; if empty, it serves when it has proved that it can.
    why_not: Vec<Reason>,
    /// The number of times that it has waited for the others since it says that all is well. The first wait
    /// may have begun before.
    proofs: u32,
    /// The barrier that it is asked for: what it has when it has answered, and the time since 1970, in µs.
    asked: Option<(Mark, u64)>,
    /// The role that it has, and the time since which it has it.
    role: Option<(Role, Instant)>,
    /// What it tells of other proxies, and the time at which it was asked for that and answered.
    others: OtherProxies,
    others_asked: Option<Instant>,
    others_told: Option<Instant>,
    /// The note about it that all workers read.
    noted: MemberNote,
}

/// The pool state's note about a server: its number, and whether it serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::protocols::mysql) struct Word(pub(in crate::protocols::mysql) u32);

impl Word {
    const SERVES: u32 = 1;
    const WRITES: u32 = 2;
    const HAS_OTHERS: u32 = 4;

    pub(in crate::protocols::mysql) fn new(
        number: u32,
        serves: bool,
        writes: bool,
        has_others: bool,
    ) -> Self {
        let flag = |is: bool, flag: u32| if is { flag } else { 0 };
        Self(
            (number << 3)
                | flag(serves, Self::SERVES)
                | flag(writes, Self::WRITES)
                | flag(has_others, Self::HAS_OTHERS),
        )
    }

    /// The number of the server; 0 while nothing is known of the server.
    pub(in crate::protocols::mysql) const fn number(self) -> u32 {
        self.0 >> 3
    }

    /// May it be asked?
    pub(in crate::protocols::mysql) const fn serves(self) -> bool {
        self.0 & Self::SERVES != 0
    }

    /// Is it the writer?
    pub(in crate::protocols::mysql) const fn writes(self) -> bool {
        self.0 & Self::WRITES != 0
    }

    /// May another proxy write, in a pool that is said to have one?
    pub(in crate::protocols::mysql) const fn has_others(self) -> bool {
        self.0 & Self::HAS_OTHERS != 0
    }
}

impl Nodes {
    /// Those of a cluster in which the server at this address took writes.
    pub(super) fn behind(former: Option<String>) -> Self {
        let all = All {
            former,
            ..All::default()
        };
        Self {
            all: Mutex::new(all),
            ..Self::default()
        }
    }

    /// The address of the writer.
    pub(super) fn writer_address(&self) -> Option<String> {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.address_of(all.writer).or_else(|| all.former.clone())
    }

    /// Does any server serve reads?
    pub(super) fn has_reader(&self) -> bool {
        self.has_reader.load(SeqCst)
    }

    /// What is known of other proxies.
    pub(super) fn others(&self) -> OtherProxies {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.others.clone()
    }

    /// The number of the writer; 0 without a writer.
    pub(super) fn writer(&self) -> u32 {
        self.writer.load(SeqCst)
    }

    /// The server with this number has left the cluster.
    pub(super) fn forget(&self, number: u32, settings: &OneWriter) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.nodes.retain(|_, node| node.number != number);
        self.decide(&mut all, settings);
    }

    /// Notes which server takes writes, and whether any serves reads.
    fn decide(&self, all: &mut All, settings: &OneWriter) {
        let now = Instant::now();
        let writer = match all.is_settled(now) {
            true => all.elect(settings),
            false => 0,
        };
        if writer != all.writer {
            let former = all.address_of(all.writer);
            let address = all.address_of(writer);
            tracing::info!(
                server = address.as_deref().unwrap_or("none"),
                "the writer has changed"
            );
            all.writer = writer;
            all.close(former);
            self.has_news.store(true, SeqCst);
        }
        all.had_writer |= writer != 0;
        all.nodes
            .values_mut()
            .for_each(|node| node.take_role(writer, now));
        self.writer.store(writer, SeqCst);
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
            why_out: reasons.iter().map(shown).collect(),
        }
    }

    /// This server is about to be asked for a barrier, at this time since 1970, in µs.
    pub(super) fn asks(&self, of: &Answerer<'_>, mark: Mark, unix: u64) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.node(of.address).asked = Some((mark, unix));
    }

    /// This server is about to be asked for other proxies.
    pub(super) fn asks_others(&self, of: &Answerer<'_>) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.node(of.address).others_asked = Some(Instant::now());
    }

    /// What is known of other proxies now: what servers have told holds for some time only.
    pub(super) fn look_for_others(&self) -> OtherProxies {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        self.note_others(&mut all);
        all.others.clone()
    }

    /// Notes what servers tell of other proxies: if that has changed, in the notes of all of them at once.
    fn note_others(&self, all: &mut All) {
        if all.take_others(Instant::now()) {
            self.has_news.store(true, SeqCst);
            all.nodes.keys().for_each(|address| all.note_word(address, true));
        }
    }

    /// Notes what this server has answered.
    pub(super) fn heard(&self, of: &Answerer<'_>, answer: Answer, settings: &OneWriter) {
        let mut guard = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let all = &mut *guard;
        let writer = all.writer;
        let node = all.node(of.address);
        node.noted = of.noted.clone();
        let proved = node.asked.filter(|_| answer == Answer::Proof(true));
        if matches!(answer, Answer::Failed(_)) {
            // It may have lost what it had.
            of.reached.begin_anew();
        }
        let served = node.serves();
        let is_silent = matches!(answer, Answer::Failed(_));
        let is_writer = node.number == writer;
        node.note(answer, is_writer, settings);
        let serves = node.serves();
        if serves != served {
            self.has_news.store(true, SeqCst);
            match serves {
                true => tracing::info!(server = of.address, "it serves"),
                false => tracing::warn!(
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
        if settings.is_only_proxy {
            self.note_others(all);
        }
        all.note_word(of.address, settings.is_only_proxy);
        // Behind what is known of other proxies: nobody reads by the clock of a process that was frozen.
        if let Some((mark, unix)) = proved {
            of.reached.raise_since(mark, unix);
            of.reached.end_wait();
        }
    }
}

impl Node {
    /// Has it said that all is well, and proved it since?
    fn serves(&self) -> bool {
        self.why_not.is_empty() && self.proofs > 1
    }

    /// The reasons why it does not serve; empty if it does.
    fn reasons(&self) -> Vec<Reason> {
        match self.why_not.is_empty() && !self.serves() {
            true => vec![Reason::Unproven],
            false => self.why_not.clone(),
        }
    }

    /// What is known of other proxies by what it has told.
    fn others(&self, now: Instant) -> OtherProxies {
        match self.others_told {
            Some(told) if now - told >= ALONE => {
                OtherProxies::Unknown("no server has told of late whether another proxy uses it".into())
            }
            _ => self.others.clone(),
        }
    }

    fn note(&mut self, answer: Answer, is_writer: bool, settings: &OneWriter) {
        match answer {
            Answer::Status(status) => {
                let is_donor = status.is_donor && !settings.donors;
                self.why_not.clone_from(&status.why_not);
                self.why_not.extend(is_donor.then_some(Reason::Donor));
                self.status = status;
            }
            Answer::Failed(why) => self.why_not = vec![Reason::Failed(why)],
            Answer::Others(others) => {
                self.others = others;
                self.others_told = self.others_asked;
            }
            Answer::Proof(true) if self.why_not.is_empty() => self.proofs = self.proofs.saturating_add(1),
            // It may be cut off, and whatever waits there waits as long. The writer waits for nobody: a change
            // of a table holds it up.
            Answer::Late if !is_writer => self.proofs = 0,
            Answer::Proof(_) | Answer::Late => {}
        }
        if !self.why_not.is_empty() {
            self.proofs = 0;
        }
    }

    /// Takes the role that it has where this server is the writer.
    fn take_role(&mut self, writer: u32, now: Instant) {
        let role = match self.serves() {
            true if self.number == writer => Role::Writer,
            true => Role::Reader,
            false => Role::Out,
        };
        if self.role.is_none_or(|(before, _)| before != role) {
            self.role = Some((role, now));
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

    /// Notes what the servers that serve tell of other proxies. Returns whether that is new.
    fn take_others(&mut self, now: Instant) -> bool {
        let serving = self.nodes.values().filter(|node| node.serves());
        let others = together(serving.map(|node| node.others(now)));
        if others == self.others {
            return false;
        }
        match others.may_be() {
            false => tracing::info!("no other proxy uses the servers: `causal` is kept"),
            true => tracing::warn!(why = %others, "`causal` reads are `strict` for now"),
        }
        self.others = others;
        true
    }

    /// Notes for all workers what is known of the server at this address. `is_only_proxy`: the pool is said to
    /// have one proxy.
    fn note_word(&self, address: &str, is_only_proxy: bool) {
        if let Some(node) = self.nodes.get(address) {
            let (writes, has_others) = (node.number == self.writer, is_only_proxy && self.others.may_be());
            let word = Word::new(node.number, node.serves(), writes, has_others);
            node.noted.set(word.0);
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

    /// The number of the server that takes writes: the one that does, as long as it can, and otherwise the
    /// first. One that follows another waits for the others first, so that it has what that one has
    /// acknowledged.
    fn elect(&mut self, settings: &OneWriter) -> u32 {
        let can = |node: &&Node| node.serves() && !node.status.is_read_only;
        if let Some(former) = self.former.take() {
            if let Some(node) = self.nodes.get(&former).filter(can) {
                return node.number;
            }
            // The next one follows it, as any writer follows another one.
            self.had_writer = true;
            self.close(Some(former));
        }
        let able = || self.nodes.values().filter(can);
        if able().any(|node| node.number == self.writer) {
            self.next = None;
            return self.writer;
        }
        // Writes that a server may still acknowledge must be there before the next one waits for the others.
        if !self.closing.is_empty() {
            self.next = None;
            return 0;
        }
        let rank = |node: &Node| settings.order.iter().position(|name| *name == node.status.name);
        let first = able().min_by(|one, other| {
            let ranks = (rank(one).unwrap_or(usize::MAX), rank(other).unwrap_or(usize::MAX));
            let by_rank = ranks.0.cmp(&ranks.1);
            by_rank.then_with(|| natural(&one.status.name, &other.status.name))
        });
        let Some((number, proofs)) = first.map(|node| (node.number, node.proofs)) else {
            self.next = None;
            return 0;
        };
        let (next, before) = *self.next.get_or_insert((number, proofs));
        let is_same = next == number && proofs >= before;
        if !is_same {
            self.next = Some((number, proofs));
        }
        // The first wait may have begun before the one was lost that it follows.
        match !self.had_writer || is_same && proofs >= before + 2 {
            true => number,
            false => 0,
        }
    }
}

/// Names in natural order: `pxc-2` is before `pxc-10`.
fn natural(one: &str, other: &str) -> Ordering {
    let split = |name: &str| {
        let stem = name.trim_end_matches(|last: char| last.is_ascii_digit()).len();
        (name[..stem].to_owned(), name[stem..].parse::<u64>().unwrap_or(0))
    };
    split(one).cmp(&split(other)).then_with(|| one.cmp(other))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{MemberNote, ReachedCount};

    const WRITER: OneWriter = OneWriter {
        order: Vec::new(),
        wait: std::time::Duration::ZERO,
        reads: false,
        donors: false,
        read_wait: std::time::Duration::ZERO,
        read_age: std::time::Duration::ZERO,
        is_only_proxy: false,
    };

    struct Cluster {
        nodes: Nodes,
        noted: Vec<MemberNote>,
        settings: OneWriter,
    }

    impl Cluster {
        fn new(size: usize, settings: OneWriter) -> Self {
            let nodes = Nodes::default();
            // The servers had time to answer.
            nodes.all.lock().unwrap().begun = Instant::now().checked_sub(SETTLING);
            Self {
                nodes,
                noted: (0..size).map(|_| MemberNote::default()).collect(),
                settings,
            }
        }

        /// Returns the name of the writer.
        fn hear(&self, at: usize, answer: Answer) -> u32 {
            let of = Answerer {
                is_up: true,
                position: at,
                address: &format!("10.0.0.{at}:3306"),
                reached: &ReachedCount::default(),
                noted: &self.noted[at],
            };
            self.nodes.heard(&of, answer, &self.settings);
            self.nodes.writer()
        }

        /// The server has waited for the others twice, so that it may follow a writer.
        fn prove(&self, at: usize) -> u32 {
            self.hear(at, Answer::Proof(true));
            self.hear(at, Answer::Proof(true))
        }

        fn well(&self, at: usize, name: &str) -> u32 {
            self.hear(at, Answer::Status(named(name)));
            self.hear(at, Answer::Proof(true));
            self.hear(at, Answer::Proof(true))
        }

        /// All connections have ended that were to.
        fn close(&self) {
            while let Some(address) = self.nodes.closing() {
                self.nodes.closed(&address, &self.settings);
            }
        }

        fn serves(&self, at: usize) -> bool {
            Word(self.noted[at].get()).serves()
        }
    }

    fn named(name: &str) -> Status {
        Status {
            name: name.into(),
            ..Status::default()
        }
    }

    #[test]
    fn the_writer_stays_when_settings_change_and_is_closed_before_another_one_follows() {
        let behind = || {
            let mut cluster = Cluster::new(3, WRITER);
            cluster.nodes = Nodes::behind(Some("10.0.0.1:3306".into()));
            cluster.nodes.all.lock().unwrap().begun = Instant::now().checked_sub(SETTLING);
            cluster
        };
        let cluster = behind();
        cluster.hear(1, Answer::Status(named("pxc-1")));
        cluster.hear(1, Answer::Proof(true));
        assert_eq!(cluster.hear(1, Answer::Proof(true)), 1);
        cluster.well(0, "pxc-0");
        assert_eq!(cluster.nodes.writer_address().as_deref(), Some("10.0.0.1:3306"));

        let cluster = behind();
        assert_eq!(cluster.well(0, "pxc-0"), 0);
        assert_eq!(cluster.nodes.closing().as_deref(), Some("10.0.0.1:3306"));
        cluster.close();
        cluster.prove(0);
        assert_eq!(cluster.prove(0), 1);
    }

    #[test]
    fn the_writer_stays_until_it_fails_and_the_next_is_the_first_by_number() {
        let cluster = Cluster::new(3, WRITER);
        assert_eq!(cluster.well(0, "pxc-10"), 1);
        assert_eq!((cluster.well(1, "pxc-3"), cluster.well(2, "pxc-2")), (1, 1));
        assert_eq!(
            cluster.hear(0, Answer::Failed("refused".into())),
            0,
            "pxc-2 waits first"
        );
        cluster.close();
        assert_eq!(
            cluster.hear(2, Answer::Proof(true)),
            0,
            "that may have begun before"
        );
        assert_eq!(cluster.hear(2, Answer::Proof(true)), 3);
        assert_eq!(cluster.well(0, "pxc-1"), 3, "it stays");
        let read_only = Status {
            is_read_only: true,
            ..named("pxc-2")
        };
        cluster.hear(2, Answer::Status(read_only));
        cluster.close();
        assert_eq!(cluster.prove(0), 1);
        assert!(cluster.serves(2));
    }

    #[test]
    fn a_server_has_a_role_and_says_why_it_is_out() {
        let cluster = Cluster::new(3, WRITER);
        let said = |at: usize| {
            let status = cluster.nodes.role(&format!("10.0.0.{at}:3306"));
            let words: Vec<&str> = status.why_out.iter().map(|&(word, _)| word).collect();
            (status.role, words.join(" "), status.since)
        };
        assert_eq!(said(0), (Role::Out, "unknown".into(), None));
        cluster.well(0, "a");
        cluster.well(1, "b");
        cluster.hear(2, Answer::Status(named("c")));
        assert_eq!((said(0).0, said(1).0), (Role::Writer, Role::Reader));
        let (role, words, since) = said(2);
        assert_eq!((role, &*words), (Role::Out, "unproven"));
        let rejects = Status {
            why_not: vec![Reason::RejectsQueries],
            is_donor: true,
            ..named("c")
        };
        cluster.hear(2, Answer::Status(rejects));
        let (_, words, still_since) = said(2);
        assert_eq!(
            (&*words, still_since),
            ("rejects_queries donor", since),
            "it is out for as long as before"
        );
        cluster.hear(0, Answer::Failed("refused".into()));
        cluster.close();
        cluster.prove(1);
        assert_eq!(said(1).0, Role::Writer);
        assert_eq!((said(0).0, &*said(0).1), (Role::Out, "failed"));
    }

    #[test]
    fn configured_names_come_first() {
        let order = vec!["b".to_owned(), "a".to_owned()];
        let cluster = Cluster::new(3, OneWriter { order, ..WRITER });
        for (at, name) in ["a", "b", "c"].iter().enumerate() {
            cluster.hear(at, Answer::Status(named(name)));
            cluster.hear(at, Answer::Proof(true));
        }
        assert_eq!(
            cluster.hear(2, Answer::Proof(true)),
            0,
            "others are about to prove it"
        );
        cluster.well(0, "a");
        assert_eq!(cluster.well(1, "b"), 2);
        cluster.hear(1, Answer::Failed("gone".into()));
        cluster.close();
        assert_eq!(cluster.prove(0), 1);
        cluster.hear(2, Answer::Failed("gone".into()));
        assert_eq!(cluster.hear(0, Answer::Failed("gone".into())), 0);
        assert!(!cluster.nodes.has_reader());
    }

    #[test]
    fn a_server_serves_when_it_has_waited_for_the_others_since_it_was_well() {
        let cluster = Cluster::new(1, WRITER);
        cluster.hear(0, Answer::Proof(true));
        cluster.hear(0, Answer::Proof(true));
        cluster.hear(0, Answer::Status(named("a")));
        assert!(!cluster.serves(0), "those were before");
        cluster.hear(0, Answer::Proof(true));
        assert!(!cluster.serves(0), "this one may have begun before");
        cluster.hear(0, Answer::Proof(false));
        cluster.hear(0, Answer::Proof(true));
        assert!(cluster.serves(0));
        cluster.hear(0, Answer::Proof(false));
        assert!(cluster.serves(0), "it is late because of another one");
        let donor = Status {
            is_donor: true,
            ..named("a")
        };
        cluster.hear(0, Answer::Status(donor));
        assert!(!cluster.serves(0));
        assert!(cluster.nodes.take_news() && !cluster.nodes.take_news());
    }

    #[test]
    fn nobody_follows_a_writer_before_the_connections_to_it_have_ended() {
        let read_only = || Status {
            is_read_only: true,
            ..named("a")
        };
        for answer in [Answer::Failed("gone".into()), Answer::Status(read_only())] {
            let cluster = Cluster::new(3, WRITER);
            cluster.well(0, "a");
            cluster.well(1, "b");
            assert_eq!((cluster.well(2, "c"), cluster.nodes.closing()), (1, None));
            cluster.hear(0, answer);
            assert_eq!(cluster.nodes.closing().as_deref(), Some("10.0.0.0:3306"));
            assert_eq!((cluster.prove(1), cluster.prove(1)), (0, 0), "they are open");
            cluster.close();
            assert_eq!(cluster.hear(1, Answer::Proof(true)), 0, "it begins to wait now");
            assert_eq!(cluster.prove(1), 2);
        }
    }

    #[test]
    fn nobody_waits_for_a_reader_that_is_silent() {
        let cluster = Cluster::new(2, WRITER);
        cluster.well(0, "a");
        cluster.well(1, "b");
        let donor = Status {
            is_donor: true,
            ..named("b")
        };
        cluster.hear(1, Answer::Status(donor));
        assert_eq!(cluster.nodes.closing(), None, "it answers what it was asked");
        cluster.well(1, "b");
        cluster.hear(1, Answer::Failed("late".into()));
        assert_eq!(cluster.nodes.closing().as_deref(), Some("10.0.0.1:3306"));
        assert_eq!(cluster.nodes.writer(), 1, "that stays");
    }

    #[test]
    fn a_writer_that_is_no_member_any_more_is_followed() {
        let cluster = Cluster::new(2, WRITER);
        cluster.well(0, "a");
        assert_eq!(cluster.well(1, "b"), 1);
        cluster.nodes.forget(1, &WRITER);
        assert_eq!(cluster.nodes.writer(), 0);
        assert_eq!(cluster.prove(1), 2);
    }

    #[test]
    fn a_reader_that_has_waited_in_vain_serves_when_it_has_caught_up() {
        let cluster = Cluster::new(2, WRITER);
        cluster.well(0, "a");
        cluster.well(1, "b");
        cluster.hear(0, Answer::Late);
        cluster.hear(1, Answer::Late);
        assert_eq!(
            (cluster.serves(0), cluster.nodes.writer()),
            (true, 1),
            "the writer serves"
        );
        assert!(!cluster.serves(1));
        cluster.hear(1, Answer::Status(named("b")));
        cluster.hear(1, Answer::Proof(true));
        assert!(!cluster.serves(1));
        cluster.hear(1, Answer::Proof(true));
        assert!(cluster.serves(1));
    }

    #[test]
    fn all_workers_read_strictly_while_another_proxy_may_write() {
        let cluster = Cluster::new(
            2,
            OneWriter {
                is_only_proxy: true,
                ..WRITER
            },
        );
        let says = |at: usize, others: OtherProxies| {
            let address = format!("10.0.0.{at}:3306");
            let mut all = cluster.nodes.all.lock().unwrap();
            all.node(&address).others_asked = Some(Instant::now());
            drop(all);
            cluster.hear(at, Answer::Others(others));
        };
        let strict = || {
            let [one, other] = [0, 1].map(|at: usize| Word(cluster.noted[at].get()).has_others());
            assert_eq!(one, other, "every server's note has it");
            assert_eq!(one, cluster.nodes.others().may_be());
            one
        };
        cluster.well(0, "a");
        cluster.well(1, "b");
        assert!(strict(), "nobody has told");
        says(0, OtherProxies::None);
        assert!(strict(), "one has not");
        says(1, OtherProxies::None);
        assert!(!strict());
        says(1, OtherProxies::Seen("10.0.0.1:3306".into()));
        assert!(strict());
        cluster.hear(1, Answer::Failed("gone".into()));
        assert!(!strict(), "it serves nobody");
        cluster.well(1, "b");
        assert!(strict(), "it has told of one before");
        says(1, OtherProxies::None);
        assert!(!strict());
        let long_ago = Instant::now().checked_sub(ALONE);
        let mut all = cluster.nodes.all.lock().unwrap();
        all.node("10.0.0.0:3306").others_told = long_ago;
        drop(all);
        assert!(cluster.nodes.look_for_others().may_be());
        assert!(strict(), "what was told long ago may not hold any more");
        says(0, OtherProxies::None);
        assert!(!strict());
        let mut all = cluster.nodes.all.lock().unwrap();
        all.node("10.0.0.0:3306").others_told = long_ago;
        drop(all);
        cluster.hear(1, Answer::Proof(true));
        assert!(strict(), "nor when a server answers something else");
    }

    #[test]
    fn names_are_counted_as_people_do() {
        let mut names = ["pxc-10", "pxc-2", "a", "pxc", "pxc-02"];
        names.sort_by(|one, other| natural(one, other));
        assert_eq!(names, ["a", "pxc", "pxc-02", "pxc-2", "pxc-10"]);
    }
}
