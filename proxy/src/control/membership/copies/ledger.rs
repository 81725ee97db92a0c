//! What the control thread remembers of copies beside the agreement.

use std::{
    collections::{HashMap, HashSet},
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use super::{copies_of, saving::Saving};
use crate::{
    config::schema::Config,
    copies::{
        Agreement, CopyState,
        repair::{Orphans, Predecessor, Remedy, RepairError, RepairReport},
        state_file::Record,
    },
    members::{Member, ServerIdentity},
};

/// Addresses of removed copies that are remembered; with more, any new copy may have one of them.
const ORPHANED: usize = 10_000;

/// What the control thread remembers of copies.
pub(super) struct Ledger {
    /// The state file.
    pub(super) saving: Saving,
    /// Our address towards each copy, by which its server lists our connections.
    pub(super) from: HashMap<ServerIdentity, IpAddr>,
    /// Connections that the process before this one may have left.
    pub(super) orphans: Orphans,
    /// Copies that were repaired and are about to be opened.
    pub(super) repaired: HashSet<ServerIdentity>,
    /// Workers that have ended.
    pub(super) ended: usize,
    /// One of them has left a copy with a change that it has not answered.
    pub(super) left_unanswered: bool,
    /// Pools that have had members: a copy that comes later is new.
    pub(super) begun: HashSet<Arc<str>>,
    /// By endpoint of copies that were removed: our ends of orphaned connections, which broke with requests
    /// unanswered; `None`: an end that is unknown.
    orphaned: HashMap<String, Vec<Option<SocketAddr>>>,
    counters: HashMap<ServerIdentity, CopyCounters>,
}

/// What happened to a copy, for `/metrics`.
#[derive(Clone, Copy, Debug, Default)]
pub struct CopyCounters {
    /// Times that it missed a write and was taken out of reads.
    pub stale: u64,
    /// Repairs that deleted keys.
    pub repairs: u64,
    /// Repairs that flushed it.
    pub flushes: u64,
    /// Repairs that failed.
    pub setbacks: u64,
}

impl Ledger {
    pub(super) fn new(saving: Saving) -> Self {
        let before = match saving.known() {
            Some(known) if known.is_first => Predecessor::Unknown,
            Some(known) if known.rebooted => Predecessor::Rebooted,
            _ => Predecessor::Here,
        };
        Self {
            saving,
            from: HashMap::new(),
            orphans: Orphans::of(before),
            repaired: HashSet::new(),
            ended: 0,
            left_unanswered: false,
            begun: HashSet::new(),
            orphaned: HashMap::new(),
            counters: HashMap::new(),
        }
    }

    /// What happened to a copy.
    pub(super) fn counters(&self, server: &ServerIdentity) -> CopyCounters {
        self.counters.get(server).copied().unwrap_or_default()
    }

    pub(super) fn count_proposal(&mut self, server: &ServerIdentity, state: CopyState) {
        let counters = self.counters.entry(server.clone()).or_default();
        counters.stale += u64::from(state == CopyState::Leaving);
    }

    pub(super) fn count_repair(
        &mut self,
        server: &ServerIdentity,
        result: &Result<RepairReport, RepairError>,
    ) {
        let Some(counters) = self.counters.get_mut(server) else {
            return;
        };
        match result.as_ref().map(|repaired| repaired.remedy) {
            Ok(Remedy::Nothing | Remedy::Keys(0)) => {}
            Ok(Remedy::Keys(_)) => counters.repairs += 1,
            Ok(Remedy::Flush) => counters.flushes += 1,
            Err(_) => counters.setbacks += 1,
        }
    }

    /// This member is removed, and its server may still execute what came by a connection of ours with this
    /// end.
    pub(super) fn orphan(&mut self, member: &Member, end: Option<SocketAddr>) {
        if self.orphaned.len() < ORPHANED {
            self.orphaned
                .entry(member.endpoint().to_owned())
                .or_default()
                .push(end);
        }
    }

    /// Takes out our ends of the connections that a removed copy at this member's address has left.
    pub(super) fn take_orphaned(&mut self, member: &Member) -> Vec<Option<SocketAddr>> {
        self.orphaned.remove(member.endpoint()).unwrap_or_default()
    }

    /// May any new copy have the address of a removed one? Only so many addresses are remembered.
    pub(super) fn forgets_orphaned(&self) -> bool {
        self.orphaned.len() == ORPHANED
    }

    /// This copy is removed.
    pub(super) fn forget(&mut self, server: &ServerIdentity) {
        self.counters.remove(server);
        self.from.remove(server);
        self.orphans.forget(server);
    }

    /// What the state file is to say.
    pub(super) fn records(
        &self,
        agreement: &Agreement,
        members: &[Arc<Member>],
        config: &Config,
    ) -> Vec<Record> {
        let Some(known) = self.saving.known() else {
            return Vec::new();
        };
        let named = copies_of(members).map(|member| {
            let server = &member.identity;
            let stale = agreement.status(server).filter(|copy| match copy.state {
                CopyState::Leaving | CopyState::Out => true,
                CopyState::Joining => !self.repaired.contains(server),
                CopyState::Opening | CopyState::Current => false,
            });
            let from = self.from.get(server).copied();
            Record::new(server, agreement.life(server), from, stale.map(|copy| copy.why))
        });
        let is_gone = |pool: &str| self.begun.contains(pool) || !config.pools.contains_key(pool);
        named.chain(known.of_pools(is_gone).cloned()).collect()
    }
}
