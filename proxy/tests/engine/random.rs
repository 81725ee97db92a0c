//! Whatever happens in whatever order, each client gets exactly its own replies, in order.

use proptest::prelude::*;
use proxima_wire::{
    memcache::{self, Command},
    message::Parsed,
};

use crate::world::{World, world};

#[derive(Clone, Debug)]
enum Step {
    Connect,
    /// A client asks for so many keys in one request, one of them large.
    Ask {
        client: prop::sample::Index,
        keys: usize,
        large: bool,
    },
    Store {
        client: prop::sample::Index,
    },
    /// A server answers with so many bytes of what it owes; they were on their way before it could be held back.
    Answer {
        lane: prop::sample::Index,
        bytes: usize,
        before: bool,
    },
    Break {
        lane: prop::sample::Index,
    },
    Leave {
        client: prop::sample::Index,
    },
    Freeze {
        client: prop::sample::Index,
    },
    Thaw {
        client: prop::sample::Index,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let any = || any::<prop::sample::Index>();
    prop_oneof![
        2 => Just(Step::Connect),
        8 => (any(), 1..5_usize, prop::bool::weighted(0.1))
            .prop_map(|(client, keys, large)| Step::Ask { client, keys, large }),
        4 => any().prop_map(|client| Step::Store { client }),
        12 => (any(), prop_oneof![1..40_usize, 1..500_000_usize], prop::bool::ANY)
            .prop_map(|(lane, bytes, before)| Step::Answer { lane, bytes, before }),
        1 => any().prop_map(|lane| Step::Break { lane }),
        1 => any().prop_map(|client| Step::Leave { client }),
        1 => any().prop_map(|client| Step::Freeze { client }),
        1 => any().prop_map(|client| Step::Thaw { client }),
    ]
}

/// The value of a key: nobody else's. A large one is more than is kept for a reader who takes nothing.
fn value(key: &str) -> String {
    let small = format!("<{key}>");
    if key.ends_with('L') {
        small.repeat(700_000 / small.len())
    } else {
        small
    }
}

struct Play {
    world: World,
    /// Seats of clients, what each has asked (the keys, none for a store), and whether it is still there.
    clients: Vec<(usize, Vec<Vec<String>>, bool)>,
    asked: usize,
    /// What each lane's server owes and has not sent.
    owed: Vec<Vec<u8>>,
}

impl Play {
    fn step(&mut self, step: Step) {
        match step {
            Step::Connect => {
                let seat = self.world.client();
                self.clients.push((seat, Vec::new(), true));
            }
            Step::Ask { client, keys, large } => {
                let first = self.asked;
                self.asked += keys;
                let keys: Vec<String> = (first..first + keys)
                    .map(|n| format!("k{n}{}", if large && n == first { "L" } else { "" }))
                    .collect();
                let request = format!("get {}\r\n", keys.join(" "));
                self.ask(client, keys, &request);
            }
            Step::Store { client } => {
                self.asked += 1;
                let request = format!("set k{} 0 0 3\r\nabc\r\n", self.asked);
                self.ask(client, Vec::new(), &request);
            }
            Step::Answer { lane, bytes, before } => {
                self.serve();
                let owing: Vec<usize> = (0..self.owed.len())
                    .filter(|&lane| !self.owed[lane].is_empty())
                    .collect();
                if !owing.is_empty() {
                    let lane = owing[lane.index(owing.len())];
                    self.send(lane, bytes, before);
                }
            }
            Step::Break { lane } => {
                let open: Vec<usize> = self.open_lanes();
                if !open.is_empty() {
                    let lane = open[lane.index(open.len())];
                    self.world.leave(lane);
                }
            }
            Step::Leave { client } => {
                if let Some(at) = self.pick(client) {
                    self.clients[at].2 = false;
                    let (seat, proxima::engine::Peer::Client(id)) =
                        (self.clients[at].0, self.world.seats[self.clients[at].0].peer)
                    else {
                        return;
                    };
                    if seat % 2 == 0 {
                        self.world.engine.client_failed(id);
                        self.world.turn();
                    } else {
                        self.world.leave(seat);
                    }
                }
            }
            Step::Freeze { client } => {
                if let Some(at) = self.pick(client) {
                    self.world.seats[self.clients[at].0].frozen = true;
                }
            }
            Step::Thaw { client } => {
                if let Some(at) = self.pick(client) {
                    self.world.thaw(self.clients[at].0);
                }
            }
        }
    }

    fn pick(&self, client: prop::sample::Index) -> Option<usize> {
        let there: Vec<usize> = (0..self.clients.len()).filter(|&at| self.clients[at].2).collect();
        (!there.is_empty()).then(|| there[client.index(there.len())])
    }

    fn ask(&mut self, client: prop::sample::Index, keys: Vec<String>, request: &str) {
        let Some(at) = self.pick(client) else { return };
        let seat = self.clients[at].0;
        self.clients[at].1.push(keys);
        // In two pieces, somewhere.
        let (head, tail) = request.as_bytes().split_at(self.asked % request.len());
        self.world.say(seat, head);
        self.world.say(seat, tail);
    }

