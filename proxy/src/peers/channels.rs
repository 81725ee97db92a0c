//! All channels of one worker.

use super::{Channel, Role};
use crate::{
    engine::ChannelId,
    fleet::{Slot, Stay},
    stream::Stream,
    table::Table,
};

/// All channels of one worker.
#[derive(Default)]
pub struct Channels {
    table: Table<Channel>,
    /// The channel by which this worker reaches a peer, by the peer's slot.
    outward: Vec<Option<ChannelId>>,
}

impl Channels {
    /// Adds a channel. One that this worker had to the same peer before is returned, to be closed.
    pub(crate) fn add(
        &mut self,
        slot: Slot,
        stay: Stay,
        role: Role,
        stream: Stream,
    ) -> (ChannelId, Option<ChannelId>) {
        let id = self
            .table
            .insert(|generation| Channel::new(generation, slot, stay, role, stream));
        let before = match role {
            Role::Coordinator => {
                let at = usize::from(slot.0);
                if self.outward.len() <= at {
                    self.outward.resize(at + 1, None);
                }
                self.outward[at].replace(id)
            }
            Role::Keeper { .. } => {
                let mut others = self.table.iter();
                let same = |other: &Channel| (other.slot, other.role) == (slot, role);
                others
                    .find(|&(other, channel)| other != id && same(channel))
                    .map(|(other, _)| other)
            }
        };
        (id, before)
    }

    /// The channel by which this worker reaches that stay of a peer; `None`: there is none at the moment.
    pub(crate) fn to(&self, slot: Slot, stay: Stay) -> Option<ChannelId> {
        let id = (*self.outward.get(usize::from(slot.0))?)?;
        self.table
            .get(id)
            .is_some_and(|channel| channel.stay == stay)
            .then_some(id)
    }

    /// The channel of this handle; `None`: it has ended.
    pub(crate) fn get(&self, id: ChannelId) -> Option<&Channel> {
        self.table.get(id)
    }

    /// The channel of this handle; `None`: it has ended.
    pub(crate) fn get_mut(&mut self, id: ChannelId) -> Option<&mut Channel> {
        self.table.get_mut(id)
    }

    /// Takes a channel out.
    pub(crate) fn remove(&mut self, id: ChannelId) -> Option<Channel> {
        let channel = self.table.remove(id)?;
        if let Some(outward) = self.outward.get_mut(usize::from(channel.slot.0))
            && *outward == Some(id)
        {
            *outward = None;
        }
        Some(channel)
    }

    /// All channels.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (ChannelId, &Channel)> {
        self.table.iter()
    }

    /// Bytes of memory that they take.
    pub(crate) fn holds(&self) -> usize {
        self.table.iter().map(|(_, channel)| channel.holds()).sum()
    }
}
