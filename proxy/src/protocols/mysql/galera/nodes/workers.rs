//! A model of workers that write while the writer moves and fails, in random order.
//!
//! Each worker has the connections that it has, takes its orders when it comes to that, and knows of the
//! writer what all share. Each rule is left out once, and must be missed: then a worker writes at a former
//! writer after another one has written at the new one.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use super::{
    super::{answer::Status, word::Word},
    Nodes,
    tests::WRITER,
};
use crate::{
    protocol::{Answerer, MemberNote, OneWriter, ReachedCount, WriterOrders, WriterWish},
    protocols::mysql::galera::answer::Answer,
    random::Random,
};

const SERVERS: usize = 3;
const WORKERS: usize = 3;
const STEPS: usize = 400;

/// A rule that is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Omitted {
    Nothing,
    /// The next writer waits until all workers have left the former one.
    Left,
    /// The next writer waits until all connections to one that has failed are closed.
    Closed,
    /// What did not wait, as the move has begun just now, goes to the former writer.
    Former,
}

/// An order to a worker to close what it has to a server.
#[derive(Clone, Copy)]
struct Order {
    server: usize,
    /// The position of those who wait for all workers.
    wait: usize,
    /// What is under way there ends with an error.
    is_now: bool,
}

#[derive(Default)]
struct Worker {
    /// A request need not wait, and no server is chosen for it yet.
    has_passed: bool,
    /// The server of a transaction, and the number of the writer's term in which it began.
    transaction: Option<(usize, usize)>,
    orders: VecDeque<Order>,
    /// What it will have closed when the transaction is over.
    closes: Vec<Order>,
}

/// Somebody who waits until all workers have followed an order.
struct Wait {
    left: usize,
    /// The number of the move; `None`: the server has failed.
    number: Option<u64>,
    server: usize,
    is_told: bool,
}

struct Model {
    omitted: Omitted,
    nodes: Nodes,
    noted: Vec<MemberNote>,
    settings: OneWriter,
    wish: Option<WriterWish>,
    orders: u64,
    workers: Vec<Worker>,
    waits: Vec<Wait>,
    /// Servers that are about to answer a barrier.
    asked: [bool; SERVERS],
    /// The last writer, the number of its term, and the term of each server.
    writer: u32,
    term: usize,
    terms: [usize; SERVERS],
    /// The term of the last write.
    written: usize,
    moves: usize,
}

fn address(at: usize) -> String {
    format!("10.0.0.{at}:3306")
}

fn position(address: &str) -> usize {
    (0..SERVERS).find(|&at| self::address(at) == address).unwrap()
}

impl Model {
    fn new(omitted: Omitted) -> Self {
        let model = Self {
            omitted,
            nodes: Nodes::default(),
            noted: (0..SERVERS).map(|_| MemberNote::default()).collect(),
            settings: OneWriter {
                wait: Duration::from_secs(3600),
                ..WRITER
            },
            wish: None,
            orders: 0,
            workers: (0..WORKERS).map(|_| Worker::default()).collect(),
            waits: Vec::new(),
            asked: [false; SERVERS],
            writer: 0,
            term: 0,
            terms: [0; SERVERS],
            written: 0,
            moves: 0,
        };
        model.nodes.all.lock().unwrap().begun = Instant::now().checked_sub(Duration::from_secs(60));
        model
    }

    fn hear(&mut self, at: usize, answer: Answer) {
        let of = Answerer {
            is_up: true,
            drains: false,
            position: at,
            address: &address(at),
            reached: &ReachedCount::default(),
            noted: &self.noted[at],
        };
        let orders = WriterOrders {
            wish: self.wish.clone(),
            hold: None,
        };
        self.nodes.heard(&of, answer, orders, &self.settings);
        if let Some((order, _)) = self.nodes.take_given_up() {
            self.wish.take_if(|wish| wish.number == order);
        }
        self.note_term();
    }

    /// A server that is another one than before has a term of its own.
    fn note_term(&mut self) {
        let all = self.nodes.all.lock().unwrap();
        let (now, found) = (all.writer, all.address_of(all.writer));
        drop(all);
        if now != 0 && now != self.writer {
            self.term += 1;
            self.terms[position(&found.unwrap())] = self.term;
        }
        // The server that was the writer before may be it again, in a new term.
        self.writer = now;
    }

    fn well(&mut self, at: usize) {
        let status = Status {
            name: format!("node-{at}"),
            ..Status::default()
        };
        self.hear(at, Answer::Status(status));
    }

    fn answer(&mut self, at: usize) {
        match std::mem::take(&mut self.asked[at]) {
            true => self.hear(at, Answer::Proof(true)),
            false => {
                self.asked[at] = true;
                self.nodes.all.lock().unwrap().node(&address(at)).proof_asked = Some(Instant::now());
            }
        }
    }

    /// The server for a request that need not wait, as [`Galera::member`](super::super::Galera) has it.
    fn chosen(&self) -> Option<usize> {
        let writer = self.nodes.writer();
        let word = |at: &usize| Word(self.noted[*at].get());
        let mut all = 0..SERVERS;
        if writer != 0 {
            return all.find(|at| word(at).number() == writer);
        }
        match self.omitted == Omitted::Former {
            true => all.find(|at| word(at).serves()),
            false => all.find(|at| word(at).writes()),
        }
    }

