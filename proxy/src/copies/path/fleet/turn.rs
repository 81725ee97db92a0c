//! A worker's tasks for the fleet, in every turn and periodically.

use proxima_wire::{
    fleet::Confirm,
    message::{Class, Outcome, Request},
};

use super::{CLIENT_TIMEOUT, OperationId};
use crate::{
    copies::path::operation::Stage,
    engine::{Endpoint, Engine, ReplyTo, WorkerEvent},
    members::Member,
    metrics,
    micros::Micros,
    peers::Event,
    protocol::Failed,
};

/// Between two complaints of this worker.
const COMPLAIN: Micros = Micros::millis(100);

impl Engine {
    /// Is this proxy in a fleet? Then each turn begins with a reading of the clock that leases use.
    #[inline]
    pub fn is_in_fleet(&self) -> bool {
        self.copies.fleet.is_some()
    }

    /// A turn has begun at this time of CLOCK_BOOTTIME, in microseconds, which was read after the wait for
    /// events. Requests that were received before it may be answered in this turn if the lease is valid now.
    pub fn begin_turn(&mut self, boot_time: u64) {
        let now = self.now;
        let Some(fleet) = self.copies.fleet.as_mut() else {
            return;
        };
        if fleet.begin_turn(boot_time, now) {
            self.lease_lost();
        }
    }

    /// The answers of the own copies that are on their way came too late.
    fn lease_lost(&mut self) {
        self.metrics.fleet.leases_lost += 1;
        for (to, command, member) in self.servers.take_reads_of_copies() {
            self.metrics.fleet.unleased += 1;
            self.answer_miss(to, command, &member);
        }
    }

    /// Answers as an empty cache does.
    fn answer_miss(&mut self, to: ReplyTo, command: u16, member: &Member) {
        let mut out = Vec::new();
        let request = Request::new(command, Class::Read, 0);
        let reply = member.protocol.miss(0, &request, b"", &mut out);
        self.deliver(to, &reply, &out);
    }

    /// Tells peers which changes are complete, with the frames of this turn or soon after.
    pub(in crate::copies) fn confirm_changes(&mut self) {
        let Some(fleet) = self.copies.fleet.as_mut() else {
            return;
        };
        let view = fleet.keeper.view().clone();
        for peer in &view.peers {
            let Some(link) = fleet.links.to(peer.slot, peer.stay) else {
                continue;
            };
            let Some(up_to) = fleet.keeper.confirm(peer.slot) else {
                continue;
            };
            if let Some(open) = fleet.links.get_mut(link) {
                let view = view.number;
                Confirm { view, up_to }.write(&mut open.stream.out);
                if open.stream.mark() {
                    self.actions.flush.push(Endpoint::Link(link));
                }
            }
        }
    }

    /// Checks for long waits: late peers are complained of, and waiting clients are answered.
    pub fn check_fleet(&mut self) {
        self.confirm_changes();
        self.check_asks();
        self.tell_settled();
        let (now, worker) = (self.now, self.facts.worker);
        let Some(fleet) = self.copies.fleet.as_mut() else {
            return;
        };
        if now - fleet.complained >= COMPLAIN && now > fleet.suspect {
            let since = Micros((now - fleet.suspect).0);
            let before = self.actions.events.len();
            for (slot, stay) in fleet.keeper.late(since) {
                self.actions
                    .events
                    .push(WorkerEvent::Peer(Event::Late { worker, slot, stay }));
            }
            if self.actions.events.len() > before {
                fleet.complained = now;
            }
        }
        let under_way = std::mem::take(&mut fleet.under_way);
        let (late, rest): (Vec<_>, Vec<_>) = under_way
            .into_iter()
            .filter(|&id| self.copies.operations.get(id).is_some())
            .partition(|&id| self.is_late(id));
        if let Some(fleet) = self.copies.fleet.as_mut() {
            fleet.under_way = rest;
        }
        for id in late {
            self.time_out(id);
        }
    }

    fn is_late(&self, id: OperationId) -> bool {
        let operation = self.copies.operations.get(id);
        operation.is_some_and(|operation| {
            self.now - operation.since > CLIENT_TIMEOUT && !matches!(operation.parent, ReplyTo::Nobody)
        })
    }

    /// The client of this change is answered; the change goes on until all peers have it.
    fn time_out(&mut self, id: OperationId) {
        let Some(operation) = self.copies.operations.get_mut(id) else {
            return;
        };
        let parent = std::mem::replace(&mut operation.parent, ReplyTo::Nobody);
        let change = match &operation.stage {
            Stage::Replicating { change, .. } => *change,
            _ => None,
        };
        let fleet = self.copies.fleet.as_ref();
        let names = change.and_then(|change| Some(fleet?.keeper.awaited_names(change)));
        let text = format!(
            "not all peers have taken this change in time: {}",
            names.unwrap_or_default()
        );
        self.fail(parent, &Failed::here(Outcome::Timeout, &text));
    }

    /// Fills in the gauges.
    pub fn report_fleet(&self, metrics: &mut metrics::Fleet) {
        let Some(fleet) = self.copies.fleet.as_ref() else {
            return;
        };
        metrics.doubts = fleet.keeper.doubts() as u64;
        let missed = fleet.keeper.missed_counts();
        metrics.missed = missed.map(|(peer, keys)| (peer.to_owned(), keys)).collect();
    }

    /// Tells the control thread up to which view decisions have ended here, and hears it of the others.
    pub(super) fn tell_settled(&mut self) {
        let worker = self.facts.worker;
        let Some(fleet) = self.copies.fleet.as_mut() else {
            return;
        };
        let operations = &self.copies.operations;
        fleet.keeper.end_decisions(|token| {
            let operation = operations.get(OperationId::from_bits(token));
            operation.is_some_and(|operation| operation.stage.is_decision())
        });
        let settled = fleet.settled();
        fleet.keeper.settle(settled);
        let mine = fleet.keeper.settled();
        if mine > fleet.settled_told {
            fleet.settled_told = mine;
            let event = Event::Settled { worker, view: mine };
            self.actions.events.push(WorkerEvent::Peer(event));
        }
    }
}
