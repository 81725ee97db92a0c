//! A model of several proxies whose writer moves together, by the orders of one client, in random order.
//!
//! Each proxy is the real one but for its worker, which has one transaction at a time, and its servers, which have a
//! write when it is acknowledged or, elsewhere, when they have waited for the others since. Each rule of the client is
//! left out once, and must be missed.

use std::time::{Duration, Instant};

use super::{super::answer::Status, Nodes, tests::WRITER};
use crate::{
    protocol::{Answerer, MemberNote, OneWriter, ReachedCount, WriterHold, WriterOrders, WriterWish},
    protocols::mysql::galera::answer::Answer,
    random::Random,
};

const SERVERS: usize = 3;
const PROXIES: usize = 3;
const STEPS: usize = 600;

/// A rule of the client that is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Omitted {
    Nothing,
    /// All proxies hold their writes.
    Hold,
    /// All are quiet before they are told where writes go on.
    Quiet,
    /// They are told that no earlier.
    Late,
}

struct Proxy {
    nodes: Nodes,
    noted: Vec<MemberNote>,
    orders: WriterOrders,
    /// The server of the transaction that is under way.
    transaction: Option<usize>,
    /// The number of a move for which it leaves the writer.
    leaves: Option<u64>,
}

/// The step of the client's move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Idle,
    Holding(usize),
    Naming(usize),
    Releasing(usize),
}

struct Model {
    omitted: Omitted,
    settings: OneWriter,
    proxies: Vec<Proxy>,
    step: Step,
    orders: u64,
    target: usize,
    /// The last write that was acknowledged elsewhere, and whether one was at the target since the move began.
    elsewhere: Option<Instant>,
    has_moved: bool,
    moves: usize,
}

fn address(at: usize) -> String {
    format!("10.0.0.{at}:3306")
}

impl Proxy {
    fn new() -> Self {
        let nodes = Nodes::default();
        nodes.all.lock().unwrap().begun = Instant::now().checked_sub(Duration::from_secs(60));
        Self {
            nodes,
            noted: (0..SERVERS).map(|_| MemberNote::default()).collect(),
            orders: WriterOrders::default(),
            transaction: None,
            leaves: None,
        }
    }

    fn hear(&self, at: usize, answer: Answer, settings: &OneWriter) {
        let of = Answerer {
            is_up: true,
            drains: false,
            position: at,
            address: &address(at),
            reached: &ReachedCount::default(),
            noted: &self.noted[at],
        };
        self.nodes.heard(&of, answer, self.orders.clone(), settings);
    }

    fn well(&self, at: usize, settings: &OneWriter) {
        let status = Status {
            name: format!("node-{at}"),
            ..Status::default()
        };
        self.hear(at, Answer::Status(status), settings);
        self.hear(at, Answer::Proof(true), settings);
        self.hear(at, Answer::Proof(true), settings);
    }

    fn order(&mut self, orders: WriterOrders, settings: &OneWriter) {
        self.orders = orders.clone();
        self.nodes.ordered(orders, settings);
    }

    /// The server that it gives writes to. `None`: they wait.
    fn writer(&self) -> Option<usize> {
        let number = self.nodes.writer();
        let all = self.nodes.all.lock().unwrap();
        (0..SERVERS).find(|at| {
            number != 0
                && all
                    .nodes
                    .get(&address(*at))
                    .is_some_and(|node| node.number == number)
        })
    }

    /// The time at which this server was asked for the barrier that it has answered last.
    fn proved(&self, at: usize) -> Option<Instant> {
        self.nodes.all.lock().unwrap().nodes.get(&address(at))?.proved
    }
}

impl Model {
    fn new(omitted: Omitted) -> Self {
        let settings = OneWriter {
            wait: Duration::from_secs(3600),
            ..WRITER
        };
        let proxies: Vec<Proxy> = (0..PROXIES).map(|_| Proxy::new()).collect();
        for proxy in &proxies {
            (0..SERVERS).for_each(|at| proxy.well(at, &settings));
        }
        Self {
            omitted,
            settings,
            proxies,
            step: Step::Idle,
            orders: 0,
            target: 0,
            elsewhere: None,
            has_moved: true,
            moves: 0,
        }
    }

    /// What the client orders a proxy in this step.
    fn ordered(&self, step: Step) -> WriterOrders {
        let hold = |to| {
            Some(WriterHold {
                number: self.orders,
                to,
            })
        };
        let to = address(self.target);
        match step {
            Step::Idle => WriterOrders::default(),
            Step::Holding(_) => WriterOrders {
                wish: None,
                hold: hold(Some(to).filter(|_| self.omitted == Omitted::Late)),
            },
            Step::Naming(_) => WriterOrders {
                wish: None,
                hold: hold(Some(to)),
            },
            Step::Releasing(_) => WriterOrders {
                wish: Some(WriterWish {
                    number: self.orders + 1,
                    address: to,
                    within: Duration::from_secs(3600),
                    is_forced: false,
                }),
                hold: None,
            },
        }
    }

