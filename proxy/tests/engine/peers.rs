//! Two peers of a fleet, with two workers and a server each. What they send to each other and to their
//! servers arrives in any order, links break, and one server freezes. At rest both servers hold the same
//! values, no count is lost, and no read is older than the last answer.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::Arc,
    time::Duration,
};

use proptest::prelude::*;
use proxima::{
    config,
    copies::{KeyLocks, Membership},
    fleet::{Lease, Peer, Slot, Stamp, Stay, View, keeper::Shared},
    micros::Micros,
    peers::Role,
};

use crate::{
    control::Control,
    world::{World, check_equal, held, worker_of, world},
};

/// Workers of a peer.
const WORKERS: usize = 2;
const CLIENTS: usize = 8;
/// The keys that are written; `n` is only counted.
const KEYS: [&str; 3] = ["k0", "k1", "n"];
const STAY: Stay = Stay(1);

#[derive(Clone, Debug)]
enum Ask {
    Set,
    Add,
    Delete,
    Append,
    Get,
    /// `incr n`, which the home computes.
    Count,
    /// `gets n`, and then `cas n` with one more.
    Swap,
    /// `get n`.
    Look,
}

#[derive(Clone, Debug)]
enum Step {
    Ask {
        client: usize,
        ask: Ask,
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
    /// So many bytes arrive at the other end of a link.
    Deliver {
        link: usize,
        end: End,
        bytes: usize,
    },
    /// The clock of a worker advances by so many milliseconds.
    Wait {
        worker: usize,
        millis: u64,
    },
    /// A link breaks, and what is under way on it is lost.
    Cut {
        link: usize,
    },
    /// A link that broke is made again.
    Connect {
        link: usize,
    },
    /// The second peer's server stops, or goes on.
    Freeze,
    /// A worker gets a proposal about its own copy; or its control thread gets an event, or tries or repairs
    /// the copy.
    Propose {
        worker: usize,
    },
    Hear {
        peer: usize,
    },
    Look {
        peer: usize,
    },
    Repair {
        peer: usize,
    },
}

/// The two ends of a link.
#[derive(Clone, Copy, Debug)]
enum End {
    Coordinator,
    Keeper,
}

fn step() -> impl Strategy<Value = Step> {
    let ask = prop_oneof![
        4 => Just(Ask::Set),
        1 => Just(Ask::Add),
        1 => Just(Ask::Delete),
        1 => Just(Ask::Append),
        3 => Just(Ask::Get),
        3 => Just(Ask::Count),
        2 => Just(Ask::Swap),
        2 => Just(Ask::Look),
    ];
    let bytes = || prop_oneof![1..60_usize, Just(usize::MAX)];
    let any = || any::<prop::sample::Index>();
    let end = prop_oneof![Just(End::Coordinator), Just(End::Keeper)];
    prop_oneof![
        6 => (0..CLIENTS, ask).prop_map(|(client, ask)| Step::Ask { client, ask }),
        10 => (any(), bytes()).prop_map(|(lane, bytes)| Step::Take { lane, bytes }),
        10 => any().prop_map(|lane| Step::Answer { lane }),
        14 => (0..2 * WORKERS, end, bytes())
            .prop_map(|(link, end, bytes)| Step::Deliver { link, end, bytes }),
        2 => (0..2 * WORKERS).prop_map(|worker| Step::Wait { worker, millis: 1 }),
    ]
}

fn failing_step() -> impl Strategy<Value = Step> {
    let worker = || 0..2 * WORKERS;
    prop_oneof![
        36 => step(),
        1 => worker().prop_map(|link| Step::Cut { link }),
        3 => worker().prop_map(|link| Step::Connect { link }),
        1 => Just(Step::Freeze),
        2 => worker().prop_map(|worker| Step::Wait { worker, millis: 400 }),
        4 => worker().prop_map(|worker| Step::Propose { worker }),
        4 => (0..2_usize).prop_map(|peer| Step::Hear { peer }),
        2 => (0..2_usize).prop_map(|peer| Step::Look { peer }),
        2 => (0..2_usize).prop_map(|peer| Step::Repair { peer }),
    ]
}

/// The reply for which a client waits.
enum Due {
    Nothing,
    /// The end of the write of this number.
    Write(usize),
    /// The value of a key, asked for at this time.
    Value(&'static str, usize),
    Count,
    /// The version of `n`, for a swap.
    Version,
    Swap(u64),
    /// The value of `n`, which was this number when the client asked.
    Number(u64),
}

struct Client {
    worker: usize,
    seat: usize,
    due: Due,
}

/// A change of a key, with the times at which it was asked for and acknowledged.
struct Write {
    key: &'static str,
    began: usize,
    acknowledged: Option<usize>,
}

/// A connection of a worker to its server.
struct Lane {
    worker: usize,
    seat: usize,
    seat_there: usize,
    answers: Vec<u8>,
}

/// The seats of a link at its coordinator and at its keeper.
#[derive(Clone, Copy)]
struct Ends {
    coordinator: usize,
    keeper: usize,
}

struct Play {
    /// The workers of the first peer, and then those of the second.
    workers: Vec<World>,
    servers: [World; 2],
    frozen: bool,
    controls: [Control; 2],
    clients: Vec<Client>,
    lanes: Vec<Lane>,
    /// The link of each worker to the other peer; `None`: it is broken.
    links: Vec<Option<Ends>>,
    /// By the number in their values.
    writes: BTreeMap<usize, Write>,
    /// The numbers with which increments and swaps were answered, and the greatest of them.
    counts: BTreeSet<u64>,
    counted: u64,
    time: usize,
    failed: bool,
}

fn peer_of(worker: usize) -> usize {
    worker / WORKERS
}

fn slot(peer: usize) -> Slot {
    Slot(peer as u16)
}

/// The worker of the other peer that serves this one's changes.
fn keeper_of(worker: usize) -> usize {
    (1 - peer_of(worker)) * WORKERS + worker % WORKERS
}

fn view() -> View {
    let peer = |number: usize| Peer {
        name: format!("n{number}"),
        identity: number as u128,
        process: 1,
        address: ([127, 0, 0, 1], 1).into(),
        stay: STAY,
        slot: slot(number),
        decides: true,
        workers: WORKERS as u16,
        lease: 0,
        zone: None,
        copies: vec![("p".to_owned(), "10.0.0.1:1".to_owned())],
    };
    View {
        number: STAY.0,
        peers: vec![peer(0), peer(1)],
    }
}

const CONFIG: &str = "pools: {p: {replicated: true, own: \"10.0.0.1:1\", eject: {failures: 0}}}\n\
     listeners: [{address: \"127.0.0.1:1\", route: p}]\n\
     fleet: {listen: \"127.0.0.1:2\", peers: [\"127.0.0.1:2\"], name: n, dir: /nowhere, expect: 2}\n";

/// The workers of one peer, in the view.
fn workers_of(peer: usize, view: &Arc<View>) -> Vec<World> {
    let config = config::parse(CONFIG, Path::new("test")).unwrap().config;
    let locks = Arc::new(KeyLocks::new(WORKERS, [1, 2, 3, 4]));
    let (shared, lease) = (Arc::new(Shared::new()), Arc::new(Lease::default()));
    lease.renew(u64::MAX);
    lease.settle(view.number);
    shared.set_floor(Stamp::ZERO);
    let worker = |number| {
        let mut world = worker_of(&config, number, Arc::clone(&locks));
        world.engine.join_fleet(Membership {
            shared: Arc::clone(&shared),
            lease: Arc::clone(&lease),
            suspect: Micros::millis(300),
            zone: None,
        });
        world
            .engine
            .install_view(Arc::clone(view), Some((slot(peer), STAY)));
        world.engine.begin_turn(1);
        world
    };
    (0..WORKERS).map(worker).collect()
}

impl Play {
    fn new() -> Self {
        let view = Arc::new(view());
        let mut workers: Vec<World> = (0..2).flat_map(|peer| workers_of(peer, &view)).collect();
        let controls = [0, WORKERS].map(|worker| Control::new(workers[worker].engine.tree.members()));
        let mut servers = [world("embedded"), world("embedded")];
        for server in &mut servers {
            let seat = server.client();
            server.say(seat, b"set n 0 0 1\r\n0\r\n");
        }
        let clients = (0..CLIENTS)
            .map(|number| Client {
                worker: number % (2 * WORKERS),
                seat: workers[number % (2 * WORKERS)].client(),
                due: Due::Nothing,
            })
            .collect();
        let mut play = Self {
            workers,
            servers,
            frozen: false,
            controls,
            clients,
            lanes: Vec::new(),
            links: vec![None; 2 * WORKERS],
            writes: BTreeMap::new(),
            counts: BTreeSet::new(),
            counted: 0,
            time: 0,
            failed: false,
        };
        (0..2 * WORKERS).for_each(|link| play.connect(link));
        play
    }

