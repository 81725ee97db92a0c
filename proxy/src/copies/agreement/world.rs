//! A small world around the agreement: workers that hear proposals late, servers that freeze with a write in
//! their socket, threads of a server that lag behind its others, messages in any order between participants.
//! In every order of events, no read may be older than the last acknowledged write.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use proptest::prelude::*;

use super::super::repair::Remedy;
use super::*;
use crate::{copies::Snapshot, members::MemberId};

pub(super) const WORKERS: usize = 3;
pub(super) const SERVERS: usize = 3;
pub(super) const KEYS: usize = 2;

/// A possible next step of the world. Numbers are taken modulo the number of things they choose from.
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
    /// The server stops reading one of its connections, or resumes.
    Hold {
        server: usize,
        connection: usize,
    },
    Release {
        server: usize,
        connection: usize,
    },
    /// A worker's requests to a server time out: their connection is closed.
    TimeOut {
        worker: usize,
        server: usize,
    },
    /// A worker hears its next proposal; the control thread its next event.
    Hear {
        worker: usize,
    },
    Event,
    /// A copy leaves the configuration, or returns to it.
    Depart {
        server: usize,
    },
    Return {
        server: usize,
    },
    /// The state file is written, which may have failed until now.
    Save,
    /// A watched copy is probed; a copy is repaired, as far as the server lets it.
    Look,
    Repair,
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
        1 => server.clone().prop_map(|server| Move::Depart { server }),
        2 => server.clone().prop_map(|server| Move::Return { server }),
        2 => (worker.clone(), server.clone()).prop_map(|(worker, server)| Move::TimeOut { worker, server }),
        8 => worker.prop_map(|worker| Move::Hear { worker }),
        8 => Just(Move::Event),
        4 => Just(Move::Save),
        2 => Just(Move::Look),
        2 => Just(Move::Repair),
    ];
    proptest::collection::vec(one, 1..400)
}

#[derive(Clone, Debug)]
enum Event {
    Stale(usize),
    Acknowledged(usize, usize, u64, MissedKeys),
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

/// Messages on their way between the agreement and the rest of the world.
#[derive(Debug, Default)]
struct Surroundings {
    mailboxes: [VecDeque<Proposal>; WORKERS],
    saving: Vec<(ServerIdentity, u64)>,
    watched: Vec<(ServerIdentity, u64)>,
    repairing: Vec<RepairTask>,
}

impl Environment for Surroundings {
    fn propose(&mut self, _: &Agreement, proposal: Proposal) {
        for mailbox in &mut self.mailboxes {
            mailbox.push_back(proposal.clone());
        }
    }

    fn save(&mut self, _: &Agreement, server: &ServerIdentity, epoch: u64) -> bool {
        self.saving.push((server.clone(), epoch));
        false
    }

    fn watch(&mut self, server: ServerIdentity, epoch: u64, _: u32) {
        self.watched.push((server, epoch));
    }

    fn repair(&mut self, task: RepairTask) {
        self.repairing.push(task);
    }
}

#[derive(Debug)]
pub(super) struct World {
    pub(super) agreement: Agreement,
    snapshots: Vec<Snapshot>,
    surroundings: Surroundings,
    events: VecDeque<Event>,
    servers: Vec<Server>,
    pub(super) writes: Vec<Write>,
    pub(super) acknowledged: [u64; KEYS],
    /// The writer of a key: a client of that worker, which may send more before the answer comes.
    busy: [Option<usize>; KEYS],
    pub(super) version: u64,
    now: Instant,
}

const LIFE: Incarnation = Incarnation {
    pid: 1,
    uptime: Duration::ZERO,
};

fn id(server: usize) -> MemberId {
    MemberId(server as u32)
}

pub(super) fn identity(server: usize) -> ServerIdentity {
    ServerIdentity {
        pool: "pool".into(),
        name: server.to_string().into(),
        address: server.to_string().into(),
    }
}

fn number(server: &ServerIdentity) -> usize {
    server.name.parse().unwrap()
}

impl World {
    pub(super) fn new() -> Self {
        let mut agreement = Agreement::new(WORKERS);
        agreement.set_pool("pool", SERVERS, 1);
        Self {
            agreement,
            snapshots: (0..WORKERS).map(|_| Snapshot::default()).collect(),
            surroundings: Surroundings::default(),
            events: VecDeque::new(),
            servers: (0..SERVERS).map(|_| Server::default()).collect(),
            writes: Vec::new(),
            acknowledged: [0; KEYS],
            busy: [None; KEYS],
            version: 0,
            now: Instant::now(),
        }
    }

