//! Runs every order of the steps of small programs with the real words, store and fills. A read is never
//! older than a change that was acknowledged before, and never older than an earlier read.
//!
//! Each rule of the design is switched off in turn, and the same search then finds a read that is too old. A
//! rule is switched off by a program's own steps, as by ending a change too early: the near cache itself is
//! the real one. A step is one that other threads cannot see half done: a lookup in the store, the bump of a
//! word, the removal of a key, a server's action, and the handling of its answer.

use std::{
    collections::{HashSet, VecDeque},
    hash::{BuildHasher, BuildHasherDefault, DefaultHasher},
    sync::{
        Arc, Barrier,
        atomic::{AtomicU32, AtomicU64, Ordering::SeqCst},
    },
    thread,
};

use proxima_wire::message::{Outcome, Reply};

use super::{Changes, Entries, Fill, Lookup, Near, OpenChange, Passes, Question, Rule, RuleSettings};
use crate::micros::Micros;

const NOW: Micros = Micros::secs(100);

/// An actor of a program: its task, its worker and its key.
#[derive(Clone, Copy)]
struct Actor {
    kind: Kind,
    worker: usize,
    key: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A read by a route with a near cache.
    Read,
    /// A read by a route without one.
    Plain,
    /// A change whose bump and removal are two steps.
    Write,
    /// A change as a worker counts it.
    Counted,
    /// A change whose lane may be lost; its server executes it late, or never.
    Lossy,
    /// A change in a transaction: queued, and executed later.
    Queued,
    /// A change of everything.
    Flush,
    /// A change of two copies, of which the second may miss it.
    Copies,
}

/// The rule that is switched off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DisabledRule {
    Nothing,
    /// A change removes its key from the store.
    Removal,
    /// A change bumps its word.
    Word,
    /// A change is counted while it is under way.
    Count,
    /// The word is bumped before the key is removed.
    Order,
    /// A change ends with its answer, and not when it is sent.
    Answer,
    /// A fill notes its word before its request is sent.
    Note,
    /// A reader joins a fill only if nothing has changed since that began.
    Join,
    /// A change in a transaction ends with the transaction.
    Transaction,
    /// A change without an answer outlives its lane.
    Linger,
    /// A change of everything bumps the word of everything.
    Everything,
    /// It is counted while it is under way.
    EverythingCount,
    /// A change of copies ends with its operation, and not with each lane.
    Operation,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Pc {
    Begin,
    /// A change has done the first of bump and removal.
    Second,
    /// A reader waits for what another worker fetches.
    Waiting,
    /// A reader waits with another one of its worker.
    Joined,
    Sent,
    /// The server has queued a command.
    Held,
    /// The server has answered.
    Answered,
    /// The lane is lost, and the server may have the request.
    Lost,
    /// The lane is lost, and the server executes no further request of it.
    Lapsed,
    Done,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    /// The server takes the next request of this worker's lane to this copy.
    Serve(usize, usize),
    Go(usize),
    Lose(usize),
    ExecuteLate(usize),
    /// The other worker is told that the second copy is lost.
    Tell,
}

/// The progress of an actor.
struct At {
    pc: Pc,
    /// The newest version that was acknowledged or read before a read began.
    need: u32,
    floor: u32,
    value: u32,
    leader: Option<usize>,
    fill: Option<Fill>,
    /// The changes that had begun when the fill noted its word.
    noted: (u32, u32),
    open: Vec<Open>,
    /// Copies that have not answered a change.
    pending: u32,
}

enum Open {
    Word(u16),
    Change(#[allow(dead_code, reason = "it ends when it is dropped")] OpenChange),
}

/// The near cache of all runs. Each run leaves it without entries of its keys.
struct World {
    near: Arc<Near>,
    changes: Changes,
    rule: Arc<Rule>,
    /// The second has a word of its own, the third shares that of the first.
    keys: [String; 3],
}

struct Run<'a> {
    world: &'a World,
    program: &'a [Actor],
    off: DisabledRule,
    /// The value of each key at both copies.
    servers: [[u32; 3]; 2],
    executed: u32,
    acknowledged: [u32; 3],
    seen: [u32; 3],
    /// Requests on the way, by worker and copy.
    lanes: [[VecDeque<usize>; 2]; 2],
    at: Vec<At>,
    /// The changes of each key, and of everything, that have begun.
    begun: ([u32; 3], u32),
    is_lost: bool,
    is_told: bool,
    wrong: Option<String>,
}

