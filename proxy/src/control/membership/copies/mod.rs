//! The control thread's part of copies: it carries messages between workers and the agreement, opens the
//! sockets of repairs, and follows the lists of servers.
//!
//! * `foreign_connections`: connections of others at the servers of copies
//! * `ledger`: what the control thread remembers of copies beside the agreement
//! * `membership`: copies come and go with the lists of servers
//! * `own`: the copies of a proxy in a fleet
//! * `repairs`: looks at copies that are out, and repairs what they missed
//! * `saving`: when the state file is written, and what waits for that

mod foreign_connections;
mod ledger;
mod membership;
mod own;
mod repairs;
mod saving;

use std::{
    collections::{HashMap, HashSet},
    io,
    sync::Arc,
    time::Instant,
};

pub use self::ledger::CopyCounters;
pub(in crate::control) use self::saving::StateFileWrites;
use self::{
    ledger::Ledger,
    saving::{Saving, Write},
};
use crate::{
    config::schema::{Config, Rejoin},
    control::{Proxy, Rooms, membership::Membership},
    copies::{
        Act, Agreement, CopyState, CopyStatus, Environment, Event, MissedKeys, Proposal, RepairTask, Snapshot,
    },
    event_log::kind,
    members::{Member, MemberId, ServerIdentity},
    worker::Order,
};

/// The copies, as the control thread knows them.
pub(in crate::control) struct Copies {
    agreement: Agreement,
    ledger: Ledger,
    /// The copies are not repaired, as this proxy has not joined its fleet.
    is_held: bool,
    /// How many connections of others each server of a copy has.
    foreign_connections: HashMap<ServerIdentity, usize>,
    /// Own copies in a fleet at which another process may have left connections.
    orphaned: HashSet<ServerIdentity>,
}

impl Copies {
    /// Copies that so many workers read and write. Opens the state file of `config`, and returns where it is
    /// heard what becomes of its writes.
    ///
    /// # Errors
    /// The state file cannot be used; the text says what to do.
    pub(in crate::control) fn new(
        participants: usize,
        config: &Config,
    ) -> io::Result<(Self, StateFileWrites)> {
        let (saving, writes) = Saving::open(config.state.as_deref())?;
        let copies = Self {
            agreement: Agreement::new(participants),
            ledger: Ledger::new(saving),
            is_held: false,
            foreign_connections: HashMap::new(),
            orphaned: HashSet::new(),
        };
        Ok((copies, writes))
    }

    /// The state of a copy as it was last proposed.
    pub(in crate::control) fn state(&self, member: &Member) -> CopyState {
        self.agreement.state(&member.identity)
    }

    /// What is known of a copy; `None`: it is simply current.
    pub(in crate::control) fn status(&self, member: &Member) -> Option<CopyStatus> {
        self.agreement.status(&member.identity)
    }

    /// What happened to a copy.
    pub(in crate::control) fn counters(&self, member: &Member) -> CopyCounters {
        self.ledger.counters(&member.identity)
    }

    /// How many connections of others the servers of copies have.
    pub(in crate::control) fn foreign_connections(&self) -> usize {
        self.foreign_connections.values().sum()
    }

    /// How often the state file could not be written.
    pub(in crate::control) fn state_file_failures(&self) -> u64 {
        self.ledger.saving.failures
    }

    /// The states of all copies, for `explain`.
    pub(in crate::control) fn snapshot(&self, members: &[Arc<Member>]) -> Snapshot {
        let mut snapshot = Snapshot::default();
        for member in copies_of(members) {
            snapshot.set(member.id, self.state(member));
        }
        snapshot
    }
}

/// The copies of a configuration.
fn copies_of(members: &[Arc<Member>]) -> impl Iterator<Item = &Arc<Member>> {
    members.iter().filter(|member| member.is_copy())
}

fn find(members: &[Arc<Member>], id: MemberId) -> Option<&Arc<Member>> {
    members.iter().find(|member| member.id == id)
}