    fn step(&mut self, step: &Step) {
        self.time += 1;
        match *step {
            Step::Ask { client, ref ask } if matches!(self.clients[client].due, Due::Nothing) => {
                self.ask(client, ask);
            }
            Step::Ask { .. } => {}
            Step::Take { lane, bytes } => {
                self.find_lanes();
                if !self.lanes.is_empty() {
                    self.take(lane.index(self.lanes.len()), bytes);
                }
            }
            Step::Answer { lane } if !self.lanes.is_empty() => self.answer(lane.index(self.lanes.len())),
            Step::Answer { .. } => {}
            Step::Deliver { link, end, bytes } => self.deliver(link, end, bytes),
            Step::Wait { worker, millis } => self.workers[worker].pass(Duration::from_millis(millis)),
            Step::Cut { link } => self.cut(link),
            Step::Connect { link } => self.connect(link),
            Step::Freeze => self.frozen = !self.frozen,
            Step::Propose { worker } => {
                let control = &mut self.controls[peer_of(worker)];
                control.propose(worker % WORKERS, &mut self.workers[worker]);
            }
            Step::Hear { peer } => self.controls[peer].hear(),
            Step::Look { peer } => self.controls[peer].look(),
            Step::Repair { peer } => self.repair(peer),
        }
        for (number, worker) in self.workers.iter_mut().enumerate() {
            self.controls[peer_of(number)].collect(worker);
        }
        for client in 0..CLIENTS {
            self.hear(client);
        }
    }

