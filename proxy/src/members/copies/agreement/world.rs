//! A small world around the agreement: workers that hear proposals late, servers that freeze with a write in their socket,
//! threads of a server that lag behind its others, messages in any order between participants. Whatever happens, no read may
//! show less than what was acknowledged.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use proptest::prelude::*;

use super::*;
use crate::members::copies::Views;

pub(super) const WORKERS: usize = 3;
pub(super) const SERVERS: usize = 3;
pub(super) const KEYS: usize = 2;

/// What the world may do next. Numbers are taken modulo what there is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Move {
    /// A worker writes a new version of a key everywhere.
    Write {
        worker: usize,
        key: usize,
    },
    /// A worker reads a key at a server.
    Read {
        worker: usize,
        key: usize,
        server: usize,
    },
    /// A server stops executing what it is sent; or goes on.
    Freeze {
        server: usize,
    },
    Thaw {
        server: usize,
    },
    /// One of its connections is not looked at, while others are; or is again.
    Hold {
        server: usize,
        connection: usize,
    },
    Release {
        server: usize,
        connection: usize,
    },
    /// What a worker sent to a server is given up: its connection is closed.
    TimeOut {
        worker: usize,
        server: usize,
    },
    /// A worker hears its next order; the control thread its next news.
    Order {
        worker: usize,
    },
    News,
    /// A copy is named no more; or again.
    Vanish {
        server: usize,
    },
    Return {
        server: usize,
    },
    /// Who owes is written down, which may have failed until now.
    Note,
    /// A watched copy is looked at; a debt is paid, as far as the server lets it.
    Look,
    Pay,
}

pub(super) fn moves() -> impl Strategy<Value = Vec<Move>> {
    let worker = 0..WORKERS;
    let server = 0..SERVERS;
    let one = prop_oneof![
        4 => (worker.clone(), 0..KEYS).prop_map(|(worker, key)| Move::Write { worker, key }),
        4 => (worker.clone(), 0..KEYS, server.clone())
            .prop_map(|(worker, key, server)| Move::Read { worker, key, server }),
        1 => server.clone().prop_map(|server| Move::Freeze { server }),
        2 => server.clone().prop_map(|server| Move::Thaw { server }),
        1 => (server.clone(), 0..WORKERS).prop_map(|(server, connection)| Move::Hold { server, connection }),
        1 => (server.clone(), 0..WORKERS).prop_map(|(server, connection)| Move::Release { server, connection }),
        1 => server.clone().prop_map(|server| Move::Vanish { server }),
        2 => server.clone().prop_map(|server| Move::Return { server }),
        2 => (worker.clone(), server.clone()).prop_map(|(worker, server)| Move::TimeOut { worker, server }),
        8 => worker.prop_map(|worker| Move::Order { worker }),
        8 => Just(Move::News),
        4 => Just(Move::Note),
        2 => Just(Move::Look),
        2 => Just(Move::Pay),
    ];
    proptest::collection::vec(one, 1..400)
}

#[derive(Clone, Debug)]
enum News {
    Missed(MemberId),
    Follows(usize, MemberId, u64, Owed),
}

#[derive(Debug, Default)]
struct Server {
    frozen: bool,
    connections: Vec<Connection>,
    values: [Option<u64>; KEYS],
}

#[derive(Debug)]
struct Connection {
    worker: usize,
    /// At the worker's end.
    open: bool,
    held: bool,
    /// Writes that it holds, in the order in which they were sent.
    queue: VecDeque<usize>,
}

impl Server {
    /// The connection that this worker has, or makes.
    fn connection(&mut self, worker: usize) -> &mut Connection {
        let known = self
            .connections
            .iter()
            .position(|connection| connection.worker == worker && connection.open);
        let at = known.unwrap_or_else(|| {
            self.connections.push(Connection {
                worker,
                open: true,
                held: false,
                queue: VecDeque::new(),
            });
            self.connections.len() - 1
        });
        &mut self.connections[at]
    }
}

#[derive(Debug)]
pub(super) struct Write {
    worker: usize,
    key: usize,
    version: u64,
    /// Servers that have not answered, or that missed it and are waited for.
    pending: Vec<usize>,
    missed: Vec<(usize, u32)>,
    pub(super) over: bool,
}

