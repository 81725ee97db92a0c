//! What operators are told of a lane that one client has.

use std::sync::Arc;

use super::Servers;
use crate::{engine::LaneId, members::Member, micros::Micros};

/// A lane that one client has.
#[derive(Clone, Debug)]
pub struct LaneFacts {
    /// The server at the other end.
    pub member: Arc<Member>,
    /// The number by which the server knows the connection; `None` if it has told none.
    pub number: Option<u64>,
    /// Time for which it is the client's.
    pub owned: Micros,
    /// The server does something there for the client.
    pub works: bool,
}

impl Servers {
    /// The facts about this lane; `None` if the lane has ended.
    pub(crate) fn lane_facts(&self, id: LaneId, now: Micros) -> Option<LaneFacts> {
        let lane = self.lanes.get(id)?;
        Some(LaneFacts {
            member: Arc::clone(&lane.member),
            number: lane.member.protocol.connection_number(&lane.state),
            owned: now - lane.owned,
            works: lane.is_working(),
        })
    }
}