impl Proxy {
    /// A worker has told something of a copy.
    pub(in crate::control) fn hear_of_copy(self: &Arc<Self>, event: Event) {
        let now = Instant::now();
        let rooms = &mut *self.rooms();
        let Membership { members, copies, .. } = &mut rooms.membership;
        let acts = match event {
            Event::Stale { member, why } => {
                if find(members, member.id).is_none() {
                    return;
                }
                copies
                    .agreement
                    .mark_stale(&member.identity, &why, MissedKeys::default(), now)
            }
            Event::Broken { member, end } => {
                return match find(members, member.id) {
                    Some(_) => copies.agreement.broken(&member.identity, end),
                    None => copies.ledger.orphan(&member, end),
                };
            }
            Event::Acknowledged {
                worker,
                member,
                epoch,
                missed,
            } => {
                let Some(member) = find(members, member) else {
                    return;
                };
                copies
                    .agreement
                    .acknowledged(worker, &member.identity, epoch, missed, now)
            }
        };
        self.execute(rooms, acts);
    }

    /// A worker has ended. `unanswered`: it has left copies with changes that they have not answered.
    pub(in crate::control) fn hear_of_end(&self, unanswered: bool) {
        let ledger = &mut self.rooms().membership.copies.ledger;
        ledger.ended += 1;
        ledger.left_unanswered |= unanswered;
    }

    /// Carries out what the agreement decided, in order and under the lock: workers hear proposals in the
    /// order in which they were made.
    fn execute(self: &Arc<Self>, rooms: &mut Rooms, acts: Vec<Act>) {
        let Membership { members, copies, .. } = &mut rooms.membership;
        let Copies {
            agreement, ledger, ..
        } = copies;
        let mut surroundings = Surroundings {
            proxy: self,
            members,
            config: rooms.configuration.config(),
            ledger,
        };
        agreement.execute(acts, &mut surroundings);
    }
}

/// What surrounds the agreement: the workers, the state file, and tasks that talk to servers.
struct Surroundings<'a> {
    proxy: &'a Arc<Proxy>,
    members: &'a [Arc<Member>],
    config: &'a Config,
    ledger: &'a mut Ledger,
}

impl Surroundings<'_> {
    fn member(&self, server: &ServerIdentity) -> Option<&Arc<Member>> {
        copies_of(self.members).find(|member| member.identity == *server)
    }
}

impl Environment for Surroundings<'_> {
    fn propose(&mut self, agreement: &Agreement, proposal: Proposal) {
        let Proposal { server, epoch, state } = proposal;
        self.ledger.count_proposal(&server, state);
        let Some(member) = self.member(&server) else {
            return;
        };
        let why = agreement.reason(&server);
        let (pool, name) = (&member.pool, &member.name);
        match state {
            CopyState::Leaving => {
                tracing::warn!(target: kind::COPY, %pool, member = %name, %state, why, "copy")
            }
            _ => tracing::info!(target: kind::COPY, %pool, member = %name, %state, why, "copy"),
        }
        let member = member.id;
        self.proxy
            .workers
            .order(|_| Order::Propose { member, epoch, state });
    }

    fn save(&mut self, agreement: &Agreement, server: &ServerIdentity, epoch: u64) -> bool {
        let records = self.ledger.records(agreement, self.members, self.config);
        let write = self.ledger.saving.write(records);
        self.proxy.watch_write(write);
        match write {
            Write::Done => true,
            Write::UnderWay(number) | Write::Begun(number) => {
                self.ledger.saving.wait(server.clone(), epoch, number);
                false
            }
        }
    }

    fn watch(&mut self, server: ServerIdentity, epoch: u64, setbacks: u32) {
        if let Some(member) = self.member(&server) {
            let watched = Arc::clone(self.proxy).watch(Arc::clone(member), epoch, setbacks);
            self.proxy.runtime.spawn(watched);
        }
    }

    fn repair(&mut self, task: RepairTask) {
        if let Some(member) = self.member(&task.server) {
            let rejoin = rejoin_of(self.config, &member.pool.name);
            let repaired = Arc::clone(self.proxy).repair(Arc::clone(member), task, rejoin);
            self.proxy.runtime.spawn(repaired);
        }
    }
}

fn rejoin_of(config: &Config, pool: &str) -> Rejoin {
    config
        .pools
        .get(pool)
        .and_then(|pool| pool.replicated)
        .map_or(Rejoin::Repair, |replicated| replicated.rejoin)
}