impl World {
    fn new() -> Self {
        let near = Arc::new(Near::new(1 << 20, [1, 2, 3, 4]));
        let settings = RuleSettings {
            ttl: Micros::secs(1000),
            jitter: 0,
            stale: Micros::ZERO,
            stale_on_error: Micros::ZERO,
            negative: Micros::ZERO,
            largest: 1 << 20,
        };
        let word = |key: &str| near.store.hash(key.as_bytes()).word();
        let (first, second) = ("first".to_owned(), "second".to_owned());
        assert_ne!(word(&first), word(&second));
        let mut others = (0..).map(|number| format!("third-{number}"));
        let third = others.find(|key| word(key) == word(&first)).unwrap();
        Self {
            changes: Changes::new(Arc::clone(&near)),
            rule: Arc::new(Rule::new("rule", 0, &settings)),
            keys: [first, second, third],
            near,
        }
    }

    fn question(&self, key: usize) -> Question<'_> {
        Question {
            rule: &self.rule,
            key: self.keys[key].as_bytes(),
            form: b"g",
        }
    }

    /// The value that is kept for a key. A value is as many bytes as it has versions, and one more.
    fn kept(&self, key: usize) -> Option<u32> {
        let shown = Entries(&self.near).of(&self.question(key), NOW);
        Some(shown?.bytes? as u32 - 1)
    }
}

impl<'a> Run<'a> {
    fn new(world: &'a World, program: &'a [Actor], off: DisabledRule) -> Self {
        let at = |_: &Actor| At {
            pc: Pc::Begin,
            need: 0,
            floor: 0,
            value: 0,
            leader: None,
            fill: None,
            noted: (0, 0),
            open: Vec::new(),
            pending: 0,
        };
        Self {
            world,
            program,
            off,
            servers: [[0; 3]; 2],
            executed: 0,
            acknowledged: [0; 3],
            seen: [0; 3],
            lanes: Default::default(),
            at: program.iter().map(at).collect(),
            begun: ([0; 3], 0),
            is_lost: false,
            is_told: false,
            wrong: None,
        }
    }

    /// All state on which the further run depends, without absolute versions.
    fn fingerprint(&self) -> u64 {
        let hasher = BuildHasherDefault::<DefaultHasher>::default();
        let now = |key: usize| (self.begun.0[key] + self.begun.0[[2, 1, 0][key]], self.begun.1);
        let at = |(at, actor): (&At, &Actor)| {
            let fill = at.fill.as_ref().map(|fill| {
                let behind = now(actor.key).0 - at.noted.0;
                (fill.may_be_joined(), behind, now(actor.key).1 - at.noted.1)
            });
            let numbers = (at.need, at.floor, at.value, at.leader);
            (at.pc, numbers, fill, at.open.len(), at.pending)
        };
        let actors: Vec<_> = self.at.iter().zip(self.program).map(at).collect();
        let kept = [0, 1, 2].map(|key| self.world.kept(key));
        let values = (self.servers, self.executed, self.acknowledged, self.seen);
        hasher.hash_one((values, &self.lanes, actors, kept, self.is_lost, self.is_told))
    }

