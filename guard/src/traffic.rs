//! Recording and replay of traffic. The requests of clients and the replies of servers are recorded once, and
//! fed to an engine again and again with no other work around it. There are four servers behind ketama, one
//! worker, and no sockets.

// Tests include this file by its path, where the usual place of the module would be another one.
#[path = "words.rs"]
mod words;

use std::{
    collections::BTreeMap,
    net::{IpAddr, SocketAddr},
    path::Path,
    rc::Rc,
    sync::Arc,
};

use proxima::{
    client::Register,
    config,
    copies::{KeyLocks, Membership},
    embedded::store::{self, Store},
    engine::{self, ClientId, Engine, Facts, LaneId},
    fleet::{Lease, Peer, Slot, Stamp, Stay, View, keeper::Shared},
    members::{ClientSource, Localities, OwnLocation, Registry},
    micros::Micros,
    near::{Near, Rules},
    protocol::Protocols,
    route::{Compiler, near_rules},
};
use words::Words;

/// The traffic of a scenario's clients.
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    words: Words,
    clients: usize,
    /// Requests of each client in a round.
    pipeline: usize,
    /// Keys of a get.
    keys: usize,
    /// Bytes of a value.
    value: usize,
    sets: Sets,
    route: Route,
}

/// The requests that set keys.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sets {
    None,
    /// One of eleven requests.
    Some,
    /// All of every other round: a key is read, and set in the next round.
    EveryOtherRound,
}

/// The route that the requests enter.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Route {
    /// A pool of four servers, by the hash of the key.
    Pool,
    /// Each client reads from the server on its own NUMA node, as reported by the node agent.
    Near,
    /// A replicated pool of four servers.
    Copies,
    /// A replicated pool of one server.
    OneCopy,
    /// The own copy of a peer of a fleet.
    Fleet,
    /// The store in this process.
    Embedded,
    /// Replies of the pool that are kept.
    NearCache,
    /// The same, but their time is over when they are asked for again.
    NearCacheMisses,
}

/// A hundred clients with one request at a time: gets and sets, 10:1, of one key.
const ONE_AT_A_TIME: Scenario = Scenario {
    name: "1-at-a-time",
    words: Words::Memcached,
    clients: 100,
    pipeline: 1,
    keys: 1,
    value: 400,
    sets: Sets::Some,
    route: Route::Pool,
};

/// All scenarios: gets and sets, 10:1 or in turn, or gets alone, with keys of 40 bytes.
pub(crate) const SCENARIOS: [Scenario; 18] = [
    ONE_AT_A_TIME,
    Scenario {
        name: "pipelines-of-16",
        clients: 10,
        pipeline: 16,
        ..ONE_AT_A_TIME
    },
    Scenario {
        name: "gets-of-8-keys",
        clients: 10,
        keys: 8,
        ..ONE_AT_A_TIME
    },
    Scenario {
        name: "values-of-32-KiB",
        clients: 10,
        value: 32 * 1024,
        ..ONE_AT_A_TIME
    },
    Scenario {
        name: "near",
        route: Route::Near,
        ..ONE_AT_A_TIME
    },
    Scenario {
        name: "copies",
        route: Route::Copies,
        ..ONE_AT_A_TIME
    },
    Scenario {
        name: "embedded",
        route: Route::Embedded,
        ..ONE_AT_A_TIME
    },
    Scenario {
        name: "redis-1-at-a-time",
        words: Words::Redis,
        ..ONE_AT_A_TIME
    },
    Scenario {
        name: "redis-pipelines-of-16",
        words: Words::Redis,
        clients: 10,
        pipeline: 16,
        ..ONE_AT_A_TIME
    },
    Scenario {
        name: "redis-embedded",
        words: Words::Redis,
        route: Route::Embedded,
        ..ONE_AT_A_TIME
    },
    Scenario {
        name: "reads-of-one-copy",
        sets: Sets::None,
        route: Route::OneCopy,
        ..ONE_AT_A_TIME
    },
    Scenario {
        name: "reads-in-a-fleet",
        sets: Sets::None,
        route: Route::Fleet,
        ..ONE_AT_A_TIME
    },
    Scenario {
        name: "near-cache",
        sets: Sets::None,
        route: Route::NearCache,
        ..ONE_AT_A_TIME
    },
    Scenario {
        name: "redis-near-cache",
        words: Words::Redis,
        sets: Sets::None,
        route: Route::NearCache,
        ..ONE_AT_A_TIME
    },
    Scenario {
        name: "near-cache-misses",
        sets: Sets::None,
        route: Route::NearCacheMisses,
        ..ONE_AT_A_TIME
    },
    Scenario {
        name: "redis-near-cache-misses",
        words: Words::Redis,
        sets: Sets::None,
        route: Route::NearCacheMisses,
        ..ONE_AT_A_TIME
    },
    Scenario {
        name: "near-cache-writes",
        sets: Sets::EveryOtherRound,
        route: Route::NearCacheMisses,
        ..ONE_AT_A_TIME
    },
    Scenario {
        name: "redis-near-cache-writes",
        words: Words::Redis,
        sets: Sets::EveryOtherRound,
        route: Route::NearCacheMisses,
        ..ONE_AT_A_TIME
    },
];