#[derive(Debug)]
pub(super) struct World {
    pub(super) agreement: Agreement,
    pub(super) views: Vec<Views>,
    orders: Vec<VecDeque<(MemberId, u64, Standing)>>,
    news: VecDeque<News>,
    servers: Vec<Server>,
    pub(super) writes: Vec<Write>,
    noting: Vec<(MemberId, u64)>,
    watched: Vec<(MemberId, u64)>,
    paying: Vec<(MemberId, u64, Debt)>,
    pub(super) acknowledged: [u64; KEYS],
    /// Who is writing a key: a client of that worker, which may send more before the answer comes.
    busy: [Option<usize>; KEYS],
    pub(super) version: u64,
    now: Instant,
}

const LIFE: Incarnation = Incarnation {
    pid: 1,
    uptime: Duration::ZERO,
};

pub(super) fn id(server: usize) -> MemberId {
    MemberId(server as u32)
}

impl World {
    pub(super) fn new() -> Self {
        let mut agreement = Agreement::new(WORKERS);
        agreement.group("pool", SERVERS, 1);
        Self {
            agreement,
            views: (0..WORKERS).map(|_| Views::default()).collect(),
            orders: vec![VecDeque::new(); WORKERS],
            news: VecDeque::new(),
            servers: (0..SERVERS).map(|_| Server::default()).collect(),
            writes: Vec::new(),
            noting: Vec::new(),
            watched: Vec::new(),
            paying: Vec::new(),
            acknowledged: [0; KEYS],
            busy: [None; KEYS],
            version: 0,
            now: Instant::now(),
        }
    }

    fn perform(&mut self, acts: Vec<Act>) {
        for act in acts {
            match act {
                Act::Propose {
                    member,
                    epoch,
                    standing,
                } => self
                    .orders
                    .iter_mut()
                    .for_each(|orders| orders.push_back((member, epoch, standing))),
                Act::Note { member, epoch } => self.noting.push((member, epoch)),
                Act::Watch { member, epoch, .. } => self.watched.push((member, epoch)),
                Act::Pay {
                    member, epoch, debt, ..
                } => self.paying.push((member, epoch, debt)),
            }
        }
    }

    fn miss(&mut self, write: usize, server: usize) {
        let (worker, key) = (self.writes[write].worker, self.writes[write].key);
        let outs = self.views[worker].owe(id(server), &[key as u8]);
        self.writes[write].missed.push((server, outs));
        if self.views[worker].fall(id(server)) {
            self.news.push_back(News::Missed(id(server)));
        }
    }

    /// Answers the writes for which everybody has answered, or is out.
    fn conclude(&mut self) {
        for write in &mut self.writes {
            let views = &self.views[write.worker];
            let waits = write
                .missed
                .iter()
                .any(|&(server, outs)| !views.is_settled(id(server), outs));
            if write.over || !write.pending.is_empty() || waits {
                continue;
            }
            write.over = true;
        }
        // Answers come in order: the last one when all before it are there.
        for key in 0..KEYS {
            let writes = || self.writes.iter().filter(|write| write.key == key);
            if writes().all(|write| write.over) {
                self.busy[key] = None;
                let landed = writes().filter(|write| write.missed.len() < SERVERS);
                self.acknowledged[key] = landed.map(|write| write.version).max().unwrap_or(0);
            }
        }
    }

    /// Servers that are not frozen execute what they were sent.
    fn execute(&mut self) {
        for (number, server) in self.servers.iter_mut().enumerate() {
            if server.frozen {
                continue;
            }
            for connection in server
                .connections
                .iter_mut()
                .filter(|connection| !connection.held)
            {
                for write in connection.queue.drain(..) {
                    let write = &mut self.writes[write];
                    server.values[write.key] = Some(write.version);
                    write.pending.retain(|&pending| pending != number);
                }
            }
            server
                .connections
                .retain(|connection| connection.open || !connection.queue.is_empty());
        }
        self.conclude();
    }