    fn steps(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        for (worker, copy) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            if !self.lanes[worker][copy].is_empty() {
                steps.push(Step::Serve(worker, copy));
            }
        }
        for (who, (at, actor)) in self.at.iter().zip(self.program).enumerate() {
            let waits_at = |copy: usize| self.lanes[actor.worker][copy].contains(&who);
            match (at.pc, actor.kind) {
                (Pc::Joined | Pc::Done, _) | (Pc::Lapsed, Kind::Queued) => {}
                (Pc::Sent, Kind::Lossy) if waits_at(0) => steps.push(Step::Lose(who)),
                (Pc::Sent, Kind::Copies) if at.pending == 0 && (!self.is_lost || self.is_told) => {
                    steps.push(Step::Go(who));
                }
                (Pc::Sent, Kind::Copies) if waits_at(1) => steps.push(Step::Lose(who)),
                (Pc::Sent, _) => {}
                (Pc::Lost, _) => steps.extend([Step::ExecuteLate(who), Step::Go(who)]),
                _ => steps.push(Step::Go(who)),
            }
        }
        if self.is_lost && !self.is_told {
            steps.push(Step::Tell);
        }
        steps
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Serve(worker, copy) => {
                if let Some(who) = self.lanes[worker][copy].pop_front() {
                    self.serve(who, copy);
                }
            }
            Step::Go(who) => match self.program[who].kind {
                Kind::Read | Kind::Plain => self.read(who),
                _ => self.change(who),
            },
            Step::Lose(who) => {
                let Actor { kind, worker, .. } = self.program[who];
                let copy = usize::from(kind == Kind::Copies);
                self.lanes[worker][copy].retain(|&other| other != who);
                if kind == Kind::Copies {
                    self.is_lost = true;
                    self.lane_is_over(who);
                } else {
                    self.at[who].pc = Pc::Lost;
                    if self.off == DisabledRule::Linger {
                        self.end(who);
                    }
                }
            }
            Step::ExecuteLate(who) => {
                self.execute(who, 0);
                self.at[who].pc = Pc::Lapsed;
            }
            Step::Tell => self.is_told = true,
        }
    }

    fn serve(&mut self, who: usize, copy: usize) {
        let Actor { kind, key, .. } = self.program[who];
        let pc = self.at[who].pc;
        match kind {
            Kind::Read | Kind::Plain => {
                self.at[who].value = self.servers[copy][key];
                self.at[who].pc = Pc::Answered;
            }
            Kind::Queued if pc == Pc::Sent => self.at[who].pc = Pc::Held,
            Kind::Copies => {
                self.execute(who, copy);
                self.lane_is_over(who);
            }
            _ => {
                self.execute(who, copy);
                self.at[who].pc = Pc::Answered;
            }
        }
    }

    fn execute(&mut self, who: usize, copy: usize) {
        if self.at[who].value == 0 {
            self.executed += 1;
            self.at[who].value = self.executed;
        }
        let value = self.at[who].value;
        match self.program[who].kind {
            Kind::Flush => self.servers[copy] = [value; 3],
            _ => self.servers[copy][self.program[who].key] = value,
        }
    }

    /// A copy has answered a change, or is lost.
    fn lane_is_over(&mut self, who: usize) {
        self.at[who].pending -= 1;
        if self.off == DisabledRule::Operation {
            let open = self.at[who].open.pop();
            self.close(open);
        }
    }

    fn has_copies(&self) -> bool {
        self.program.iter().any(|actor| actor.kind == Kind::Copies)
    }

    fn send(&mut self, who: usize, copy: usize) {
        self.lanes[self.program[who].worker][copy].push_back(who);
    }

    fn read(&mut self, who: usize) {
        let Actor { kind, worker, key } = self.program[who];
        // The second worker reads the second copy, as long as it knows of no loss.
        let copy = usize::from(self.has_copies() && worker == 1 && !self.is_told);
        if self.at[who].pc == Pc::Begin {
            self.at[who].need = self.acknowledged[key];
            self.at[who].floor = self.seen[key];
        }
        if self.at[who].pc == Pc::Answered {
            return self.answered(who);
        }
        if kind == Kind::Plain {
            self.at[who].pc = Pc::Sent;
            return self.send(who, copy);
        }
        if self.off == DisabledRule::Join
            && let Some(leader) = self.leader(who)
        {
            self.at[who].leader = Some(leader);
            self.at[who].pc = Pc::Joined;
            return;
        }
        let mut out = Vec::new();
        match self
            .world
            .near
            .look(&self.world.question(key), NOW, &mut out, Passes::Never)
        {
            Lookup::Hit(..) => self.finish(who, out.len() as u32 - 1),
            Lookup::Miss(fill) => {
                self.at[who].fill = Some(fill).filter(|_| self.off != DisabledRule::Note);
                self.at[who].noted = (self.begun.0[key] + self.begun.0[[2, 1, 0][key]], self.begun.1);
                self.at[who].pc = Pc::Sent;
                self.send(who, copy);
            }
            Lookup::Filling => match self.leader(who) {
                Some(leader) => {
                    self.at[who].leader = Some(leader);
                    self.at[who].pc = Pc::Joined;
                }
                None => self.at[who].pc = Pc::Waiting,
            },
            Lookup::Changing => {
                self.at[who].pc = Pc::Sent;
                self.send(who, copy);
            }
            Lookup::Unkept | Lookup::Unasked => unreachable!("every value may be kept"),
        }
    }

    /// The reader of the same worker whose fill may be joined.
    fn leader(&self, who: usize) -> Option<usize> {
        let mine = &self.program[who];
        (0..self.program.len()).find(|&other| {
            let Actor { worker, key, .. } = self.program[other];
            let fill = self.at[other].fill.as_ref();
            let may = |fill: &Fill| self.off == DisabledRule::Join || fill.may_be_joined();
            (worker, key) == (mine.worker, mine.key) && fill.is_some_and(may)
        })
    }

    /// The answer to a read has come: it is kept, if nothing forbids that.
    fn answered(&mut self, who: usize) {
        let key = self.program[who].key;
        let value = self.at[who].value;
        let mut fill = self.at[who].fill.take();
        if self.off == DisabledRule::Note
            && self.program[who].kind == Kind::Read
            && let Lookup::Miss(late) =
                self.world
                    .near
                    .look(&self.world.question(key), NOW, &mut Vec::new(), Passes::Never)
        {
            fill = Some(late);
        }
        if let Some(mut fill) = fill {
            let bytes = vec![b'x'; value as usize + 1];
            let reply = Reply::new(Outcome::Found, bytes.len());
            // A refusal is no failure: waiting requests get the value all the same.
            let _ = fill.keep(&reply, bytes[..].into(), false, NOW, 0);
        }
        self.finish(who, value);
    }

    /// The read ends with this value, and so do those that have joined it.
    fn finish(&mut self, who: usize, value: u32) {
        let key = self.program[who].key;
        for other in 0..self.at.len() {
            if other != who && self.at[other].leader != Some(who) {
                continue;
            }
            let At { need, floor, .. } = self.at[other];
            // Copies promise this of what was acknowledged alone.
            let floor = if self.has_copies() { 0 } else { floor };
            if value < need {
                self.wrong = Some(format!(
                    "{other} reads {value}, and {need} was acknowledged before"
                ));
            } else if value < floor {
                self.wrong = Some(format!("{other} reads {value}, and {floor} was read before"));
            }
            self.at[other].pc = Pc::Done;
            self.at[other].leader = None;
            self.at[other].value = 0;
        }
        self.seen[key] = self.seen[key].max(value);
    }

    fn change(&mut self, who: usize) {
        let Actor { kind, key, .. } = self.program[who];
        match (self.at[who].pc, kind) {
            (Pc::Begin, Kind::Write | Kind::Copies) => {
                match self.off {
                    DisabledRule::Order => self.remove(key),
                    _ => self.begin(who),
                }
                self.at[who].pc = Pc::Second;
            }
            (Pc::Second, _) => {
                match self.off {
                    DisabledRule::Order => self.begin(who),
                    DisabledRule::Removal => {}
                    _ => self.remove(key),
                }
                self.sent(who);
            }
            (Pc::Begin, Kind::Flush) => {
                self.begun.1 += 1;
                if self.off != DisabledRule::Everything {
                    let change = self.world.changes.of_everything();
                    self.at[who].open.push(Open::Change(change));
                }
                if self.off == DisabledRule::EverythingCount {
                    self.end(who);
                }
                self.sent(who);
            }
            (Pc::Begin, _) => {
                self.begun.0[key] += 1;
                let change = self.world.changes.of_key(self.world.keys[key].as_bytes());
                self.at[who].open.push(Open::Change(change));
                self.sent(who);
            }
            // The rest of the transaction is sent, and executes what is queued.
            (Pc::Held, _) => {
                if self.off == DisabledRule::Transaction {
                    self.end(who);
                }
                self.send(who, 0);
                self.at[who].pc = Pc::Lapsed;
            }
            (Pc::Lost, _) => self.at[who].pc = Pc::Lapsed,
            (Pc::Lapsed, Kind::Lossy) => {
                self.end(who);
                self.at[who].pc = Pc::Done;
            }
            _ => {
                self.end(who);
                let acknowledged = &mut self.acknowledged;
                let of = match kind {
                    Kind::Flush => &mut acknowledged[..],
                    _ => &mut acknowledged[key..=key],
                };
                of.iter_mut().for_each(|of| *of = self.at[who].value.max(*of));
                self.at[who].pc = Pc::Done;
            }
        }
    }

    fn begin(&mut self, who: usize) {
        let key = self.program[who].key;
        let hash = self.world.near.store.hash(self.world.keys[key].as_bytes());
        self.begun.0[key] += 1;
        // Where each lane has a change of its own, there are two of them.
        let count = 1 + usize::from(self.off == DisabledRule::Operation);
        for _ in 0..count {
            if self.off != DisabledRule::Word {
                self.world.near.words.begin(hash);
                self.at[who].open.push(Open::Word(hash.word() as u16));
            }
        }
        if self.off == DisabledRule::Count {
            self.end(who);
        }
    }

    fn remove(&self, key: usize) {
        let key = self.world.keys[key].as_bytes();
        self.world.near.store.remove(self.world.near.store.hash(key), key);
    }

    fn sent(&mut self, who: usize) {
        self.send(who, 0);
        if self.program[who].kind == Kind::Copies {
            self.send(who, 1);
            self.at[who].pending = 2;
        }
        if self.off == DisabledRule::Answer {
            self.end(who);
        }
        self.at[who].pc = Pc::Sent;
    }

    /// The change ends.
    fn end(&mut self, who: usize) {
        while let Some(open) = self.at[who].open.pop() {
            self.close(Some(open));
        }
    }

    fn close(&self, open: Option<Open>) {
        if let Some(Open::Word(word)) = open {
            self.world.near.words.end(word);
        }
    }
}