    fn open_lanes(&self) -> Vec<usize> {
        let lanes = self.world.seats.iter().enumerate();
        lanes
            .filter(|(_, seat)| !seat.member.is_empty() && seat.closed.is_none())
            .map(|(lane, _)| lane)
            .collect()
    }

    /// The servers look at what they were sent.
    fn serve(&mut self) {
        self.owed.resize(self.world.seats.len(), Vec::new());
        for lane in self.open_lanes() {
            let heard = std::mem::take(&mut self.world.seats[lane].heard);
            let mut rest = &heard[..];
            while let Parsed::Head(request) = memcache::request(rest, &memcache::Limits::default()) {
                let Some((message, after)) = rest.split_at_checked(request.len() as usize) else {
                    break;
                };
                if request.command == Command::Get as u16 {
                    let key = std::str::from_utf8(request.key.of(message)).unwrap();
                    let value = value(key);
                    // Every fifth key is not there.
                    if !key.ends_with('5') {
                        let reply = format!("VALUE {key} 0 {}\r\n{value}\r\n", value.len());
                        self.owed[lane].extend_from_slice(reply.as_bytes());
                    }
                    self.owed[lane].extend_from_slice(b"END\r\n");
                } else {
                    self.owed[lane].extend_from_slice(b"STORED\r\n");
                }
                rest = after;
            }
            self.world.seats[lane].heard = rest.to_vec();
        }
        for (lane, owed) in self.owed.iter_mut().enumerate() {
            if self.world.seats[lane].closed.is_some() {
                owed.clear();
            }
        }
    }

    fn send(&mut self, lane: usize, bytes: usize, before: bool) {
        if before || !self.world.seats[lane].paused {
            let count = bytes.min(self.owed[lane].len());
            let piece: Vec<u8> = self.owed[lane].drain(..count).collect();
            self.world.say(lane, &piece);
        }
    }

    /// Everybody says all he has to say.
    fn settle(&mut self) {
        for at in 0..self.clients.len() {
            self.world.thaw(self.clients[at].0);
        }
        for _ in 0..10_000 {
            self.serve();
            let mut owing = (0..self.owed.len())
                .filter(|&lane| !self.owed[lane].is_empty())
                .peekable();
            if owing.peek().is_none() {
                return;
            }
            let read = owing.find(|&lane| !self.world.seats[lane].paused);
            let lane = read.expect("no server is read from, and nobody frees them");
            self.send(lane, 100_000, false);
        }
        panic!("the servers never come to an end");
    }

    fn check(&mut self) {
        for (seat, asked, there) in std::mem::take(&mut self.clients) {
            let heard = self.world.heard(seat);
            let closed = self.world.seats[seat].closed.is_some();
            let mut rest = heard.as_str();
            for keys in &asked {
                match expect(rest, keys) {
                    Ok(after) => rest = after,
                    // Cut off only where the connection was: and then it is a beginning of what was due.
                    Err(why) => {
                        assert!(
                            closed || !there,
                            "client {seat}, {keys:?}: {why}, heard {:?}",
                            head(rest)
                        );
                        rest = "";
                        break;
                    }
                }
            }
            assert_eq!(rest, "", "client {seat} heard more than it asked for");
        }
        assert_eq!(self.world.engine.servers.in_flight(), 0);
        assert!(!self.world.engine.servers.holds_lanes());
    }
}

fn head(text: &str) -> &str {
    &text[..text.len().min(200)]
}

/// What follows the reply for these keys (none: a store).
fn expect<'a>(heard: &'a str, keys: &[String]) -> Result<&'a str, String> {
    let after_error = |text: &'a str| {
        let (line, rest) = text.strip_prefix("SERVER_ERROR ")?.split_once("\r\n")?;
        line.ends_with(": Connection closed by the server")
            .then_some(rest)
    };
    if keys.is_empty() {
        let found = heard.strip_prefix("STORED\r\n").or_else(|| after_error(heard));
        return found.ok_or_else(|| "no reply to a store".into());
    }
    let mut rest = heard;
    for key in keys {
        let value = value(key);
        let block = format!("VALUE {key} 0 {}\r\n{value}\r\n", value.len());
        if let Some(after) = after_error(rest) {
            return Ok(after);
        } else if key.ends_with('5') {
            continue;
        } else if let Some(after) = rest.strip_prefix(block.as_str()) {
            rest = after;
        } else if block.starts_with(rest) {
            return Err("cut off".into());
        } else {
            // Wrong bytes are wrong even on a connection that was closed later.
            panic!("{key}: heard {:?}", head(rest));
        }
    }
    rest.strip_prefix("END\r\n")
        .or_else(|| after_error(rest))
        .ok_or_else(|| "no end".into())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn random_traffic_gives_each_client_exactly_its_own_replies(steps in prop::collection::vec(step(), 1..120)) {
        for route in ["p", "{failover: p}", "{all_fastest: p}"] {
            let mut play = Play { world: world(route), clients: Vec::new(), asked: 0, owed: Vec::new() };
            for step in &steps {
                play.step(step.clone());
            }
            play.settle();
            play.check();
            prop_assert!(play.world.is_idle());
        }
    }
}
