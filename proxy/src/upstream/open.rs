//! The opening of lanes.

use std::{collections::VecDeque, sync::Arc};

use super::{Arrival, Lane, Pace, PauseTime, Phase, Proofs};
use crate::{
    engine::{Engine, LaneId},
    members::Member,
    micros::Micros,
    protocol::StateSlot,
    stream::Stream,
};

impl Engine {
    /// Opens a lane to this member. The worker makes the connection.
    pub(super) fn open_lane(&mut self, member: &Arc<Member>, login: u16, bulk: bool) -> LaneId {
        self.servers.logins.lane_opened(login);
        let now = self.now;
        let id = self.servers.lanes.insert(|generation| Lane {
            generation,
            member: Arc::clone(member),
            stream: Stream {
                transform: member.first_transform(),
                ..Stream::default()
            },
            local: None,
            phase: Phase::Connecting,
            state: StateSlot::NONE,
            fitted: member.protocol.fits_requests(),
            awaits_before: false,
            due: Micros::ZERO,
            overdue: None,
            waits: 0,
            gets_more: false,
            unwritten: Vec::new(),
            part_left: 0,
            held: Vec::new(),
            waiters: Default::default(),
            bulk,
            login,
            dedicated: false,
            owner: None,
            owned: now,
            limited: false,
            proofs: Proofs::of(member),
            holding: true,
            arrival: Arrival::Past,
            greeted: false,
            lost: 0,
            limit: String::new(),
            uploading: None,
            download: None,
            part_bytes: 0,
            parts: Vec::new(),
            confirmation: Vec::new(),
            pushed: 0,
            charged: 0,
            cancels: 0,
            is_passing: false,
            resets: false,
            closes: None,
            waits_for_owner: false,
            is_woken: false,
            free: now,
            active: now,
            given: 0,
            received: 0,
            uptake: None,
            pause_time: PauseTime::default(),
            pace: Pace::since(now),
            changes: VecDeque::new(),
            unanswered: VecDeque::new(),
            queued_changes: Vec::new(),
            has_uncounted: false,
        });
        self.actions.connect.push(id);
        self.metrics.lanes_opened += 1;
        id
    }
}