impl Drop for Run<'_> {
    fn drop(&mut self) {
        for who in 0..self.at.len() {
            self.end(who);
            self.at[who].fill = None;
        }
        self.world.keys.iter().for_each(|key| {
            drop(self.world.changes.of_key(key.as_bytes()));
        });
    }
}

/// Runs all orders. Returns the number of states, and the shortest order with a read that is too old.
fn explore(world: &World, program: &[Actor], off: DisabledRule) -> (usize, Option<String>) {
    let mut seen = HashSet::new();
    let mut pending = VecDeque::from([Vec::<Step>::new()]);
    while let Some(path) = pending.pop_front() {
        let mut run = Run::new(world, program, off);
        path.iter().for_each(|&step| run.step(step));
        let steps = run.steps();
        if steps.is_empty() {
            let is_over = run.at.iter().all(|at| at.pc == Pc::Done);
            assert!(is_over, "somebody waits for ever: {path:?}");
            assert_eq!(world.near.words.open(), 0, "a change does not end: {path:?}");
        }
        drop(run);
        for step in steps {
            let mut run = Run::new(world, program, off);
            path.iter().for_each(|&step| run.step(step));
            run.step(step);
            let path = path.iter().copied().chain([step]);
            if let Some(wrong) = run.wrong.take() {
                return (
                    seen.len(),
                    Some(format!("{wrong}: {:?}", path.collect::<Vec<_>>())),
                );
            }
            if seen.insert(run.fingerprint()) {
                pending.push_back(path.collect());
            }
        }
    }
    (seen.len(), None)
}

