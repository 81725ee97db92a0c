//! One worker's state for the fleet, and the state that all workers of a process share.

use std::{collections::HashMap, sync::Arc};

use super::{Task, ask::Asking, fill::Filling, task::Keep};
use crate::{
    engine::{OperationId, TaskId},
    fleet::{
        Keeper, Lease, Slot, Stay,
        keeper::{Send, Shared},
    },
    micros::Micros,
    peers::Links,
    route::{FleetPool, Node, NodeId, Tree},
    table::Table,
};

/// The fleet's state that the workers of a process share.
#[derive(Clone)]
pub struct Membership {
    /// The clock, the newest stamps and the floor.
    pub shared: Arc<Shared>,
    /// The lease, which the control thread renews.
    pub lease: Arc<Lease>,
    /// A change that a peer leaves unanswered for this long is complained of.
    pub suspect: Micros,
    /// This proxy's zone.
    pub zone: Option<String>,
}

/// One worker's part in the fleet: its keeper, its links, and what it does for peers.
pub struct WorkerFleet {
    pub(crate) keeper: Keeper,
    pub(crate) links: Links,
    /// This process' lease, which the control thread renews.
    lease: Arc<Lease>,
    /// The lease was valid at this turn's reading of the clock, which was taken after the bytes of all
    /// requests that are answered in this turn were received.
    pub(super) is_leased: bool,
    pub(super) asks: Table<Asking>,
    pub(super) tasks: Table<Task>,
    /// `None`: a miss of an own copy is a miss.
    pub(super) filling: Option<Filling>,
    /// Changes of peers that wait for the own copy to be out.
    pub(super) unsettled: Vec<TaskId>,
    /// Changes of this worker that its peers have not all acknowledged.
    pub(super) under_way: Vec<OperationId>,
    /// The pools of the fleet in the tree in force, by the hash of their names.
    pub(super) pools: HashMap<u64, NodeId>,
    /// A change that a peer leaves unanswered for this long is complained of.
    pub(super) suspect: Micros,
    /// The view up to which the control thread was told that decisions have ended.
    pub(super) settled_told: u64,
    /// Peers were last complained of at this time.
    pub(super) complained: Micros,
    /// Scratch for what is to be sent.
    pub(super) sends: Vec<Send>,
    /// Buffers for changes of peers.
    #[allow(clippy::vec_box, reason = "a task takes the box as it is")]
    pub(super) spare_keeps: Vec<Box<Keep>>,
    /// This proxy's zone, to find the nearest neighbour.
    pub(super) zone: Option<String>,
    /// By how much CLOCK_BOOTTIME was ahead of this worker's clock in its first turn and in this one, in
    /// microseconds. It gets further ahead while the machine is suspended, when the worker's clock stands
    /// still.
    ahead: Option<(u64, u64)>,
}

impl WorkerFleet {
    /// A worker's part, in no view yet.
    pub(super) fn new(membership: Membership) -> Self {
        let Membership {
            shared,
            lease,
            suspect,
            zone,
        } = membership;
        Self {
            keeper: Keeper::new(shared),
            links: Links::default(),
            lease,
            is_leased: false,
            asks: Table::default(),
            tasks: Table::default(),
            filling: None,
            unsettled: Vec::new(),
            under_way: Vec::new(),
            pools: HashMap::new(),
            suspect,
            settled_told: 0,
            complained: Micros::ZERO,
            sends: Vec::new(),
            spare_keeps: Vec::new(),
            zone,
            ahead: None,
        }
    }

    /// This peer in the view; `None`: it is not in it.
    pub(super) fn me(&self) -> Option<(Slot, Stay)> {
        self.keeper.me()
    }

    /// May this peer answer in this turn?
    #[inline]
    pub(super) fn is_leased(&self) -> bool {
        self.is_leased
    }

    /// A turn has begun at this time of CLOCK_BOOTTIME, in microseconds. Returns whether the lease was lost
    /// since the last one.
    pub(super) fn begin_turn(&mut self, boot_time: u64, now: Micros) -> bool {
        let ahead = boot_time.saturating_sub(now.0);
        self.ahead = Some((self.ahead.map_or(ahead, |(first, _)| first), ahead));
        let had = self.is_leased;
        // Without a floor this peer does not know yet which changes it has missed, and coordinates none.
        let is_member = self.keeper.me().is_some() && self.keeper.shared().has_floor();
        self.is_leased = self.lease.is_valid(boot_time) && is_member;
        had && !self.is_leased
    }

    /// Microseconds for which the machine was suspended since this worker's first turn.
    pub(crate) fn suspended(&self) -> u64 {
        self.ahead.map_or(0, |(first, ahead)| ahead.saturating_sub(first))
    }

    /// Before which view all decisions have ended at all peers.
    pub(super) fn settled(&self) -> u64 {
        self.lease.settled()
    }

    /// The peer of number `tries` among those that have a copy of the pool: those of this zone first.
    pub(super) fn neighbour(&self, pool: &str, tries: u32) -> Option<(Slot, Stay)> {
        let me = self.me();
        let has = |peer: &&crate::fleet::Peer| {
            Some((peer.slot, peer.stay)) != me && peer.copies.iter().any(|(name, _)| name == pool)
        };
        let mut peers: Vec<_> = self.keeper.view().peers.iter().filter(has).collect();
        peers.sort_by_key(|peer| self.zone.is_some() && peer.zone != self.zone);
        let peer = peers.get(tries as usize)?;
        Some((peer.slot, peer.stay))
    }

    /// The peer that decides this key.
    pub(super) fn home(&self, fleet_pool: &FleetPool, key: &[u8]) -> Option<(Slot, Stay)> {
        self.keeper.home(fleet_pool.key_hash(key))
    }

    /// Does this peer decide the key?
    pub(super) fn is_home(&self, fleet_pool: &FleetPool, key: &[u8]) -> bool {
        self.me().is_some() && self.home(fleet_pool, key) == self.me()
    }

    /// The tree in force has changed.
    pub(super) fn find_pools(&mut self, tree: &Tree) {
        let pools = tree.all().filter_map(|(id, node)| match node {
            Node::Copies(copies) => Some((copies.fleet.as_ref()?.hash, id)),
            _ => None,
        });
        self.pools = pools.collect();
    }

    /// Does anything wait for a peer, or for the own copy in a peer's place?
    pub(in crate::copies::path) fn waits(&self) -> bool {
        !self.asks.is_empty() || !self.tasks.is_empty() || self.keeper.under_way() > 0
    }

    /// Bytes of memory that it takes.
    pub(in crate::copies::path) fn memory_bytes(&self) -> usize {
        let asks: usize = self.asks.iter().map(|(_, asking)| asking.memory_bytes()).sum();
        asks + self.links.memory_bytes()
    }
}
