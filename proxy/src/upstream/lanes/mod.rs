//! The lanes of one worker to one member, by their kinds.

mod ahead;
mod bulk;
mod cancels;
mod close;
mod dedicated;
mod full;
mod missed;
mod passing;
mod queue;
mod release;
mod room;
mod shared;

pub use self::bulk::{BULK_LANES, STREAMED};
use self::{bulk::Bulk, cancels::Cancels, dedicated::Dedicated, shared::Shared};
pub(super) use self::{cancels::Cancel, close::Closing};
pub(crate) use self::{dedicated::ELSEWHERE, queue::LanePurpose};
use crate::{
    engine::{Engine, LaneId},
    members::Member,
};

/// A worker's lanes to one member.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    pub(super) shared: Shared,
    pub(super) bulk: Bulk,
    /// The lane for requests of the pool's own.
    pub(super) own: Option<LaneId>,
    /// `None` until something is to be ended.
    pub(super) cancels: Option<Box<Cancels>>,
    /// `None` until a client has a dedicated lane.
    pub(super) dedicated: Option<Box<Dedicated>>,
}

impl Engine {
    /// The lanes to this member; an empty set is made if there is none yet.
    pub(super) fn lanes_of(&mut self, member: &Member) -> &mut Lanes {
        let number = member.id.0 as usize;
        if self.servers.by_member.len() <= number {
            self.servers.by_member.resize_with(number + 1, Lanes::default);
        }
        &mut self.servers.by_member[number]
    }
}