const fn of(kind: Kind, worker: usize) -> Actor {
    Actor { kind, worker, key: 0 }
}

const fn key(key: usize, actor: Actor) -> Actor {
    Actor { key, ..actor }
}

const R0: Actor = of(Kind::Read, 0);
const R1: Actor = of(Kind::Read, 1);
const P0: Actor = of(Kind::Plain, 0);
const P1: Actor = of(Kind::Plain, 1);
const W0: Actor = of(Kind::Write, 0);
const W1: Actor = of(Kind::Write, 1);
const C0: Actor = of(Kind::Counted, 0);
const C1: Actor = of(Kind::Counted, 1);
const L1: Actor = of(Kind::Lossy, 1);
const T0: Actor = of(Kind::Queued, 0);
const F0: Actor = of(Kind::Flush, 0);
const COPIES: Actor = of(Kind::Copies, 0);

#[test]
fn no_order_of_steps_gives_a_reader_what_is_too_old() {
    let world = World::new();
    let programs: &[&[Actor]] = &[
        &[R0, R1, W0, W1],
        &[R0, R0, W0, C1],
        &[R0, R0, R1, C0],
        &[R0, R1, P1, W1],
        &[R0, R1, P0, L1],
        &[R0, R0, L1, C0],
        &[R0, R1, P0, T0],
        &[R0, R1, F0, C1],
        &[R0, R0, F0, W1],
        &[R0, key(2, R1), W0, key(2, C1)],
        &[R0, key(1, R0), F0, key(1, C1)],
        &[R1, R1, R0, COPIES],
    ];
    for program in programs {
        let (states, found) = explore(&world, program, DisabledRule::Nothing);
        assert_eq!(found, None);
        let kinds: Vec<Kind> = program.iter().map(|actor| actor.kind).collect();
        assert!(states > 200, "{kinds:?} has {states} states only");
    }
}