    /// A worker does something. Returns what is wrong.
    fn work(&mut self, at: usize, random: &mut Random) -> Option<String> {
        let has_writer = self.nodes.writer() != 0;
        let chosen = self.chosen();
        let (terms, written) = (self.terms, self.written);
        let worker = &mut self.workers[at];
        if worker.has_passed {
            worker.has_passed = false;
            worker.transaction = chosen.map(|server| (server, terms[server]));
            return None;
        }
        match (random.below(3), worker.transaction) {
            (0, None) => worker.has_passed = has_writer,
            (0 | 1, Some((server, term))) => {
                if term < written {
                    return Some(format!("worker {at} writes at {server}, a former writer"));
                }
                self.written = term;
                worker.transaction = None;
                let ended = std::mem::take(&mut worker.closes);
                ended.iter().for_each(|order| self.waits[order.wait].left -= 1);
            }
            _ => {
                let order = worker.orders.pop_front()?;
                let is_its = worker
                    .transaction
                    .is_some_and(|(server, _)| server == order.server);
                if is_its && !order.is_now {
                    worker.closes.push(order);
                    return None;
                }
                self.waits[order.wait].left -= 1;
                if is_its {
                    worker.transaction = None;
                    let ended = std::mem::take(&mut worker.closes);
                    ended.iter().for_each(|order| self.waits[order.wait].left -= 1);
                }
            }
        }
        None
    }

    /// The control thread gives an order, or says what has come of one.
    fn control(&mut self) {
        if let Some((address, number)) = self.nodes.emptying() {
            self.moves += 1;
            self.order(&address, Some(number));
        }
        let closing = self.nodes.closing();
        let is_new = |address: &String| {
            let server = position(address);
            let is_its = |wait: &Wait| wait.number.is_none() && wait.server == server && !wait.is_told;
            !self.waits.iter().any(is_its)
        };
        if let Some(address) = closing.filter(is_new) {
            self.order(&address, None);
        }
        let (omitted, mut told) = (self.omitted, Vec::new());
        for wait in self.waits.iter_mut().filter(|wait| !wait.is_told) {
            let is_omitted = match wait.number {
                Some(_) => omitted == Omitted::Left,
                None => omitted == Omitted::Closed,
            };
            if wait.left == 0 || is_omitted {
                wait.is_told = true;
                told.push((wait.number, wait.server));
            }
        }
        for (number, server) in told {
            match number {
                Some(number) => self.nodes.emptied(number, &self.settings),
                None => self.nodes.closed(&address(server), &self.settings),
            }
            self.note_term();
        }
    }

    fn order(&mut self, address: &str, number: Option<u64>) {
        let order = Order {
            server: position(address),
            wait: self.waits.len(),
            is_now: number.is_none(),
        };
        self.waits.push(Wait {
            left: WORKERS,
            number,
            server: order.server,
            is_told: false,
        });
        self.workers
            .iter_mut()
            .for_each(|worker| worker.orders.push_back(order));
    }

    fn wish(&mut self, to: usize, random: &mut Random) {
        self.orders += 1;
        self.wish = Some(WriterWish {
            number: self.orders,
            address: address(to),
            within: Duration::from_secs([0, 60][random.below(2)]),
            is_forced: random.below(2) == 0,
        });
    }

    fn step(&mut self, random: &mut Random) -> Option<String> {
        let (worker, server) = (random.below(WORKERS), random.below(SERVERS));
        match random.below(40) {
            0 => self.wish(server, random),
            1 => self.wish = None,
            2 => self.hear(server, Answer::Failed("gone".into())),
            3 => {
                let donor = Status {
                    name: format!("node-{server}"),
                    is_donor: true,
                    ..Status::default()
                };
                self.hear(server, Answer::Status(donor));
            }
            4..8 => self.well(server),
            8..16 => self.answer(server),
            16..22 => self.control(),
            _ => return self.work(worker, random),
        }
        None
    }
}

/// Takes random steps. Returns what was wrong, or how many moves there were and the term of the last write.
fn run(seed: u64, omitted: Omitted) -> Result<(usize, usize), String> {
    let mut random = Random(seed);
    let mut model = Model::new(omitted);
    for at in 0..SERVERS {
        model.well(at);
        (0..4).for_each(|_| model.answer(at));
    }
    for _ in 0..STEPS {
        if let Some(wrong) = model.step(&mut random) {
            return Err(wrong);
        }
    }
    // When all is well, some server takes writes again.
    model.wish = None;
    for at in (0..SERVERS).cycle().take(60 * SERVERS) {
        model.well(at);
        model.answer(at);
        model.control();
        for worker in 0..WORKERS {
            if let Some(wrong) = model.work(worker, &mut random) {
                return Err(wrong);
            }
        }
    }
    match model.nodes.writer() {
        0 => Err("nobody takes writes".to_owned()),
        _ => Ok((model.moves, model.written)),
    }
}

#[test]
fn no_worker_writes_at_a_former_writer_once_another_one_has_written_at_the_next() {
    let (mut moves, mut written) = (0, 0);
    for seed in 0..2_000 {
        let (some, last) = run(seed, Omitted::Nothing).unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}"));
        moves += some;
        written += last;
    }
    assert!(moves > 2_000 && written > 2_000, "{moves} moves, {written} terms");
}

#[test]
fn each_rule_is_missed_where_it_is_left_out() {
    for omitted in [Omitted::Left, Omitted::Closed, Omitted::Former] {
        let is_missed = |seed| run(seed, omitted).is_err_and(|wrong| wrong.contains("former writer"));
        assert!((0..2_000).any(is_missed), "{omitted:?} is not needed");
    }
}