    fn ask(&mut self, client: usize, ask: &Ask) {
        let (number, key) = (self.time, KEYS[self.time % 2]);
        let value = format!("<{number}>");
        let len = value.len();
        let (request, due) = match ask {
            Ask::Set => (format!("set {key} 0 0 {len}\r\n{value}\r\n"), Due::Write(number)),
            Ask::Add => (format!("add {key} 0 0 {len}\r\n{value}\r\n"), Due::Write(number)),
            Ask::Append => (
                format!("append {key} 0 0 {len}\r\n{value}\r\n"),
                Due::Write(number),
            ),
            Ask::Delete => (format!("delete {key}\r\n"), Due::Write(number)),
            Ask::Get => (format!("get {key}\r\n"), Due::Value(key, number)),
            Ask::Count => ("incr n 1\r\n".to_owned(), Due::Count),
            Ask::Swap => ("gets n\r\n".to_owned(), Due::Version),
            Ask::Look => ("get n\r\n".to_owned(), Due::Number(self.counted)),
        };
        if let Due::Write(number) = due {
            let (began, acknowledged) = (self.time, None);
            self.writes.insert(
                number,
                Write {
                    key,
                    began,
                    acknowledged,
                },
            );
        }
        self.clients[client].due = due;
        self.say(client, request.as_bytes());
    }

    fn say(&mut self, client: usize, bytes: &[u8]) {
        let Client { worker, seat, .. } = self.clients[client];
        self.workers[worker].say(seat, bytes);
    }

