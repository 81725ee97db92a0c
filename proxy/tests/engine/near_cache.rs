//! Two workers share a near cache, and their requests reach a server in any order. Connections break, and
//! their bytes are executed later, or never; clients leave. No client reads what is older than a change that
//! was acknowledged before its read began, and at rest nothing is left of what was under way.

use std::{path::Path, rc::Rc, sync::Arc, time::Duration};

use proptest::prelude::*;
use proxima::{
    config,
    copies::KeyLocks,
    near::{Near, Rules},
    route::near_rules,
};

use crate::world::{World, keeping, worker_of, world_of};

const CLIENTS: usize = 8;
const KEYS: usize = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Speech {
    Memcached,
    Redis,
}

#[derive(Clone, Copy, Debug)]
enum Ask {
    Read {
        other_form: bool,
    },
    Write,
    Delete,
    Flush,
    /// A change without an answer: memcached alone.
    Unanswered,
    /// The beginning, a command and the end of a transaction, one after the other: Redis alone.
    Transaction {
        watches: bool,
        commits: bool,
    },
    /// The same in one piece.
    Whole,
}

#[derive(Clone, Debug)]
enum Step {
    Ask {
        client: usize,
        key: usize,
        ask: Ask,
    },
    /// A server takes this many requests from a connection.
    Take {
        lane: prop::sample::Index,
        requests: usize,
    },
    /// A server's answers arrive.
    Answer {
        lane: prop::sample::Index,
    },
    Wait {
        worker: usize,
    },
    /// A connection to the server breaks. Its bytes are lost, or the server executes them later.
    Break {
        lane: prop::sample::Index,
        lost: bool,
    },
    /// A client leaves, and another one comes.
    Leave {
        client: usize,
        resets: bool,
    },
}

