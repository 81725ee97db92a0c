//! The choice of a lane for a request, and the opening of lanes.

use std::sync::Arc;

use super::{Arrival, BULK_LANES, Hold, Lane, LaneId, Lanes, Pace, Phase, Proofs};
use crate::{engine::Engine, members::Member, protocol::StateSlot, stream::Stream};

impl Engine {
    /// The lanes to this member; an empty set is made if there is none yet.
    pub(super) fn lanes_of(&mut self, member: &Member) -> &mut Lanes {
        let number = member.id.0 as usize;
        if self.servers.by_member.len() <= number {
            self.servers.by_member.resize_with(number + 1, Lanes::default);
        }
        &mut self.servers.by_member[number]
    }

    /// The lane for small requests to this member with this login; opened if there is none.
    #[inline(always)]
    pub(super) fn shared_lane(&mut self, member: &Arc<Member>, login: u16) -> LaneId {
        match self.lanes_of(member).shared(login) {
            Some(id) => id,
            None => self.open_shared_lane(member, login),
        }
    }

    /// It is not inlined, so that [`shared_lane`](Self::shared_lane) is.
    #[cold]
    #[inline(never)]
    fn open_shared_lane(&mut self, member: &Arc<Member>, login: u16) -> LaneId {
        let id = self.open_lane(member, login, false);
        self.lanes_of(member).share(login, id);
        id
    }

    /// Opens the lanes to members that are to be connected before anything is asked of them.
    pub(crate) fn preconnect(&mut self) {
        for member in self.tree.members() {
            if member.preconnect && member.is_up() {
                self.shared_lane(&member, 0);
            }
        }
    }

    /// A lane for one large message to this member with this login: an idle one or a fresh one.
    pub(super) fn bulk_lane(&mut self, member: &Arc<Member>, login: u16) -> LaneId {
        self.lanes_of(member);
        let lanes = &mut self.servers.by_member[member.id.0 as usize];
        let is_its = |&idle: &LaneId| {
            self.servers
                .lanes
                .get(idle)
                .is_some_and(|lane| lane.login == login)
        };
        if let Some(at) = lanes.idle.iter().position(is_its) {
            return lanes.idle.swap_remove(at);
        }
        // An idle lane with another login is of no use here, and takes a place.
        if lanes.bulk as usize >= BULK_LANES
            && let Some(other) = lanes.idle.pop()
        {
            self.drop_lane(other, "");
        }
        let id = self.open_lane(member, login, true);
        self.lanes_of(member).bulk += 1;
        id
    }

    /// Opens a lane to this member. The worker makes the connection.
    pub(super) fn open_lane(&mut self, member: &Arc<Member>, login: u16, bulk: bool) -> LaneId {
        self.servers.logins.lane_opened(login);
        let now = self.now;
        let id = self.servers.lanes.insert(|generation| Lane {
            generation,
            member: Arc::clone(member),
            stream: Stream {
                transform: member.protocol.transform(member.end()),
                ..Stream::default()
            },
            local: None,
            phase: Phase::Connecting,
            state: StateSlot::NONE,
            fitted: member.protocol.fits_requests(),
            unwritten: Vec::new(),
            part_left: 0,
            held: Vec::new(),
            waiters: Default::default(),
            bulk,
            login,
            dedicated: false,
            owner: None,
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
            waits_for_owner: false,
            is_woken: false,
            free: now,
            active: now,
            given: 0,
            received: 0,
            uptake: None,
            hold: Hold::default(),
            pace: Pace::since(now),
        });
        self.actions.connect.push(id);
        self.metrics.lanes_opened += 1;
        id
    }
}
