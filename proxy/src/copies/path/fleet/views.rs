//! The next view, the links of its peers, and the end of a stay.

use std::sync::Arc;

use proxima_wire::message::Outcome;

use super::{Membership, OperationId, WorkerFleet};
use crate::{
    copies::path::operation::{Operation, Stage},
    engine::{Endpoint, Engine, LinkId, WorkerEvent},
    fleet::{Slot, Stay, View, keeper::MissedByPeer},
    peers::{Event, Role},
    protocol::Failed,
    stream::Stream,
    table::Id,
};

/// The answer to a change whose coordinator has left the view.
const EXPELLED: &str = "this proxy was removed from its fleet: the change may have been done";

impl Engine {
    /// This proxy is in a fleet from now on.
    pub fn join_fleet(&mut self, membership: Membership) {
        self.copies.fleet = Some(Box::new(WorkerFleet::new(membership)));
        self.find_fleet_pools();
    }

    /// The tree in force has changed.
    pub fn find_fleet_pools(&mut self) {
        if let Some(fleet) = self.copies.fleet.as_mut() {
            fleet.find_pools(&self.tree);
        }
    }

    /// Installs a view; `me`: this peer in it.
    pub fn install_view(&mut self, view: Arc<View>, me: Option<(Slot, Stay)>) {
        let (now, worker) = (self.now, self.facts.worker);
        let Some(fleet) = self.copies.fleet.as_mut() else {
            return;
        };
        if view.number <= fleet.keeper.view().number {
            return;
        }
        let number = view.number;
        let installed = fleet.keeper.install(view, me, now);
        if installed.expelled {
            self.end_stay();
        }
        for (slot, stay) in installed.left {
            self.end_links(slot, stay);
            self.lose_asks(slot, stay);
        }
        for token in installed.again {
            self.need_later_stamp(Id::from_bits(token));
        }
        self.send_changes();
        self.delete_orphans(installed.orphans);
        for token in installed.released {
            self.conclude_in_fleet(Id::from_bits(token));
        }
        self.confirm_changes();
        let event = Event::Installed { worker, view: number };
        self.actions.events.push(WorkerEvent::Peer(event));
        let ahead: Vec<LinkId> = self
            .links()
            .into_iter()
            .flat_map(|links| links.iter())
            .filter(|(_, link)| link.is_ahead)
            .map(|(id, _)| id)
            .collect();
        for id in ahead {
            self.serve_link(id);
        }
        self.tell_settled();
        self.check_asks();
    }

    /// A link to a worker of a peer is there. Returns its handle for the reactor; `None`: the peer is not
    /// in the view.
    pub fn open_link(&mut self, slot: Slot, stay: Stay, role: Role, stream: Stream) -> Option<LinkId> {
        let fleet = self.copies.fleet.as_mut()?;
        let (id, before) = fleet.links.add(slot, stay, role, stream);
        if let Some(before) = before {
            self.end_link(before, "another one has taken its place");
        }
        Some(id)
    }

    /// A link is in the reactor: what waited for it is sent.
    pub fn link_opened(&mut self, id: LinkId) {
        let now = self.now;
        let Some(fleet) = self.copies.fleet.as_mut() else {
            return;
        };
        let Some(link) = fleet.links.get(id) else {
            return;
        };
        let (peer, role) = ((link.slot, link.stay), link.role);
        if role == Role::Coordinator {
            fleet.keeper.send_again(peer, now);
            self.send_changes();
            self.confirm_changes();
            self.check_asks();
        }
        // Bytes that came with the end of the handshake.
        self.flush_later(Endpoint::Link(id));
        self.serve_link(id);
    }

    fn end_links(&mut self, slot: Slot, stay: Stay) {
        let all: Vec<LinkId> = self
            .links()
            .into_iter()
            .flat_map(|links| links.iter())
            .filter(|(_, link)| (link.slot, link.stay) == (slot, stay))
            .map(|(id, _)| id)
            .collect();
        for id in all {
            self.end_link(id, "its peer has left the fleet");
        }
    }

    /// This peer was removed: its changes under way are void, and its own copy may hold values that the
    /// others do not have.
    fn end_stay(&mut self) {
        let worker = self.facts.worker;
        let Some(fleet) = self.copies.fleet.as_mut() else {
            return;
        };
        let mut keys = fleet.keeper.leave();
        fleet.is_leased = false;
        let all: Vec<LinkId> = fleet.links.iter().map(|(id, _)| id).collect();
        fleet.under_way.clear();
        for id in all {
            self.end_link(id, "this proxy was removed from its fleet");
        }
        let void: Vec<OperationId> = self
            .copies
            .operations
            .iter()
            .filter(|(_, operation)| {
                matches!(operation.stage, Stage::Replicating { .. }) || is_decided(operation)
            })
            .map(|(id, _)| id)
            .collect();
        for id in void {
            if let Some(operation) = self.copies.operations.get(id) {
                let parent = operation.parent;
                let fleet_pool = operation
                    .tree
                    .copies(operation.node)
                    .and_then(|copies| copies.fleet.as_ref());
                if let Some(fleet_pool) = fleet_pool {
                    // A decision that was made here is in the own copy alone.
                    keys.add(fleet_pool.hash, &operation.key());
                }
                self.copies.operations.end(id);
                self.fail(parent, &Failed::here(Outcome::Timeout, EXPELLED));
            }
        }
        let event = Event::Left { worker, keys };
        self.actions.events.push(WorkerEvent::Peer(event));
    }

    /// The changes that a peer missed before it joined again, as this worker knows them; `None` if this
    /// worker was not in the fleet all the time.
    pub fn missed_by(&self, name: &str, identity: u128) -> Option<MissedByPeer> {
        self.copies.fleet.as_ref()?.keeper.missed(name, identity).cloned()
    }
}

/// Is the own copy of a fleet's pool deciding this change? It is void in another stay.
fn is_decided(operation: &Operation) -> bool {
    let copies = operation.tree.copies(operation.node);
    operation.stage.is_decision() && copies.is_some_and(|copies| copies.fleet.is_some())
}
