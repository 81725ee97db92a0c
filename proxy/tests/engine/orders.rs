//! Two workers change copies on three servers, and their changes reach each server in another order.
//! Connections break, and their bytes are executed later, or never. Descriptors run out. At rest the copies
//! agree, no swap is lost, and no read is older than the last answer, whether replies are kept or not.

use std::{collections::BTreeSet, path::Path, rc::Rc, sync::Arc, time::Duration};

use proptest::prelude::*;
use proxima::{
    config,
    copies::KeyLocks,
    near::{Near, Rules},
    route::near_rules,
};

use crate::{
    control::Control,
    copies::COPIES,
    world::{World, check_equal, held, keeping, worker_of, world},
};

const SERVERS: [&str; 3] = ["a", "b", "c"];
/// Bytes of a value that is too large for a shared lane.
const LARGE: usize = 70_000;

#[derive(Clone, Debug)]
enum Ask {
    Set {
        large: bool,
    },
    Add,
    Replace {
        large: bool,
    },
    Delete,
    Append,
    /// `gets n`, and then `cas n` with one more.
    Swap,
    /// `incr n`, which the home computes and the others get.
    Count,
    Get,
}

#[derive(Clone, Debug)]
enum Step {
    Ask {
        client: usize,
        ask: Ask,
    },
    /// A client with half a value sends the rest.
    Finish {
        client: usize,
    },
    /// A server takes this many bytes from a connection.
    Take {
        lane: prop::sample::Index,
        bytes: usize,
    },
    /// A server's answers arrive.
    Answer {
        lane: prop::sample::Index,
    },
    /// A worker's clock advances.
    Wait {
        worker: usize,
    },
    /// A connection to a server breaks. Its bytes are lost, or the server executes them first and sees the
    /// end later.
    Break {
        lane: prop::sample::Index,
        lost: bool,
    },
    /// A worker has no descriptors for new connections to a server, or has them again.
    Shortage {
        worker: usize,
        server: usize,
    },
    /// A worker gets a proposal, or the control thread gets an event, tries a copy, or repairs one.
    Propose {
        worker: usize,
    },
    Hear,
    Look,
    Repair,
}

fn failing_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        30 => step(),
        1 => (any::<prop::sample::Index>(), any::<bool>()).prop_map(|(lane, lost)| Step::Break { lane, lost }),
        1 => (0..2_usize, 0..3_usize).prop_map(|(worker, server)| Step::Shortage { worker, server }),
        6 => (0..2_usize).prop_map(|worker| Step::Propose { worker }),
        6 => Just(Step::Hear),
        3 => Just(Step::Look),
        3 => Just(Step::Repair),
    ]
}