/// The number of recorded rounds. Each client sets once in this many requests.
const ROUNDS: usize = 11;

/// The bytes that are fed to the engine in one round.
struct Round {
    /// The requests of each client.
    requests: Vec<Vec<u8>>,
    /// The replies that each client must get.
    expected: Vec<Vec<u8>>,
    /// The keys that clients read.
    reads: Vec<String>,
    /// The replies on each lane.
    replies: Vec<(LaneId, Vec<u8>)>,
}

/// An engine and its recorded traffic.
pub(crate) struct Traffic {
    scenario: &'static Scenario,
    engine: Engine,
    clients: Vec<ClientId>,
    rounds: Vec<Round>,
    next: usize,
    /// Scratch space for `flush`.
    flush: Vec<engine::Endpoint>,
}

impl Traffic {
    /// Makes the traffic, and plays it twice: afterwards every buffer has the size that it needs.
    pub(crate) fn record(scenario: &'static Scenario) -> Self {
        let mut engine = engine(scenario);
        if scenario.route == Route::Near {
            let told = Localities::read(PODS.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
            let orders = engine.tree.orders(&told);
            engine.locate(Some(Arc::new(told)), &orders, &|_| ClientSource::Unknown);
        }
        let clients: Vec<ClientId> = (0..scenario.clients)
            .filter_map(|number| {
                let peer = engine.open_client(0)?;
                let address = IpAddr::from([10, 1, 0, number as u8 % 4]);
                engine.set_source(peer, ClientSource::Address(address));
                match peer {
                    engine::Endpoint::Client(client) => Some(client),
                    engine::Endpoint::Lane(_) | engine::Endpoint::Link(_) => None,
                }
            })
            .collect();
        let rounds = (0..ROUNDS).map(|round| scenario.round(round)).collect();
        let mut traffic = Self {
            scenario,
            engine,
            clients,
            rounds,
            next: 0,
            flush: Vec::new(),
        };
        if scenario.route == Route::Embedded {
            traffic.fill();
        }
        // What is kept is fetched the first time: servers are not asked again.
        let times = if scenario.route == Route::NearCache { 2 } else { 1 };
        for _ in 0..times * ROUNDS {
            traffic.play();
        }
        for _ in 0..ROUNDS {
            traffic.replay();
        }
        traffic
    }

    /// Replies that clients have received.
    pub(crate) fn replies(&self) -> u64 {
        self.engine.metrics.replies.all()
    }

    /// Requests that were sent so that their replies are kept.
    #[allow(dead_code, reason = "the program counts no allocations")]
    pub(crate) fn fetched(&self) -> u64 {
        self.engine.metrics.near.get(0).fills
    }

    /// Stores what the clients will read in the embedded store.
    fn fill(&mut self) {
        let (scenario, client) = (self.scenario, self.clients[0]);
        for key in self.rounds.iter().flat_map(|round| &round.reads) {
            let request = scenario.words.set(key, &scenario.value_of(key));
            self.engine.client_bytes(client, request.as_bytes());
            self.engine.clients.stream(client).unwrap().out.clear();
        }
        self.flush();
    }

    /// Feeds the requests of one round to the engine.
    fn say(&mut self) {
        self.engine.now += Micros(100);
        if self.engine.is_in_fleet() {
            self.engine.begin_turn(1);
        }
        for (&client, request) in self.clients.iter().zip(&self.rounds[self.next].requests) {
            self.engine.client_bytes(client, request);
        }
    }

    /// Plays a round for the first time: servers answer the requests, and clients check the replies.
    fn play(&mut self) {
        self.say();
        while let Some(lane) = self.engine.actions.connect.pop() {
            self.engine.lane_connected(lane);
            self.engine.servers.stream(lane).unwrap().out.clear();
            self.engine.lane_bytes(lane, self.scenario.words.welcome());
        }
        self.engine.actions.flush.clear();
        let mut replies = Vec::new();
        let lanes: Vec<LaneId> = self.engine.servers.lanes().map(|(id, _)| id).collect();
        for lane in lanes {
            let stream = self.engine.servers.stream(lane).unwrap();
            let mut reply = Vec::new();
            self.scenario.answer(&stream.out, &mut reply);
            stream.out.clear();
            stream.dirty = false;
            if !reply.is_empty() {
                replies.push((lane, reply));
            }
        }
        for (lane, reply) in &replies {
            self.engine.lane_bytes(*lane, reply);
        }
        self.rounds[self.next].replies = replies;
        self.engine.actions.flush.clear();
        for (&id, expected) in self.clients.iter().zip(&self.rounds[self.next].expected) {
            let stream = self.engine.clients.stream(id).unwrap();
            assert!(stream.out == *expected, "client {id:?} got something else");
            stream.out.clear();
            stream.dirty = false;
        }
        self.next = (self.next + 1) % ROUNDS;
    }

    /// Plays a round again, with the recorded replies.
    pub(crate) fn replay(&mut self) {
        self.say();
        self.flush();
        for (lane, reply) in &self.rounds[self.next].replies {
            self.engine.lane_bytes(*lane, reply);
        }
        self.flush();
        self.next = (self.next + 1) % ROUNDS;
    }

    /// Empties the buffers as if the sockets took everything.
    fn flush(&mut self) {
        std::mem::swap(&mut self.flush, &mut self.engine.actions.flush);
        for peer in self.flush.drain(..) {
            let keeps = matches!(peer, engine::Endpoint::Lane(id) if self.engine.keeps_sent(id));
            if let Some(stream) = self.engine.stream(peer) {
                stream.dirty = false;
                if !keeps {
                    stream.out.clear();
                }
            }
            if let engine::Endpoint::Lane(id) = peer
                && keeps
            {
                self.engine.note_sent(id);
            }
        }
    }
}

impl Scenario {
    fn round(&self, round: usize) -> Round {
        let (mut requests, mut expected, mut reads) = (Vec::new(), Vec::new(), Vec::new());
        for client in 0..self.clients {
            let (mut request, mut reply) = (String::new(), String::new());
            for number in 0..self.pipeline {
                let key = |at: usize| {
                    let place = 1 + at + self.keys * (number + 16 * client);
                    let turn = if self.sets == Sets::EveryOtherRound {
                        round / 2
                    } else {
                        round
                    };
                    format!("{:040}", 1_000_003 * place + turn)
                };
                let is_set = match self.sets {
                    Sets::None => false,
                    Sets::Some => (client + number + round).is_multiple_of(ROUNDS),
                    Sets::EveryOtherRound => round % 2 == 1,
                };
                if is_set {
                    request.push_str(&self.words.set(&key(0), &"v".repeat(self.value)));
                    reply.push_str(self.words.stored());
                    continue;
                }
                let keys: Vec<String> = (0..self.keys).map(key).collect();
                request.push_str(&self.words.get(&keys));
                reply.push_str(&self.hits(&keys));
                reads.extend(keys);
            }
            requests.push(request.into_bytes());
            expected.push(reply.into_bytes());
        }
        Round {
            requests,
            expected,
            reads,
            replies: Vec::new(),
        }
    }

