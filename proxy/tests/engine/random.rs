//! With random events in random order, each client gets exactly its own replies, in order.

use proptest::prelude::*;
use proxima_wire::{
    memcache::{self, Command},
    message::Parsed,
};

use crate::world::{World, world};

#[derive(Clone, Debug)]
enum Step {
    Connect,
    /// A client asks for this many keys in one request, one of them large.
    Ask {
        client: prop::sample::Index,
        keys: usize,
        large: bool,
    },
    Store {
        client: prop::sample::Index,
    },
    /// A server sends this many bytes of its pending answers. They were under way before it could be held
    /// back.
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

/// The value of a key, which no other key has. A large one is more than is buffered for a reader that takes
/// nothing.
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
    /// The clients' seats, their requests (the keys, or none for a store), and whether they are still
    /// connected.
    clients: Vec<(usize, Vec<Vec<String>>, bool)>,
    asked: usize,
    /// The answers that each lane's server has not sent yet.
    unsent: Vec<Vec<u8>>,
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
                let pending: Vec<usize> = (0..self.unsent.len())
                    .filter(|&lane| !self.unsent[lane].is_empty())
                    .collect();
                if !pending.is_empty() {
                    let lane = pending[lane.index(pending.len())];
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
                    let (seat, proxima::engine::Endpoint::Client(id)) =
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
        // The request comes in two pieces, split anywhere.
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

    /// Lets the servers read the bytes that they were sent.
    fn serve(&mut self) {
        self.unsent.resize(self.world.seats.len(), Vec::new());
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
                    // Every fifth key is missing.
                    if !key.ends_with('5') {
                        let reply = format!("VALUE {key} 0 {}\r\n{value}\r\n", value.len());
                        self.unsent[lane].extend_from_slice(reply.as_bytes());
                    }
                    self.unsent[lane].extend_from_slice(b"END\r\n");
                } else {
                    self.unsent[lane].extend_from_slice(b"STORED\r\n");
                }
                rest = after;
            }
            self.world.seats[lane].heard = rest.to_vec();
        }
        for (lane, unsent) in self.unsent.iter_mut().enumerate() {
            if self.world.seats[lane].closed.is_some() {
                unsent.clear();
            }
        }
    }

    fn send(&mut self, lane: usize, bytes: usize, before: bool) {
        if before || !self.world.seats[lane].paused {
            let count = bytes.min(self.unsent[lane].len());
            let piece: Vec<u8> = self.unsent[lane].drain(..count).collect();
            self.world.say(lane, &piece);
        }
    }

    /// Lets every server send all of its answers.
    fn settle(&mut self) {
        for at in 0..self.clients.len() {
            self.world.thaw(self.clients[at].0);
        }
        for _ in 0..10_000 {
            self.serve();
            let mut pending = (0..self.unsent.len())
                .filter(|&lane| !self.unsent[lane].is_empty())
                .peekable();
            if pending.peek().is_none() {
                return;
            }
            let read = pending.find(|&lane| !self.world.seats[lane].paused);
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
                    // Bytes may be missing only if the connection was closed, and then they are the beginning
                    // of what was due.
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
        assert!(!self.world.engine.servers.has_paused_lanes());
    }
}

fn head(text: &str) -> &str {
    &text[..text.len().min(200)]
}

/// Checks the reply for these keys, or for a store if there are none, and returns the bytes behind it.
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
            // Wrong bytes are a failure even on a connection that was closed later.
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
            let mut play = Play { world: world(route), clients: Vec::new(), asked: 0, unsent: Vec::new() };
            for step in &steps {
                play.step(step.clone());
            }
            play.settle();
            play.check();
            prop_assert!(play.world.is_idle());
        }
    }
}