/// Many reads, of what the workers keep.
fn reading_step() -> impl Strategy<Value = Step> {
    let read = |client| Step::Ask {
        client,
        ask: Ask::Get,
    };
    prop_oneof![
        3 => failing_step(),
        1 => (0..CLIENTS).prop_map(read),
        1 => (0..2_usize).prop_map(|worker| Step::Wait { worker }),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let ask = prop_oneof![
        3 => any::<bool>().prop_map(|large| Ask::Set { large }),
        1 => Just(Ask::Add),
        2 => any::<bool>().prop_map(|large| Ask::Replace { large }),
        1 => Just(Ask::Delete),
        1 => Just(Ask::Append),
        4 => Just(Ask::Swap),
        3 => Just(Ask::Count),
        2 => Just(Ask::Get),
    ];
    let any = || any::<prop::sample::Index>();
    prop_oneof![
        6 => (0..CLIENTS, ask).prop_map(|(client, ask)| Step::Ask { client, ask }),
        2 => (0..CLIENTS).prop_map(|client| Step::Finish { client }),
        12 => (any(), prop_oneof![1..30_usize, Just(usize::MAX)]).prop_map(|(lane, bytes)| Step::Take { lane, bytes }),
        12 => any().prop_map(|lane| Step::Answer { lane }),
        2 => (0..2_usize).prop_map(|worker| Step::Wait { worker }),
    ]
}

const CLIENTS: usize = 6;

/// The reply for which a client waits.
enum Due {
    Nothing,
    Reply,
    /// The version of `n`, for a swap.
    Version,
    /// The answer to a swap to this number.
    Swap(u64),
    /// The number to which `n` was incremented.
    Count,
    /// The value of `n`, which was this number when the client asked.
    Read(u64),
}

struct Client {
    worker: usize,
    seat: usize,
    rest: Vec<u8>,
    due: Due,
}

/// A connection of a worker to a server.
struct Lane {
    worker: usize,
    seat: usize,
    server: usize,
    seat_there: usize,
    answers: Vec<u8>,
}

struct Play {
    workers: [World; 2],
    servers: Vec<World>,
    clients: Vec<Client>,
    lanes: Vec<Lane>,
    control: Control,
    /// The numbers with which swaps and increments were answered, and the greatest of them.
    swaps: BTreeSet<u64>,
    swapped: u64,
    /// Whether an error was answered.
    failed: bool,
    /// A number that makes each value unique.
    asked: usize,
    /// Where replies are kept.
    near: Option<Arc<Near>>,
}

impl Play {
    fn new() -> Self {
        Self::of(COPIES)
    }

    /// A play whose workers keep replies.
    fn keeping() -> Self {
        let route = "{near: {child: p, rules: [{name: r, ttl: 50ms, stale: 50ms, negative: 8ms}]}}";
        let yaml = COPIES.replace("route: p", &format!("route: {route}"));
        let mut play = Self::of(&yaml);
        let config = config::parse(&yaml, Path::new("test")).unwrap().config;
        let near = Arc::new(Near::new(16 << 20, [1, 2, 3, 4]));
        let rules = near_rules(&config, &Rules::default(), &config);
        for worker in &mut play.workers {
            let kept = Some((Arc::clone(&near), rules.clone()));
            worker.engine.tree = Rc::new(keeping(&config, kept).unwrap());
            worker.engine.follow_near();
        }
        play.near = Some(near);
        play
    }

    fn of(yaml: &str) -> Self {
        let config = config::parse(yaml, Path::new("test")).unwrap().config;
        let locks = Arc::new(KeyLocks::new(2, [1, 2, 3, 4]));
        let mut workers = [0, 1].map(|worker| worker_of(&config, worker, Arc::clone(&locks)));
        let members = workers[0].engine.tree.members();
        let mut servers: Vec<World> = SERVERS.iter().map(|_| world("embedded")).collect();
        for server in &mut servers {
            let seat = server.client();
            server.say(seat, b"set n 0 0 1\r\n0\r\n");
        }
        let clients = (0..CLIENTS)
            .map(|number| Client {
                worker: number % 2,
                seat: workers[number % 2].client(),
                rest: Vec::new(),
                due: Due::Nothing,
            })
            .collect();
        Self {
            workers,
            servers,
            clients,
            lanes: Vec::new(),
            control: Control::new(members),
            swaps: BTreeSet::new(),
            swapped: 0,
            failed: false,
            asked: 0,
            near: None,
        }
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Ask { client, ask } => {
                let Client { due, rest, .. } = &self.clients[*client];
                // A large value may be refused before all of it was sent.
                if matches!(due, Due::Nothing) && rest.is_empty() {
                    self.ask(*client, ask);
                }
            }
            Step::Finish { client } => {
                let rest = std::mem::take(&mut self.clients[*client].rest);
                self.say(*client, &rest);
            }
            Step::Take { lane, bytes } => {
                self.find_lanes();
                if !self.lanes.is_empty() {
                    self.take(lane.index(self.lanes.len()), *bytes);
                }
            }
            Step::Answer { lane } => {
                if !self.lanes.is_empty() {
                    self.answer(lane.index(self.lanes.len()));
                }
            }
            Step::Wait { worker } => self.workers[*worker].pass(Duration::from_millis(1)),
            Step::Break { lane, lost } => {
                self.find_lanes();
                if !self.lanes.is_empty() {
                    self.break_off(lane.index(self.lanes.len()), *lost);
                }
            }
            Step::Shortage { worker, server } => {
                let (short, name) = (&mut self.workers[*worker].short, SERVERS[*server]);
                if !short.remove(name) {
                    short.insert(name.to_owned());
                }
            }
            Step::Propose { worker } => self.control.propose(*worker, &mut self.workers[*worker]),
            Step::Hear => self.control.hear(),
            Step::Look => self.control.look(),
            Step::Repair => {
                let (workers, lanes) = (&self.workers, &self.lanes);
                self.control.repair(&mut self.servers, |server| {
                    let mut to_it = lanes.iter().filter(|lane| lane.server == server);
                    to_it.any(|lane| {
                        let seat = &workers[lane.worker].seats[lane.seat];
                        seat.closed.is_some() && !seat.heard.is_empty()
                    })
                });
            }
        }
        for worker in &mut self.workers {
            self.control.collect(worker);
        }
        for client in 0..CLIENTS {
            self.hear(client);
        }
    }

    fn ask(&mut self, client: usize, ask: &Ask) {
        self.asked += 1;
        let value = format!("<{}>", self.asked);
        let (len, key) = (value.len(), self.asked % 2);
        let (request, due) = match ask {
            Ask::Set { large } | Ask::Replace { large } => {
                let word = if matches!(ask, Ask::Set { .. }) {
                    "set"
                } else {
                    "replace"
                };
                let value = value.repeat(if *large { LARGE / len } else { 1 });
                (
                    format!("{word} k{key} 0 0 {}\r\n{value}\r\n", value.len()),
                    Due::Reply,
                )
            }
            Ask::Add => (format!("add k{key} 0 0 {len}\r\n{value}\r\n"), Due::Reply),
            Ask::Delete => (format!("delete k{key}\r\n"), Due::Reply),
            Ask::Append => (format!("append k{key} 0 0 {len}\r\n{value}\r\n"), Due::Reply),
            Ask::Swap => ("gets n\r\n".to_owned(), Due::Version),
            Ask::Count => ("incr n 1\r\n".to_owned(), Due::Count),
            Ask::Get => ("get n\r\n".to_owned(), Due::Read(self.swapped)),
        };
        self.clients[client].due = due;
        // Only the end of a large value is kept for later.
        let (now, later) = request.as_bytes().split_at(request.len().min(LARGE - 1000));
        self.clients[client].rest = later.to_vec();
        self.say(client, now);
    }

    fn say(&mut self, client: usize, bytes: &[u8]) {
        let Client { worker, seat, .. } = self.clients[client];
        for piece in bytes.chunks(16 << 10) {
            self.workers[worker].say(seat, piece);
        }
    }

    /// Reads a client's reply, and sends its next request.
    fn hear(&mut self, client: usize) {
        let Client {
            worker,
            seat,
            ref mut due,
            ..
        } = self.clients[client];
        if self.workers[worker].seats[seat].heard.is_empty() {
            return;
        }
        let heard = self.workers[worker].heard(seat);
        let words: Vec<&str> = heard.split_whitespace().collect();
        let due = std::mem::replace(due, Due::Nothing);
        if heard.starts_with("SERVER_ERROR") {
            self.failed = true;
            return;
        }
        match due {
            Due::Nothing => panic!("nobody asked for {heard:?}"),
            Due::Reply => {}
            // The key was deleted, because a copy had missed it or too few took it.
            Due::Version | Due::Swap(_) | Due::Count | Due::Read(_)
                if matches!(words[0], "END" | "NOT_FOUND") => {}
            Due::Version => {
                let next = words[5].parse::<u64>().unwrap() + 1;
                self.clients[client].due = Due::Swap(next);
                let swap = format!("cas n 0 0 {} {}\r\n{next}\r\n", next.to_string().len(), words[4]);
                self.say(client, swap.as_bytes());
            }
            Due::Swap(next) if heard == "STORED\r\n" => self.stored(next),
            Due::Count => self.stored(words[0].parse().unwrap()),
            Due::Swap(_) => assert_eq!(heard, "EXISTS\r\n"),
            Due::Read(then) => {
                let read = words[4].parse::<u64>().unwrap();
                assert!(read >= then, "{read} was read when {then} had been answered");
            }
        }
    }

    fn stored(&mut self, number: u64) {
        assert!(
            self.swaps.insert(number),
            "{number} was stored twice: a change was lost"
        );
        self.swapped = self.swapped.max(number);
    }

    fn break_off(&mut self, lane: usize, lost: bool) {
        let Lane { worker, seat, .. } = self.lanes[lane];
        let world = &mut self.workers[worker];
        if world.seats[seat].closed.is_none() {
            world.leave(seat);
            if lost {
                world.seats[seat].heard.clear();
            }
        }
    }

    /// New connections.
    fn find_lanes(&mut self) {
        for (worker, world) in self.workers.iter().enumerate() {
            for seat in 0..world.seats.len() {
                let known = self
                    .lanes
                    .iter()
                    .any(|lane| (lane.worker, lane.seat) == (worker, seat));
                if let Some(server) = SERVERS.iter().position(|&name| name == world.seats[seat].member)
                    && !known
                {
                    let seat_there = self.servers[server].client();
                    self.lanes.push(Lane {
                        worker,
                        seat,
                        server,
                        seat_there,
                        answers: Vec::new(),
                    });
                }
            }
        }
    }

    fn take(&mut self, lane: usize, bytes: usize) {
        let lane = &mut self.lanes[lane];
        let heard = &mut self.workers[lane.worker].seats[lane.seat].heard;
        let taken: Vec<u8> = heard.drain(..bytes.min(heard.len())).collect();
        let server = &mut self.servers[lane.server];
        server.say(lane.seat_there, &taken);
        lane.answers.append(&mut server.seats[lane.seat_there].heard);
    }

    fn answer(&mut self, lane: usize) {
        let lane = &mut self.lanes[lane];
        let answers = std::mem::take(&mut lane.answers);
        let worker = &mut self.workers[lane.worker];
        if !answers.is_empty() && worker.seats[lane.seat].closed.is_none() {
            worker.say(lane.seat, &answers);
        }
    }

    /// Lets everything that is under way arrive and be answered.
    fn settle(&mut self) {
        for worker in &mut self.workers {
            worker.short.clear();
        }
        for _ in 0..1000 {
            for client in 0..CLIENTS {
                self.step(&Step::Finish { client });
            }
            self.find_lanes();
            for lane in 0..self.lanes.len() {
                self.take(lane, usize::MAX);
                self.answer(lane);
            }
            for worker in 0..2 {
                self.step(&Step::Wait { worker });
                self.step(&Step::Propose { worker });
            }
            for step in [Step::Hear, Step::Hear, Step::Look, Step::Repair] {
                self.step(&step);
            }
            let mut dues = self.clients.iter().map(|client| &client.due);
            let answered = dues.all(|due| matches!(due, Due::Nothing));
            if answered && self.control.agreement.is_settled() {
                return;
            }
        }
        panic!("somebody waits for ever");
    }

    /// Asserts that nothing is under way, and that no two servers hold different values.
    fn check(&mut self) {
        check_equal(&mut self.servers, &["k0", "k1", "n"]);
        for worker in &self.workers {
            assert!(worker.is_idle());
        }
        if let Some(near) = &self.near {
            // Changes whose lanes were lost are counted a while longer.
            self.workers
                .iter_mut()
                .for_each(|worker| worker.pass(Duration::from_secs(15)));
            assert_eq!(near.words.open(), 0, "a change does not end");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn copies_agree_whatever_the_order_of_changes(steps in prop::collection::vec(step(), 1..300)) {
        let mut play = Play::new();
        for step in &steps {
            play.step(step);
        }
        play.settle();
        play.check();
        prop_assert!(!play.failed);
        let last = format!("VALUE n 0 {}\r\n{}\r\nEND\r\n", play.swapped.to_string().len(), play.swapped);
        prop_assert_eq!(held(&mut play.servers, "n"), vec![last; 3]);
        prop_assert_eq!(play.swaps.len() as u64, play.swapped, "none was lost");
    }

    #[test]
    fn copies_agree_after_broken_connections(steps in prop::collection::vec(failing_step(), 1..400)) {
        let mut play = Play::new();
        for step in &steps {
            play.step(step);
        }
        play.settle();
        play.check();
    }

    #[test]
    fn kept_replies_are_no_older_than_answered_changes(steps in prop::collection::vec(reading_step(), 1..400)) {
        let mut play = Play::keeping();
        for step in &steps {
            play.step(step);
        }
        play.settle();
        play.check();
    }
}