    fn value_of(&self, key: &str) -> String {
        let repeated = key.repeat(self.value.div_ceil(key.len()));
        repeated.split_at(self.value).0.to_owned()
    }

    fn hits(&self, keys: &[String]) -> String {
        let hits = keys.iter().map(|key| (key.clone(), self.value_of(key)));
        self.words.hits(&hits.collect::<Vec<_>>())
    }

    /// Appends the replies of a server to these requests.
    fn answer(&self, mut requests: &[u8], replies: &mut Vec<u8>) {
        while let Some(heard) = self.words.hear(requests) {
            let reply = match heard.read {
                Some(key) => self.hits(&[key]),
                None => self.words.stored().to_owned(),
            };
            replies.extend_from_slice(reply.as_bytes());
            requests = &requests[heard.len..];
        }
    }
}

/// Two NUMA nodes with two servers and two clients each.
const PODS: &str = r#"{"version":1,"nodes":[{"id":0},{"id":1}],"pods":[
    {"ips":["10.0.0.1","10.0.0.2","10.1.0.0","10.1.0.1"],"containers":[{"nodes":[0]}]},
    {"ips":["10.0.0.3","10.0.0.4","10.1.0.2","10.1.0.3"],"containers":[{"nodes":[1]}]}]}"#;

fn engine(scenario: &Scenario) -> Engine {
    let (route, protocol) = (scenario.route, scenario.words.protocol());
    let is_peer = route == Route::Fleet;
    let replicated = matches!(route, Route::Copies | Route::OneCopy | Route::Fleet);
    let servers = match route {
        Route::OneCopy => "servers: [10.0.0.1:11211]",
        Route::Fleet => "own: 10.0.0.1:11211",
        _ => "servers: [10.0.0.1:11211, 10.0.0.2:11211, 10.0.0.3:11211, 10.0.0.4:11211]",
    };
    let fleet = match is_peer {
        true => "fleet: {listen: 127.0.0.1:11400, peers: [127.0.0.1:11400], dir: fleet}\n",
        false => "",
    };
    let route = match route {
        Route::Near => "{nearest: p}",
        Route::Embedded => "embedded",
        Route::NearCache => "{near: {child: p, rules: [{name: all, ttl: 1d, others: none}]}}",
        // A key is asked for again a millisecond later.
        Route::NearCacheMisses => "{near: {child: p, rules: [{name: all, ttl: 900us}]}}",
        _ => "p",
    };
    let text = format!(
        "pools:\n  p:\n    {servers}\n    protocol: {protocol}\n    replicated: {replicated}\n\
         listeners: [{{address: 127.0.0.1:11211, protocol: {protocol}, route: {route}}}]\n{fleet}"
    );
    let config = config::parse(&text, Path::new("replay"))
        .unwrap_or_else(|error| panic!("{error}"))
        .config;
    let servers = config.pools["p"].source.read().unwrap_or_default();
    let servers = BTreeMap::from([("p".to_owned(), servers)]);
    let mut registry = Registry::new(OwnLocation::new(&[], None));
    let built = Compiler::new(&config, &servers, &mut registry, Protocols::PLAIN, "replay", 1)
        .and_then(|mut compiler| {
            let rules = near_rules(&config, &Rules::default(), &config);
            let near = Arc::new(Near::new(config.near.memory(), [1, 2, 3, 4]));
            compiler.keep_replies((!rules.is_empty()).then_some((near, rules)));
            compiler.tree(&mut registry, &["127.0.0.1:11211".into()])
        })
        .unwrap_or_else(|error| panic!("{error}"));
    let store = Arc::new(Store::new(store::Limits::default(), [1, 2, 3, 4]));
    let facts = Facts {
        pid: 1,
        start: Micros::ZERO,
        workers: 1,
        worker: 0,
    };
    let mut engine = Engine::new(
        config.limits.clone(),
        store,
        Arc::new(Register::new(1)),
        Arc::new(KeyLocks::new(1, [1, 2, 3, 4])),
        facts,
        1,
    );
    engine.tree = Rc::new(built.tree);
    engine.follow_near();
    if is_peer {
        join(&mut engine);
    }
    engine
}

/// Makes the engine the only peer of a fleet, with a lease that does not end.
fn join(engine: &mut Engine) {
    let (lease, shared) = (Arc::new(Lease::default()), Arc::new(Shared::new()));
    lease.renew(u64::MAX);
    shared.set_floor(Stamp::ZERO);
    engine.join_fleet(Membership {
        shared,
        lease,
        suspect: Micros::secs(1),
        zone: None,
    });
    let (slot, stay) = (Slot(1), Stay::default());
    let me = Peer {
        name: "me".to_owned(),
        identity: 1,
        process: 1,
        address: SocketAddr::from(([127, 0, 0, 1], 11400)),
        stay,
        slot,
        decides: true,
        workers: 1,
        zone: None,
        lease: 1_000_000,
        copies: vec![("p".to_owned(), "10.0.0.1:11211".to_owned())],
    };
    let view = View {
        number: 1,
        peers: vec![me],
    };
    engine.install_view(Arc::new(view), Some((slot, stay)));
    engine.actions.events.clear();
    engine.begin_turn(1);
}
