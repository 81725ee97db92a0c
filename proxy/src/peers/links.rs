//! All links of one worker.

use super::{Link, Role};
use crate::{
    engine::LinkId,
    fleet::{Slot, Stay},
    stream::Stream,
    table::Table,
};

/// All links of one worker.
#[derive(Default)]
pub struct Links {
    table: Table<Link>,
    /// The link by which this worker reaches a peer, by the peer's slot.
    outward: Vec<Option<LinkId>>,
}

impl Links {
    /// Adds a link. One that this worker had to the same peer before is returned, to be closed.
    pub(crate) fn add(
        &mut self,
        slot: Slot,
        stay: Stay,
        role: Role,
        stream: Stream,
    ) -> (LinkId, Option<LinkId>) {
        let id = self
            .table
            .insert(|generation| Link::new(generation, slot, stay, role, stream));
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
                let same = |other: &Link| (other.slot, other.role) == (slot, role);
                others
                    .find(|&(other, link)| other != id && same(link))
                    .map(|(other, _)| other)
            }
        };
        (id, before)
    }

    /// The link by which this worker reaches that stay of a peer; `None` while it is broken.
    pub(crate) fn to(&self, slot: Slot, stay: Stay) -> Option<LinkId> {
        let id = (*self.outward.get(usize::from(slot.0))?)?;
        self.table
            .get(id)
            .is_some_and(|link| link.stay == stay)
            .then_some(id)
    }

    /// The link of this handle; `None`: it has ended.
    pub(crate) fn get(&self, id: LinkId) -> Option<&Link> {
        self.table.get(id)
    }

    /// The link of this handle; `None`: it has ended.
    pub(crate) fn get_mut(&mut self, id: LinkId) -> Option<&mut Link> {
        self.table.get_mut(id)
    }

    /// Takes a link out.
    pub(crate) fn remove(&mut self, id: LinkId) -> Option<Link> {
        let link = self.table.remove(id)?;
        if let Some(outward) = self.outward.get_mut(usize::from(link.slot.0))
            && *outward == Some(id)
        {
            *outward = None;
        }
        Some(link)
    }

    /// All links.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (LinkId, &Link)> {
        self.table.iter()
    }

    /// Bytes of memory that they take.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.table.iter().map(|(_, link)| link.memory_bytes()).sum()
    }
}