    /// The client goes on: it orders the next proxy what it orders all, or goes to the next step if all are ready.
    fn client(&mut self, random: &mut Random) {
        let all = |is: &dyn Fn(&Proxy) -> bool| self.proxies.iter().all(is);
        let held = |proxy: &Proxy| proxy.nodes.held().unwrap();
        let (at, next) = match self.step {
            Step::Idle => {
                self.target = (self.target + 1 + random.below(SERVERS - 1)) % SERVERS;
                self.orders += 2;
                (self.elsewhere, self.has_moved) = (None, false);
                self.step = Step::Holding(0);
                return;
            }
            Step::Holding(PROXIES) => {
                let is_left_out = [Omitted::Hold, Omitted::Quiet].contains(&self.omitted);
                if is_left_out || all(&|proxy| held(proxy).is_quiet) {
                    self.step = Step::Naming(0);
                }
                return;
            }
            Step::Naming(PROXIES) => {
                let is_left_out = [Omitted::Hold, Omitted::Quiet].contains(&self.omitted);
                if is_left_out || all(&|proxy| held(proxy).has_all) {
                    self.step = Step::Releasing(0);
                }
                return;
            }
            Step::Releasing(PROXIES) => {
                if all(&|proxy| proxy.writer() == Some(self.target)) && self.has_moved {
                    self.moves += 1;
                    self.step = Step::Idle;
                }
                return;
            }
            Step::Holding(at) => (at, Step::Holding(at + 1)),
            Step::Naming(at) => (at, Step::Naming(at + 1)),
            Step::Releasing(at) => (at, Step::Releasing(at + 1)),
        };
        let is_skipped =
            self.omitted == Omitted::Hold && at == PROXIES - 1 && !matches!(next, Step::Releasing(_));
        if !is_skipped {
            let orders = self.ordered(next);
            self.proxies[at].order(orders, &self.settings);
        }
        self.step = next;
    }

    /// A proxy does something. Returns what is wrong.
    fn proxy(&mut self, at: usize, random: &mut Random) -> Option<String> {
        let proxy = &mut self.proxies[at];
        match (random.below(4), proxy.transaction) {
            (0, None) => proxy.transaction = proxy.writer(),
            (0, Some(server)) => {
                proxy.transaction = None;
                return self.acknowledged(at, server);
            }
            (1, _) => {
                if let Some((_, number)) = proxy.nodes.emptying() {
                    proxy.leaves = Some(number);
                }
                if proxy.transaction.is_none()
                    && let Some(number) = proxy.leaves.take()
                {
                    proxy.nodes.emptied(number, &self.settings);
                }
            }
            (2, _) => {
                let server = random.below(SERVERS);
                let mut all = proxy.nodes.all.lock().unwrap();
                all.node(&address(server)).proof_asked = Some(Instant::now());
            }
            _ => proxy.hear(random.below(SERVERS), Answer::Proof(true), &self.settings),
        }
        None
    }

    fn acknowledged(&mut self, at: usize, server: usize) -> Option<String> {
        if server != self.target {
            self.elsewhere = Some(Instant::now());
            return self
                .has_moved
                .then(|| format!("proxy {at} writes at {server}, and others at {}", self.target));
        }
        let lacks = self.proxies[at].proved(server) <= self.elsewhere;
        if !std::mem::replace(&mut self.has_moved, true) && self.elsewhere.is_some() && lacks {
            return Some(format!("proxy {at} writes at {server}, which lacks a write"));
        }
        None
    }
}

/// Takes random steps. Returns what was wrong, or how many moves there were.
fn run(seed: u64, omitted: Omitted) -> Result<usize, String> {
    let mut random = Random(seed);
    let mut model = Model::new(omitted);
    for _ in 0..STEPS {
        let wrong = match random.below(4) {
            0 => {
                model.client(&mut random);
                None
            }
            _ => model.proxy(random.below(PROXIES), &mut random),
        };
        if let Some(wrong) = wrong {
            return Err(wrong);
        }
    }
    Ok(model.moves)
}

#[test]
fn proxies_move_together_so_that_no_two_of_them_have_two_writers_and_the_new_one_has_all() {
    let runs = (0..1_000)
        .map(|seed| run(seed, Omitted::Nothing).unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}")));
    let moves: usize = runs.sum();
    assert!(moves > 1_000, "{moves} moves");
}

#[test]
fn each_rule_of_the_client_is_missed_where_it_is_left_out() {
    for (omitted, missed) in [
        (Omitted::Hold, "and others"),
        (Omitted::Quiet, "and others"),
        (Omitted::Late, "lacks a write"),
    ] {
        let is_missed = |seed| run(seed, omitted).is_err_and(|wrong| wrong.contains(missed));
        assert!((0..2_000).any(is_missed), "{omitted:?} is not needed");
    }
}