    /// Reads a client's reply, and sends the second half of a swap.
    fn hear(&mut self, client: usize) {
        let Client {
            worker,
            seat,
            ref mut due,
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
            Due::Write(number) => match words[0] {
                "STORED" | "DELETED" | "NOT_FOUND" => self.acknowledge(number),
                "NOT_STORED" => drop(self.writes.remove(&number)),
                _ => panic!("{heard:?} to a write"),
            },
            Due::Value(..) | Due::Count | Due::Version | Due::Swap(_) | Due::Number(_)
                if matches!(words[0], "END" | "NOT_FOUND") => {}
            Due::Value(key, asked) => self.check_value(key, asked, words[4]),
            Due::Count => self.count(words[0].parse().unwrap()),
            Due::Version => {
                let next = words[5].parse::<u64>().unwrap() + 1;
                self.clients[client].due = Due::Swap(next);
                let swap = format!("cas n 0 0 {} {}\r\n{next}\r\n", next.to_string().len(), words[4]);
                self.say(client, swap.as_bytes());
            }
            Due::Swap(next) if heard == "STORED\r\n" => self.count(next),
            Due::Swap(_) => assert_eq!(heard, "EXISTS\r\n"),
            Due::Number(then) => {
                let read = words[4].parse::<u64>().unwrap();
                assert!(read >= then, "{read} was read when {then} had been answered");
            }
        }
    }

    fn acknowledge(&mut self, number: usize) {
        if let Some(write) = self.writes.get_mut(&number) {
            write.acknowledged = Some(self.time);
        }
    }

    /// Asserts that no write began after the end of the one that is read, and was acknowledged before the
    /// read.
    fn check_value(&self, key: &str, asked: usize, value: &str) {
        let number = value
            .rsplit('<')
            .next()
            .and_then(|text| text.trim_end_matches('>').parse().ok());
        let read = number.and_then(|number: usize| self.writes.get(&number));
        let Some(end) = read.expect("a value that was written").acknowledged else {
            // It was refused, or is under way: it may take place at any time.
            return;
        };
        let is_newer = |write: &&Write| {
            write.key == key && write.began > end && write.acknowledged.is_some_and(|at| at < asked)
        };
        let newer = self.writes.values().find(is_newer).map(|write| write.began);
        assert_eq!(
            newer, None,
            "{key}: {value} was read at {asked}, acknowledged at {end}"
        );
    }

    fn count(&mut self, number: u64) {
        assert!(
            self.counts.insert(number),
            "{number} was answered twice: a change was lost"
        );
        self.counted = self.counted.max(number);
    }

    // Links.

    fn connect(&mut self, link: usize) {
        if self.links[link].is_some() {
            return;
        }
        let (peer, keeper) = (peer_of(link), keeper_of(link));
        let role = Role::Keeper {
            worker: (link % WORKERS) as u16,
        };
        let there = self.workers[keeper].link((slot(peer), STAY), role);
        let here = self.workers[link].link((slot(1 - peer), STAY), Role::Coordinator);
        self.links[link] = Some(Ends {
            coordinator: here,
            keeper: there,
        });
    }

    fn cut(&mut self, link: usize) {
        if let Some(ends) = self.links[link].take() {
            self.workers[link].leave(ends.coordinator);
            self.workers[keeper_of(link)].leave(ends.keeper);
        }
    }

    /// Lets bytes that one end has sent arrive at the other.
    fn deliver(&mut self, link: usize, from: End, bytes: usize) {
        let Some(ends) = self.links[link] else {
            return;
        };
        let coordinator = (link, ends.coordinator);
        let keeper = (keeper_of(link), ends.keeper);
        let ((from, here), (to, there)) = match from {
            End::Coordinator => (coordinator, keeper),
            End::Keeper => (keeper, coordinator),
        };
        let sent = &mut self.workers[from].seats[here].heard;
        let taken: Vec<u8> = sent.drain(..bytes.min(sent.len())).collect();
        if !taken.is_empty() {
            self.workers[to].say(there, &taken);
        }
        for (worker, seat) in [coordinator, keeper] {
            assert_eq!(
                self.workers[worker].seats[seat].closed, None,
                "a peer has refused a frame"
            );
        }
    }

    // Servers.

    fn find_lanes(&mut self) {
        for (worker, world) in self.workers.iter().enumerate() {
            for seat in 0..world.seats.len() {
                let is_known = |lane: &Lane| (lane.worker, lane.seat) == (worker, seat);
                if !world.seats[seat].member.is_empty() && !self.lanes.iter().any(is_known) {
                    let seat_there = self.servers[peer_of(worker)].client();
                    let answers = Vec::new();
                    self.lanes.push(Lane {
                        worker,
                        seat,
                        seat_there,
                        answers,
                    });
                }
            }
        }
    }