fn ask() -> impl Strategy<Value = Ask> {
    let flags = (any::<bool>(), prop::bool::weighted(0.8));
    prop_oneof![
        10 => any::<bool>().prop_map(|other_form| Ask::Read { other_form }),
        5 => Just(Ask::Write),
        1 => Just(Ask::Delete),
        1 => Just(Ask::Flush),
        1 => Just(Ask::Unanswered),
        5 => flags.prop_map(|(watches, commits)| Ask::Transaction { watches, commits }),
        1 => Just(Ask::Whole),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let any_lane = || any::<prop::sample::Index>();
    prop_oneof![
        10 => (0..CLIENTS, 0..KEYS, ask()).prop_map(|(client, key, ask)| Step::Ask { client, key, ask }),
        12 => (any_lane(), prop_oneof![Just(1), Just(usize::MAX)])
            .prop_map(|(lane, requests)| Step::Take { lane, requests }),
        12 => any_lane().prop_map(|lane| Step::Answer { lane }),
        3 => (0..2_usize).prop_map(|worker| Step::Wait { worker }),
        1 => (any_lane(), any::<bool>()).prop_map(|(lane, lost)| Step::Break { lane, lost }),
        1 => (0..CLIENTS, any::<bool>()).prop_map(|(client, resets)| Step::Leave { client, resets }),
    ]
}

/// What a key has at the server: a value, or nothing.
type Held = Option<u64>;

/// What a client waits for.
#[derive(Clone, Debug)]
enum Due {
    Nothing,
    /// The key, and since when its value may be read: the place in what it had.
    Read(usize, usize),
    /// A change of these keys to this, and where they were when it was sent.
    Change(Vec<usize>, Held, Vec<usize>),
    /// An answer that says nothing; this is sent then.
    Next,
}

struct Client {
    worker: usize,
    seat: usize,
    due: Due,
    /// What is sent when the answer has come.
    next: Vec<(String, Due)>,
}

/// A connection of a worker to the server.
struct Lane {
    worker: usize,
    seat: usize,
    seat_there: usize,
    answers: Vec<u8>,
    /// Commands of a transaction that are queued.
    queued: Option<Vec<String>>,
    /// Keys that are watched, and what they had changed by then.
    watched: Vec<(usize, usize)>,
}

struct Play {
    speech: Speech,
    near: Arc<Near>,
    workers: [World; 2],
    server: World,
    /// A connection by which the test itself looks.
    eye: usize,
    clients: Vec<Client>,
    lanes: Vec<Lane>,
    /// All that each key has had at the server, in order.
    history: [Vec<Held>; KEYS],
    /// The place of the newest acknowledged change in it, and of the newest that was read.
    floor: [usize; KEYS],
    asked: u64,
    /// How often a read was answered without its server.
    hits: u64,
}

const MEMCACHED: &str = "pools: {p: {servers: [{address: 10.0.0.1:1, name: a}], eject: {failures: 0}, timeout: 5s}}\n\
     routes: {kept: {near: {child: p, rules: [{name: r, ttl: 8ms, stale: 4ms, negative: 8ms}]}}}\n\
     listeners: [{address: \"127.0.0.1:1\", route: kept}, {address: \"127.0.0.1:2\", route: p}]\n";

fn yaml(speech: Speech) -> String {
    match speech {
        Speech::Memcached => MEMCACHED.to_owned(),
        Speech::Redis => MEMCACHED
            .replace("p: {servers", "p: {protocol: redis, servers")
            .replace("{address: \"", "{protocol: redis, address: \""),
    }
}

/// A request of Redis.
fn words(text: &str) -> String {
    let words: Vec<&str> = text.split(' ').collect();
    let word = |word: &&str| format!("${}\r\n{word}\r\n", word.len());
    let all: String = words.iter().map(word).collect();
    format!("*{}\r\n{all}", words.len())
}

/// The length of the first request, with its words.
fn first(speech: Speech, bytes: &str) -> Option<(usize, String)> {
    let line = bytes.find("\r\n")?;
    match speech {
        Speech::Memcached => {
            let head = &bytes[..line];
            let end = match head.starts_with("set ") {
                true => line + 2 + bytes[line + 2..].find("\r\n")? + 2,
                false => line + 2,
            };
            (bytes.len() >= end).then(|| (end, head.to_owned()))
        }
        Speech::Redis => {
            let count: usize = bytes[1..line].parse().unwrap();
            let (mut at, mut all) = (line + 2, Vec::new());
            for _ in 0..count {
                let head = at + bytes.get(at..)?.find("\r\n")?;
                let len: usize = bytes[at + 1..head].parse().unwrap();
                all.push(bytes.get(head + 2..head + 2 + len)?);
                at = head + 4 + len;
            }
            (bytes.len() >= at).then(|| (at, all.join(" ")))
        }
    }
}

impl Play {
    fn new(speech: Speech) -> Self {
        let yaml = yaml(speech);
        let config = config::parse(&yaml, Path::new("test")).unwrap().config;
        let near = Arc::new(Near::new(16 << 20, [1, 2, 3, 4]));
        let rules = near_rules(&config, &Rules::default(), &config);
        let locks = Arc::new(KeyLocks::new(2, [1, 2, 3, 4]));
        let mut workers = [0, 1].map(|worker| worker_of(&config, worker, Arc::clone(&locks)));
        for worker in &mut workers {
            let kept = Some((Arc::clone(&near), rules.clone()));
            worker.engine.tree = Rc::new(keeping(&config, kept).unwrap());
            worker.engine.follow_near();
        }
        let mut server = match speech {
            Speech::Memcached => world_of("listeners: [{address: \"127.0.0.1:1\", route: embedded}]\n"),
            Speech::Redis => {
                world_of("listeners: [{address: \"127.0.0.1:1\", protocol: redis, route: embedded}]\n")
            }
        };
        let eye = server.client();
        let mut play = Self {
            speech,
            near,
            workers,
            server,
            eye,
            clients: Vec::new(),
            lanes: Vec::new(),
            history: [vec![None], vec![None]],
            floor: [0; KEYS],
            asked: 0,
            hits: 0,
        };
        play.clients = (0..CLIENTS).map(|number| play.newcomer(number)).collect();
        play
    }

    /// Three of four clients come where replies are kept.
    fn newcomer(&mut self, number: usize) -> Client {
        let worker = number % 2;
        let listener = u16::from(number % 4 == 3);
        Client {
            worker,
            seat: self.workers[worker].client_of(listener),
            due: Due::Nothing,
            next: Vec::new(),
        }
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Ask { client, key, ask } => {
                if matches!(self.clients[client].due, Due::Nothing) {
                    self.ask(client, key, ask);
                }
            }
            Step::Take { lane, requests } => {
                self.find_lanes();
                if !self.lanes.is_empty() {
                    self.take(lane.index(self.lanes.len()), requests);
                }
            }
            Step::Answer { lane } => {
                if !self.lanes.is_empty() {
                    self.answer(lane.index(self.lanes.len()));
                }
            }
            Step::Wait { worker } => self.workers[worker].pass(Duration::from_millis(1)),
            Step::Break { lane, lost } => {
                self.find_lanes();
                if !self.lanes.is_empty() {
                    self.break_off(lane.index(self.lanes.len()), lost);
                }
            }
            Step::Leave { client, resets } => {
                let Client { worker, seat, .. } = self.clients[client];
                match resets {
                    true => self.workers[worker].reset(seat),
                    false => self.workers[worker].leave(seat),
                }
                self.clients[client] = self.newcomer(client);
            }
        }
        for client in 0..CLIENTS {
            self.hear(client);
            // A client in a transaction is closed when its connection to the server is lost.
            let Client { worker, seat, .. } = self.clients[client];
            if self.workers[worker].seats[seat].closed.is_some() {
                self.clients[client] = self.newcomer(client);
            }
        }
    }

    fn now(&self, key: usize) -> usize {
        self.history[key].len() - 1
    }

    fn ask(&mut self, client: usize, key: usize, ask: Ask) {
        self.asked += 1;
        let (value, now) = (self.asked, self.now(key));
        let set = match self.speech {
            Speech::Memcached => format!("set k{key} 0 0 {}\r\n{value}\r\n", value.to_string().len()),
            Speech::Redis => words(&format!("SET k{key} {value}")),
        };
        let written = |keys: Vec<usize>, held| {
            let from = vec![now; keys.len()];
            Due::Change(keys, held, from)
        };
        let all = || {
            Due::Change(
                (0..KEYS).collect(),
                None,
                (0..KEYS).map(|key| self.now(key)).collect(),
            )
        };
        let (request, due) = match (self.speech, ask) {
            (_, Ask::Write) => (set, written(vec![key], Some(value))),
            (Speech::Memcached, Ask::Read { other_form }) => {
                let form = if other_form {
                    format!("mg k{key} v O{value}")
                } else {
                    format!("get k{key}")
                };
                (format!("{form}\r\n"), Due::Read(key, self.floor[key]))
            }
            (Speech::Redis, Ask::Read { other_form }) => {
                let form = if other_form { "GETRANGE k# 0 -1" } else { "GET k#" };
                (
                    words(&form.replace('#', &key.to_string())),
                    Due::Read(key, self.floor[key]),
                )
            }
            (Speech::Memcached, Ask::Delete) => (format!("delete k{key}\r\n"), written(vec![key], None)),
            (Speech::Redis, Ask::Delete) => (words(&format!("DEL k{key}")), written(vec![key], None)),
            (Speech::Memcached, Ask::Flush) => ("flush_all\r\n".to_owned(), all()),
            (Speech::Redis, Ask::Flush) => (words("FLUSHALL"), all()),
            (Speech::Memcached, _) => {
                // The `mn` behind it is answered at once, and does not acknowledge it.
                let silent = set.replacen("\r\n", " noreply\r\n", 1);
                (format!("{silent}mn\r\n"), Due::Next)
            }
            (Speech::Redis, Ask::Whole | Ask::Unanswered) => {
                let whole = [words("MULTI"), set, words("EXEC")].concat();
                (whole, written(vec![key], Some(value)))
            }
            (Speech::Redis, Ask::Transaction { watches, commits }) => {
                let silent = || Due::Next;
                let end = match commits {
                    true => (words("EXEC"), written(vec![key], Some(value))),
                    false => (words("DISCARD"), silent()),
                };
                let mut all = vec![(words("MULTI"), silent()), (set, silent()), end];
                if watches {
                    // What it reads may be as old as when it began to watch, and no older.
                    let read = (words(&format!("GET k{key}")), Due::Read(key, self.floor[key]));
                    all.splice(..0, [(words(&format!("WATCH k{key}")), silent()), read]);
                }
                let (begin, due) = all.remove(0);
                self.clients[client].next = all;
                (begin, due)
            }
        };
        self.say(client, &request, due);
    }

    fn say(&mut self, client: usize, request: &str, mut due: Due) {
        // A later part of what a client asks begins now.
        match &mut due {
            Due::Read(key, floor) => *floor = self.floor[*key],
            Due::Change(keys, _, from) => *from = keys.iter().map(|&key| self.now(key)).collect(),
            _ => {}
        }
        let Client { worker, seat, .. } = self.clients[client];
        let is_read = matches!(due, Due::Read(..));
        self.clients[client].due = due;
        self.workers[worker].say(seat, request.as_bytes());
        self.hits += u64::from(is_read && !self.workers[worker].seats[seat].heard.is_empty());
    }

    /// Reads a client's reply, and sends what it has to send next.
    fn hear(&mut self, client: usize) {
        while !self.workers[self.clients[client].worker].seats[self.clients[client].seat]
            .heard
            .is_empty()
        {
            let Client { worker, seat, .. } = self.clients[client];
            let heard = self.workers[worker].heard(seat);
            let due = std::mem::replace(&mut self.clients[client].due, Due::Nothing);
            let is_error = heard.starts_with("SERVER_ERROR") || heard.starts_with('-');
            let is_aborted = heard.starts_with("*-1");
            match due {
                _ if is_error => {
                    // Where it stands in a transaction is nobody's knowledge now: another client comes.
                    if !self.clients[client].next.is_empty() {
                        self.workers[worker].leave(seat);
                        self.clients[client] = self.newcomer(client);
                    }
                    return;
                }
                Due::Nothing => panic!("nobody asked for {heard:?}"),
                Due::Read(key, floor) => self.check(key, floor, &heard),
                Due::Change(..) if is_aborted => {}
                Due::Change(keys, held, from) => {
                    for (key, from) in keys.into_iter().zip(from) {
                        self.acknowledge(key, held, from);
                    }
                }
                Due::Next => {}
            }
            if self.clients[client].next.is_empty() {
                return;
            }
            let (request, due) = self.clients[client].next.remove(0);
            self.say(client, &request, due);
        }
    }

    /// A change was answered: it is the first place behind `from` where the key has this.
    fn acknowledge(&mut self, key: usize, held: Held, from: usize) {
        let found = self.history[key][from..].iter().position(|&had| had == held);
        let place = from + found.unwrap_or_else(|| panic!("k{key} never was {held:?}"));
        self.floor[key] = self.floor[key].max(place);
    }

    fn check(&mut self, key: usize, floor: usize, heard: &str) {
        let mut lines = heard.lines();
        let head = lines.next().and_then(|head| head.split(' ').next());
        let held: Held = match head.unwrap() {
            "END" | "EN" | "$-1" | "$0" => None,
            _ => {
                let value = lines.next().and_then(|line| line.parse().ok());
                Some(value.unwrap_or_else(|| panic!("{heard:?} is no value")))
            }
        };
        let found = self.history[key][floor..].iter().position(|&had| had == held);
        assert!(
            found.is_some(),
            "k{key} is read as {held:?}, which is older than {:?}: {:?}",
            self.history[key][floor],
            self.history[key]
        );
        // What anybody has read, nobody reads an older value than. Where nothing was read, nobody knows when.
        if held.is_some() {
            self.floor[key] = self.floor[key].max(floor + found.unwrap());
        }
    }

    /// New connections.
    fn find_lanes(&mut self) {
        for (worker, world) in self.workers.iter().enumerate() {
            for seat in 0..world.seats.len() {
                let mut known = self.lanes.iter();
                if world.seats[seat].member == "a"
                    && !known.any(|lane| (lane.worker, lane.seat) == (worker, seat))
                {
                    self.lanes.push(Lane {
                        worker,
                        seat,
                        seat_there: self.server.client(),
                        answers: Vec::new(),
                        queued: None,
                        watched: Vec::new(),
                    });
                }
            }
        }
    }

    fn take(&mut self, number: usize, most: usize) {
        for _ in 0..most.min(10_000) {
            let Lane { worker, seat, .. } = self.lanes[number];
            let heard = &self.workers[worker].seats[seat].heard;
            let text = std::str::from_utf8(heard).unwrap();
            let Some((end, line)) = first(self.speech, text) else {
                return;
            };
            let request: Vec<u8> = self.workers[worker].seats[seat].heard.drain(..end).collect();
            let answer = match self.speech {
                Speech::Memcached => self.execute(number, &request),
                Speech::Redis => self.transact(number, &request, &line),
            };
            self.lanes[number].answers.extend(answer);
        }
    }

    /// The real store executes a request, and what its keys have then is noted.
    fn execute(&mut self, number: usize, request: &[u8]) -> Vec<u8> {
        let there = self.lanes[number].seat_there;
        self.server.say(there, request);
        let answer = std::mem::take(&mut self.server.seats[there].heard);
        for key in 0..KEYS {
            let held = self.held(key);
            if *self.history[key].last().unwrap() != held {
                self.history[key].push(held);
            }
        }
        answer
    }

    fn held(&mut self, key: usize) -> Held {
        let (request, none) = match self.speech {
            Speech::Memcached => (format!("get k{key}\r\n"), "END"),
            Speech::Redis => (words(&format!("GET k{key}")), "$-1"),
        };
        self.server.say(self.eye, request.as_bytes());
        let heard = self.server.heard(self.eye);
        let mut lines = heard.lines();
        (lines.next() != Some(none)).then(|| lines.next().unwrap().parse().unwrap())
    }

    /// Redis' transactions around the real store, which has none.
    fn transact(&mut self, number: usize, request: &[u8], line: &str) -> Vec<u8> {
        let lane = &mut self.lanes[number];
        let name = line.split(' ').next().unwrap().to_ascii_uppercase();
        match (&*name, &mut lane.queued) {
            ("MULTI", queued @ None) => *queued = Some(Vec::new()),
            ("WATCH", None) => {
                let key: usize = line[line.len() - 1..].parse().unwrap();
                lane.watched.push((key, self.history[key].len()));
            }
            ("UNWATCH", None) => lane.watched.clear(),
            ("DISCARD", queued @ Some(_)) => {
                *queued = None;
                lane.watched.clear();
            }
            ("EXEC", queued @ Some(_)) => {
                let queued = queued.take().unwrap();
                let watched = std::mem::take(&mut lane.watched);
                if watched.iter().any(|&(key, len)| self.history[key].len() != len) {
                    return b"*-1\r\n".to_vec();
                }
                let mut answer = format!("*{}\r\n", queued.len()).into_bytes();
                for request in queued {
                    answer.extend(self.execute(number, request.as_bytes()));
                }
                return answer;
            }
            (_, Some(queued)) => {
                queued.push(std::str::from_utf8(request).unwrap().to_owned());
                return b"+QUEUED\r\n".to_vec();
            }
            _ => return self.execute(number, request),
        }
        b"+OK\r\n".to_vec()
    }

    fn answer(&mut self, lane: usize) {
        let lane = &mut self.lanes[lane];
        let answers = std::mem::take(&mut lane.answers);
        let worker = &mut self.workers[lane.worker];
        if !answers.is_empty() && worker.seats[lane.seat].closed.is_none() {
            worker.say(lane.seat, &answers);
        }
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

    /// Lets everything that is under way arrive and be answered.
    fn settle(&mut self) {
        for _ in 0..1000 {
            self.find_lanes();
            for lane in 0..self.lanes.len() {
                self.take(lane, usize::MAX);
                self.answer(lane);
            }
            for worker in 0..2 {
                self.step(&Step::Wait { worker });
            }
            if self
                .clients
                .iter()
                .all(|client| matches!(client.due, Due::Nothing))
            {
                return;
            }
        }
        let waiting: Vec<_> = self.clients.iter().map(|client| &client.due).collect();
        panic!("somebody waits for ever: {waiting:?}");
    }

    /// Asserts that nothing is left of what was under way.
    fn check_rest(&mut self) {
        for worker in &mut self.workers {
            worker.pass(Duration::from_secs(15));
        }
        for worker in &self.workers {
            assert!(worker.is_idle(), "a flight is left");
            assert_eq!(worker.engine.servers.in_flight(), 0);
        }
        assert_eq!(self.near.words.open(), 0, "a change does not end");
    }
}

fn play(speech: Speech, steps: &[Step]) -> u64 {
    let mut play = Play::new(speech);
    for step in steps {
        play.step(step);
    }
    play.settle();
    play.check_rest();
    play.hits
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn no_read_is_older_than_what_was_acknowledged_before_it(steps in prop::collection::vec(step(), 1..300)) {
        for speech in [Speech::Memcached, Speech::Redis] {
            play(speech, &steps);
        }
    }
}

/// The random orders above would prove nothing if no reply were ever kept.
#[test]
fn kept_replies_answer_where_nothing_changes() {
    let read = |client| Step::Ask {
        client,
        key: 0,
        ask: Ask::Read { other_form: false },
    };
    for speech in [Speech::Memcached, Speech::Redis] {
        let mut play = Play::new(speech);
        play.step(&Step::Ask {
            client: 0,
            key: 0,
            ask: Ask::Write,
        });
        play.settle();
        play.step(&read(0));
        play.settle();
        for client in [0, 1, 2, 4, 5, 6] {
            play.step(&read(client));
        }
        assert_eq!(play.hits, 6, "{speech:?}: both workers answer at once");
        play.check_rest();
    }
}