    pub(super) fn step(&mut self, one: Move) {
        self.now += Duration::from_millis(1);
        match one {
            Move::Write { worker, key } if self.busy[key].is_none_or(|busy| busy == worker) => {
                self.busy[key] = Some(worker);
                self.version += 1;
                let write = self.writes.len();
                self.writes.push(Write {
                    worker,
                    key,
                    version: self.version,
                    pending: Vec::new(),
                    missed: Vec::new(),
                    over: false,
                });
                for server in 0..SERVERS {
                    if self.views[worker].standing(id(server)).is_written() {
                        self.writes[write].pending.push(server);
                        self.servers[server].connection(worker).queue.push_back(write);
                    } else {
                        self.miss(write, server);
                    }
                }
                self.execute();
            }
            Move::Write { .. } => {}
            Move::Read { worker, key, server } => {
                let due = self.acknowledged[key];
                let held = self.servers[server].frozen || self.servers[server].connection(worker).held;
                if held || !self.views[worker].standing(id(server)).is_read() {
                    return;
                }
                if let Some(found) = self.servers[server].values[key] {
                    assert!(
                        found >= due,
                        "worker {worker} read version {found} of key {key} at server {server}, {due} was acknowledged"
                    );
                }
            }
            Move::Freeze { server } => self.servers[server].frozen = true,
            Move::Thaw { server } => {
                self.servers[server].frozen = false;
                self.execute();
            }
            Move::Hold { server, connection } | Move::Release { server, connection } => {
                let connections = &mut self.servers[server].connections;
                let count = connections.len().max(1);
                if let Some(connection) = connections.get_mut(connection % count) {
                    connection.held = matches!(one, Move::Hold { .. });
                }
                self.execute();
            }
            Move::TimeOut { worker, server } => {
                // The bytes stay in the server's socket: it will execute them when it goes on.
                let connection = self.servers[server].connection(worker);
                connection.open = connection.queue.is_empty();
                let given_up: Vec<usize> = (0..self.writes.len())
                    .filter(|&write| {
                        self.writes[write].worker == worker && self.writes[write].pending.contains(&server)
                    })
                    .collect();
                for write in given_up {
                    self.writes[write].pending.retain(|&pending| pending != server);
                    self.miss(write, server);
                }
                self.conclude();
            }
            Move::Order { worker } => {
                if let Some((member, epoch, standing)) = self.orders[worker].pop_front() {
                    if standing == Standing::Leaving {
                        let server = member.0 as usize;
                        self.step(Move::TimeOut { worker, server });
                    }
                    if let Some(owed) = self.views[worker].follow(member, standing) {
                        self.news.push_back(News::Follows(worker, member, epoch, owed));
                    }
                    self.conclude();
                }
            }
            Move::News => {
                let acts = match self.news.pop_front() {
                    Some(News::Missed(member)) => {
                        self.agreement
                            .missed(member, "pool", "test", Owed::default(), self.now)
                    }
                    Some(News::Follows(worker, member, epoch, owed)) => {
                        self.agreement.acknowledged(worker, member, epoch, owed, self.now)
                    }
                    None => Vec::new(),
                };
                self.perform(acts);
            }
            Move::Vanish { server } => {
                let acts = self.agreement.vanished(id(server), "pool", self.now);
                self.perform(acts);
            }
            Move::Return { server } => {
                let acts = self.agreement.returned(id(server));
                self.perform(acts);
            }
            Move::Note => {
                for (member, epoch) in std::mem::take(&mut self.noting) {
                    let acts = self.agreement.noted(member, epoch);
                    self.perform(acts);
                }
            }
            Move::Look => {
                if let Some((member, epoch)) = self.watched.pop() {
                    let answers = !self.servers[member.0 as usize].frozen;
                    let acts = self.agreement.reachable(member, epoch, answers);
                    if acts.is_empty() && self.agreement.is_watched(member, epoch) {
                        self.watched.push((member, epoch));
                    }
                    self.perform(acts);
                }
            }
            Move::Pay => {
                if let Some((member, epoch, debt)) = self.paying.pop() {
                    let server = &mut self.servers[member.0 as usize];
                    // It lists the connections that it has not seen closed.
                    let old = server.connections.iter().any(|connection| !connection.open);
                    let result = match server.frozen || old {
                        true => Err("frozen, or behind".to_owned()),
                        false => {
                            match debt.keys() {
                                Some(keys) => keys.for_each(|key| server.values[usize::from(key[0])] = None),
                                None => server.values = Default::default(),
                            }
                            Ok((LIFE, "paid".to_owned()))
                        }
                    };
                    let acts = self.agreement.paid(member, epoch, result, self.now);
                    self.perform(acts);
                }
            }
        }
    }

    /// The version of each key that a server holds.
    pub(super) fn held(&self, server: usize) -> [Option<u64>; KEYS] {
        self.servers[server].values
    }

    /// Lets everything happen that is under way, with all servers well.
    pub(super) fn settle(&mut self) {
        for server in 0..SERVERS {
            for connection in &mut self.servers[server].connections {
                connection.held = false;
            }
            self.step(Move::Thaw { server });
            self.step(Move::Return { server });
        }
        self.agree();
    }

    /// Lets everybody hear and answer all that was decided.
    pub(super) fn agree(&mut self) {
        for _ in 0..200 {
            for worker in 0..WORKERS {
                self.step(Move::Order { worker });
            }
            for one in [Move::News, Move::Note, Move::Look, Move::Pay] {
                self.step(one);
            }
        }
    }
}