#[test]
fn each_rule_is_missed_where_it_is_switched_off() {
    let world = World::new();
    let cases: &[(DisabledRule, &[Actor])] = &[
        (DisabledRule::Removal, &[R0, R1, W0]),
        (DisabledRule::Word, &[R0, R1, W0]),
        (DisabledRule::Count, &[R0, R1, W0]),
        (DisabledRule::Order, &[R0, R1, W0]),
        (DisabledRule::Answer, &[R0, R1, C0]),
        (DisabledRule::Note, &[R0, R1, W0]),
        (DisabledRule::Join, &[R0, R0, W1]),
        (DisabledRule::Transaction, &[R0, R1, T0]),
        (DisabledRule::Linger, &[R0, R0, P0, L1]),
        (DisabledRule::Everything, &[R0, R1, F0]),
        (DisabledRule::EverythingCount, &[R0, R1, F0]),
        (DisabledRule::Operation, &[R1, R1, COPIES]),
    ];
    for (off, program) in cases {
        let (_, found) = explore(&world, program, DisabledRule::Nothing);
        assert_eq!(found, None, "with all rules");
        let (states, found) = explore(&world, program, *off);
        assert!(found.is_some(), "{off:?} is not missed in {states} states");
    }
}

/// Steps that no program above can divide, such as a comparison under a shard's lock, are run by threads that
/// meet there by chance.
#[test]
fn threads_that_meet_anywhere_read_nothing_that_is_too_old() {
    const THREADS: usize = 4;
    const ROUNDS: u32 = 30_000;
    let world = World::new();
    let (near, rule) = (&world.near, &world.rule);
    // The server: the newest version of each key, and the newest that was acknowledged.
    let executed: [AtomicU32; 3] = Default::default();
    let acknowledged: [AtomicU32; 3] = Default::default();
    let (hits, kept) = (AtomicU64::new(0), AtomicU64::new(0));
    let start = Barrier::new(THREADS);
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (executed, acknowledged, start) = (&executed, &acknowledged, &start);
            let (hits, kept, keys) = (&hits, &kept, &world.keys);
            scope.spawn(move || {
                let changes = Changes::new(Arc::clone(near));
                let mut random = crate::random::Random(thread as u64 + 1);
                start.wait();
                for _ in 0..ROUNDS {
                    let key = random.below(3);
                    let question = Question {
                        rule,
                        key: keys[key].as_bytes(),
                        form: b"g",
                    };
                    match random.below(40) {
                        0..4 => {
                            let change = changes.of_key(question.key);
                            let version = executed[key].fetch_add(1, SeqCst) + 1;
                            drop(change);
                            acknowledged[key].fetch_max(version, SeqCst);
                        }
                        4 => {
                            let change = changes.of_everything();
                            let versions = [0, 1, 2].map(|key| executed[key].fetch_add(1, SeqCst) + 1);
                            drop(change);
                            for (of, version) in acknowledged.iter().zip(versions) {
                                of.fetch_max(version, SeqCst);
                            }
                        }
                        _ => {
                            let need = acknowledged[key].load(SeqCst);
                            let mut out = Vec::new();
                            let value = match near.look(&question, NOW, &mut out, Passes::Never) {
                                Lookup::Hit(..) => {
                                    hits.fetch_add(1, SeqCst);
                                    u32::from_le_bytes(out[..].try_into().unwrap())
                                }
                                Lookup::Miss(mut fill) => {
                                    let value = executed[key].load(SeqCst);
                                    let reply = Reply::new(Outcome::Found, 4);
                                    let result =
                                        fill.keep(&reply, value.to_le_bytes()[..].into(), false, NOW, 0);
                                    kept.fetch_add(u64::from(result.is_ok()), SeqCst);
                                    value
                                }
                                _ => executed[key].load(SeqCst),
                            };
                            assert!(
                                value >= need,
                                "{value} was read when {need} had been acknowledged"
                            );
                        }
                    }
                }
            });
        }
    });
    let (hits, kept) = (hits.into_inner(), kept.into_inner());
    assert!(hits > 1000 && kept > 1000, "{hits} hits, {kept} kept");
    assert_eq!(near.words.open(), 0);
}