    fn carry_out(&mut self, acts: Vec<Act>) {
        self.agreement.execute(acts, &mut self.surroundings);
    }

    fn miss(&mut self, write: usize, server: usize) {
        let (worker, key) = (self.writes[write].worker, self.writes[write].key);
        let outs = self.snapshots[worker].miss(id(server), &[key as u8]);
        self.writes[write].missed.push((server, outs));
        if self.snapshots[worker].mark_stale(id(server)) {
            self.events.push_back(Event::Stale(server));
        }
    }

    /// Answers the writes for which everybody has answered, or is out.
    fn conclude(&mut self) {
        for write in &mut self.writes {
            let snapshots = &self.snapshots[write.worker];
            let waits = write
                .missed
                .iter()
                .any(|&(server, outs)| !snapshots.is_settled(id(server), outs));
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
                    if self.snapshots[worker].state(id(server)).is_written() {
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
                if held || !self.snapshots[worker].state(id(server)).is_read() {
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
            Move::Hear { worker } => {
                if let Some(proposal) = self.surroundings.mailboxes[worker].pop_front() {
                    let server = number(&proposal.server);
                    if proposal.state == CopyState::Leaving {
                        self.step(Move::TimeOut { worker, server });
                    }
                    if let Some(missed) = self.snapshots[worker].follow(id(server), proposal.state) {
                        let event = Event::Acknowledged(worker, server, proposal.epoch, missed);
                        self.events.push_back(event);
                    }
                    self.conclude();
                }
            }
            Move::Event => {
                let acts = match self.events.pop_front() {
                    Some(Event::Stale(server)) => {
                        let (server, missed) = (identity(server), MissedKeys::default());
                        self.agreement.mark_stale(&server, "test", missed, self.now)
                    }
                    Some(Event::Acknowledged(worker, server, epoch, missed)) => {
                        self.agreement
                            .acknowledged(worker, &identity(server), epoch, missed, self.now)
                    }
                    None => Vec::new(),
                };
                self.carry_out(acts);
            }
            Move::Depart { server } => {
                let acts = self.agreement.departed(&identity(server), self.now);
                self.carry_out(acts);
            }
            Move::Return { server } => {
                let acts = self.agreement.returned(&identity(server));
                self.carry_out(acts);
            }
            Move::Save => {
                for (server, epoch) in std::mem::take(&mut self.surroundings.saving) {
                    let acts = self.agreement.saved(&server, epoch);
                    self.carry_out(acts);
                }
            }
            Move::Look => {
                if let Some((server, epoch)) = self.surroundings.watched.pop() {
                    let answers = !self.servers[number(&server)].frozen;
                    let acts = self.agreement.reachable(&server, epoch, answers);
                    if acts.is_empty() && self.agreement.is_watched(&server, epoch) {
                        self.surroundings.watched.push((server, epoch));
                    }
                    self.carry_out(acts);
                }
            }
            Move::Repair => {
                if let Some(task) = self.surroundings.repairing.pop() {
                    let server = &mut self.servers[number(&task.server)];
                    // It lists the connections that it has not seen closed.
                    let old = server.connections.iter().filter(|connection| !connection.open);
                    let old = old.count() + usize::from(server.frozen);
                    let result = match old {
                        0 => {
                            match task.missed.keys() {
                                Some(keys) => keys.for_each(|key| server.values[usize::from(key[0])] = None),
                                None => server.values = Default::default(),
                            }
                            let (life, remedy) = (LIFE, Remedy::Flush);
                            Ok(RepairReport { life, remedy })
                        }
                        old => Err(RepairError::OldConnections(old)),
                    };
                    let acts = self
                        .agreement
                        .repaired(&task.server, task.epoch, result, self.now);
                    self.carry_out(acts);
                }
            }
        }
    }

    /// Does this worker read this copy?
    pub(super) fn reads(&self, worker: usize, server: usize) -> bool {
        self.snapshots[worker].state(id(server)).is_read()
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

    /// Lets all participants hear and answer all that was decided.
    pub(super) fn agree(&mut self) {
        for _ in 0..200 {
            for worker in 0..WORKERS {
                self.step(Move::Hear { worker });
            }
            for one in [Move::Event, Move::Save, Move::Look, Move::Repair] {
                self.step(one);
            }
        }
    }
}