    fn take(&mut self, lane: usize, bytes: usize) {
        let lane = &mut self.lanes[lane];
        let peer = peer_of(lane.worker);
        if self.frozen && peer == 1 {
            return;
        }
        let heard = &mut self.workers[lane.worker].seats[lane.seat].heard;
        let taken: Vec<u8> = heard.drain(..bytes.min(heard.len())).collect();
        let server = &mut self.servers[peer];
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

    fn repair(&mut self, peer: usize) {
        if self.frozen && peer == 1 {
            return;
        }
        let (workers, lanes) = (&self.workers, &self.lanes);
        // A server that has not taken all bytes of a connection that broke may still execute them.
        let lags = lanes
            .iter()
            .filter(|lane| peer_of(lane.worker) == peer)
            .any(|lane| {
                let seat = &workers[lane.worker].seats[lane.seat];
                seat.closed.is_some() && !seat.heard.is_empty()
            });
        let server = std::slice::from_mut(&mut self.servers[peer]);
        self.controls[peer].repair(server, |_| lags);
    }

    // The end.

    /// Lets everything that is under way arrive and be answered.
    fn settle(&mut self) {
        self.frozen = false;
        for _ in 0..1000 {
            for link in 0..2 * WORKERS {
                self.step(&Step::Connect { link });
                for end in [End::Coordinator, End::Keeper] {
                    self.step(&Step::Deliver {
                        link,
                        end,
                        bytes: usize::MAX,
                    });
                }
                self.step(&Step::Wait {
                    worker: link,
                    millis: 1,
                });
                self.step(&Step::Propose { worker: link });
            }
            self.find_lanes();
            for lane in 0..self.lanes.len() {
                self.take(lane, usize::MAX);
                self.answer(lane);
            }
            for peer in 0..2 {
                for step in [
                    Step::Hear { peer },
                    Step::Hear { peer },
                    Step::Look { peer },
                    Step::Repair { peer },
                ] {
                    self.step(&step);
                }
            }
            let answered = self
                .clients
                .iter()
                .all(|client| matches!(client.due, Due::Nothing));
            let settled = self.controls.iter().all(|control| control.agreement.is_settled());
            if answered && settled && self.workers.iter().all(World::is_idle) {
                return;
            }
        }
        panic!("somebody waits for ever");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn copies_of_two_peers_agree_whatever_the_order_of_frames(steps in prop::collection::vec(step(), 1..300)) {
        let mut play = Play::new();
        for step in &steps {
            play.step(step);
        }
        play.settle();
        check_equal(&mut play.servers, &KEYS);
        prop_assert!(!play.failed);
        let last = format!("VALUE n 0 {}\r\n{}\r\nEND\r\n", play.counted.to_string().len(), play.counted);
        prop_assert_eq!(held(&mut play.servers, "n"), vec![last; 2]);
        prop_assert_eq!(play.counts.len() as u64, play.counted, "none was lost");
    }

    #[test]
    fn copies_of_two_peers_agree_after_broken_channels_and_a_frozen_server(
        steps in prop::collection::vec(failing_step(), 1..400),
    ) {
        let mut play = Play::new();
        for step in &steps {
            play.step(step);
        }
        play.settle();
        check_equal(&mut play.servers, &KEYS);
    }
}

#[test]
fn peer_whose_machine_was_suspended_takes_the_changes_of_the_others() {
    let suspended = 10 * 60 * 1_000_000;
    let mut play = Play::new();
    let (slept, woke) = play.workers.split_at_mut(WORKERS);
    for world in slept {
        // The clock of requests stood still meanwhile, and CLOCK_BOOTTIME did not.
        world.engine.begin_turn(1 + suspended);
    }
    for world in woke {
        world.engine.now += Micros(suspended);
        world.engine.begin_turn(1 + suspended);
    }
    for client in 0..CLIENTS {
        play.step(&Step::Ask {
            client,
            ask: Ask::Set,
        });
        play.settle();
    }
    check_equal(&mut play.servers, &KEYS);
    assert!(!play.failed);
}
