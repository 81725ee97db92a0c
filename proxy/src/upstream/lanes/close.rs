//! Orders to close the connections to a member.

use std::sync::mpsc::Sender;

use proxima_wire::message::Outcome;

use crate::{
    engine::{Engine, LaneId},
    protocol::Retention,
    upstream::{Close, Closed, Lane},
};

/// The error text for a request whose connection was closed by an order.
pub(super) const CLOSED: &str = "its connection was closed by an order";

/// The connections that an order closes, and who is told when all of them have ended.
#[derive(Debug)]
pub(in crate::upstream) struct Closing {
    closed: Closed,
    when: Close,
    lanes: Vec<LaneId>,
    done: Sender<()>,
}

impl Engine {
    /// Closes these connections, as far as there are any now. New requests open others. `done` is told when
    /// all of them have ended.
    pub fn close_lanes(&mut self, closed: Closed, when: Close, done: Sender<()>) {
        let lanes = self.servers.lanes.iter();
        let lanes: Vec<LaneId> = lanes
            .filter(|(_, lane)| closed.is_to(&lane.member))
            .map(|(id, _)| id)
            .collect();
        for &id in &lanes {
            let Some(lane) = self.servers.lanes.get_mut(id) else {
                continue;
            };
            // Of two orders the stronger one holds.
            lane.closes = lane.closes.max(Some(when));
            let shared = &mut self.servers.by_member[lane.member.id.0 as usize].shared;
            if shared.get(lane.login) == Some(id) {
                shared.unset(lane.login);
            }
        }
        if matches!(when, Close::Now | Close::ForGood) {
            self.fail_queue(&closed);
        }
        if when == Close::Now {
            for &id in &lanes {
                self.end_lane(id, Outcome::ConnectError, CLOSED);
            }
        }
        if when == Close::ForGood {
            // Nobody waits for an earlier one, which lanes that do not end may keep: there may be many.
            let is_earlier = |closing: &Closing| closing.closed == closed && closing.when == when;
            self.servers.closings.retain(|closing| !is_earlier(closing));
        }
        self.servers.closings.push(Closing {
            closed,
            when,
            lanes,
            done,
        });
        self.check_closings();
    }

    /// Closes connections whose order can be followed now.
    pub(in crate::upstream) fn check_closings(&mut self) {
        if self.servers.closings.is_empty() {
            return;
        }
        let closings = self.servers.closings.iter().flat_map(|closing| &closing.lanes);
        let due = closings.copied().filter(|&id| {
            let lane = self.servers.lanes.get(id);
            lane.is_some_and(|lane| self.may_close(id, lane))
        });
        let due: Vec<LaneId> = due.collect();
        for id in due {
            self.drop_lane(id, CLOSED);
        }
        let lanes = &self.servers.lanes;
        self.servers.closings.retain_mut(|closing| {
            closing.lanes.retain(|&id| lanes.get(id).is_some());
            if closing.lanes.is_empty() {
                // The task that gave the order may have ended.
                let _ = closing.done.send(());
            }
            !closing.lanes.is_empty()
        });
    }

    /// May this connection be closed by its order now?
    fn may_close(&self, id: LaneId, lane: &Lane) -> bool {
        let rests = lane.is_unused() && !lane.is_streaming();
        let keeps = lane.owner.is_some_and(|owner| {
            let retention = self.clients.retention(owner).unwrap_or_default();
            // What a client will certainly ask for is kept for a second at most.
            let asks = retention == Retention::Brief && lane.closes == Some(Close::ForGood);
            retention != Retention::Clean && (asks || !retention.is_passing())
                || self.clients.is_subscribed_on(owner, lane.member.id, id)
        });
        match lane.closes {
            None => false,
            Some(Close::Now) => true,
            Some(Close::AfterReply) => rests,
            Some(Close::WhenIdle | Close::ForGood) => rests && !keeps,
        }
    }
}
