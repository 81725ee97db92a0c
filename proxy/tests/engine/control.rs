//! Plays the control thread between two workers and their copies: proposals are heard late, copies are
//! repaired when the server has seen the end of the connections that broke.

use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};

use proxima::{
    copies::{
        Act, Agreement, CopyState, Environment, Event, MissedKeys, Proposal, RepairTask,
        repair::{Remedy, RepairError, RepairReport},
    },
    engine::WorkerEvent,
    members::{Member, MemberId, ServerIdentity},
    protocol::Incarnation,
};

use crate::world::World;

const LIFE: Incarnation = Incarnation {
    pid: 1,
    uptime: Duration::ZERO,
};

pub(crate) struct Control {
    pub(crate) agreement: Agreement,
    surroundings: Surroundings,
    events: VecDeque<Event>,
}

/// The messages under way between the agreement, workers and servers.
struct Surroundings {
    copies: Vec<Arc<Member>>,
    mailboxes: [VecDeque<(MemberId, u64, CopyState)>; 2],
    watched: Vec<(ServerIdentity, u64)>,
    repairing: Vec<RepairTask>,
}

impl Surroundings {
    fn member(&self, server: &ServerIdentity) -> MemberId {
        let mut copies = self.copies.iter();
        copies.find(|copy| copy.identity == *server).unwrap().id
    }
}

impl Environment for Surroundings {
    fn propose(&mut self, _: &Agreement, proposal: Proposal) {
        let member = self.member(&proposal.server);
        for mailbox in &mut self.mailboxes {
            mailbox.push_back((member, proposal.epoch, proposal.state));
        }
    }

    fn save(&mut self, _: &Agreement, _: &ServerIdentity, _: u64) -> bool {
        true
    }

    fn watch(&mut self, server: ServerIdentity, epoch: u64, _: u32) {
        self.watched.push((server, epoch));
    }

    fn repair(&mut self, task: RepairTask) {
        self.repairing.push(task);
    }
}

impl Control {
    pub(crate) fn new(copies: Vec<Arc<Member>>) -> Self {
        let mut agreement = Agreement::new(2);
        agreement.set_pool("p", copies.len(), copies.len() / 2 + 1);
        Self {
            agreement,
            surroundings: Surroundings {
                copies,
                mailboxes: Default::default(),
                watched: Vec::new(),
                repairing: Vec::new(),
            },
            events: VecDeque::new(),
        }
    }

    fn execute(&mut self, acts: Vec<Act>) {
        self.agreement.execute(acts, &mut self.surroundings);
    }

    /// Delivers a worker's next proposal.
    pub(crate) fn propose(&mut self, number: usize, worker: &mut World) {
        if let Some((member, epoch, state)) = self.surroundings.mailboxes[number].pop_front() {
            worker.engine.follow(member, epoch, state);
            worker.turn();
        }
    }

    /// Takes the events that a worker has sent.
    pub(crate) fn collect(&mut self, worker: &mut World) {
        let events = worker.engine.actions.events.drain(..);
        self.events.extend(events.filter_map(|event| match event {
            WorkerEvent::Copy(event) => Some(event),
            WorkerEvent::Ejected(..)
            | WorkerEvent::Peer(_)
            | WorkerEvent::Short(_)
            | WorkerEvent::Broken(_)
            | WorkerEvent::Shutdown
            | WorkerEvent::Question(_)
            | WorkerEvent::Fetch { .. }
            | WorkerEvent::ForeignProtocol(..)
            | WorkerEvent::Ended { .. } => None,
        }));
    }

    /// Delivers the next event to the agreement.
    pub(crate) fn hear(&mut self) {
        let now = Instant::now();
        let acts = match self.events.pop_front() {
            Some(Event::Stale { member, why }) => {
                let missed = MissedKeys::default();
                self.agreement.mark_stale(&member.identity, &why, missed, now)
            }
            Some(Event::Acknowledged {
                worker,
                member,
                epoch,
                missed,
            }) => {
                let mut copies = self.surroundings.copies.iter();
                let server = &copies.find(|copy| copy.id == member).unwrap().identity;
                self.agreement.acknowledged(worker, server, epoch, missed, now)
            }
            Some(Event::Broken { .. }) | None => Vec::new(),
        };
        self.execute(acts);
    }

    /// Tries to repair a copy that is out.
    pub(crate) fn look(&mut self) {
        if let Some((server, epoch)) = self.surroundings.watched.pop() {
            let acts = self.agreement.reachable(&server, epoch, true);
            if acts.is_empty() && self.agreement.is_watched(&server, epoch) {
                self.surroundings.watched.insert(0, (server, epoch));
            }
            self.execute(acts);
        }
    }

    /// Repairs a copy at its server, unless the server may still execute bytes of a connection that broke.
    pub(crate) fn repair(&mut self, servers: &mut [World], lags: impl Fn(usize) -> bool) {
        if let Some(task) = self.surroundings.repairing.pop() {
            let number = self.surroundings.member(&task.server).0 as usize;
            let result = if lags(number) {
                Err(RepairError::OldConnections(1))
            } else {
                let server = &mut servers[number];
                let seat = server.client();
                match task.missed.keys() {
                    Some(keys) => {
                        for key in keys {
                            server.say(seat, &[b"delete ", key, b"\r\n"].concat());
                        }
                    }
                    None => server.say(seat, b"flush_all\r\n"),
                }
                let (life, remedy) = (LIFE, Remedy::Flush);
                Ok(RepairReport { life, remedy })
            };
            let acts = self
                .agreement
                .repaired(&task.server, task.epoch, result, Instant::now());
            self.execute(acts);
        }
    }
}
