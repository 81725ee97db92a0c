//! A pool for which its protocol keeps a state, with its members.

use std::sync::Arc;

use crate::{
    members::{Member, Pool},
    protocol::{MemberFacts, PoolMembers, PoolState},
};

/// A pool with a state, and its members in the order of the configuration.
#[derive(Clone, Debug)]
pub struct StatefulPool {
    /// The pool, which holds the state.
    pub(crate) pool: Arc<Pool>,
    /// Its members.
    pub(crate) members: Arc<[Arc<Member>]>,
}

impl StatefulPool {
    pub(in crate::route) fn state(&self) -> Option<&dyn PoolState> {
        self.pool.state.as_deref()
    }

    /// The member that is the whole pool to a client; `None`: each is a server of its own.
    pub(crate) fn primary(&self) -> Option<&Arc<Member>> {
        self.members.get(self.state()?.primary(self)?)
    }
}

/// Two are the same if their pool is.
impl PartialEq for StatefulPool {
    fn eq(&self, other: &Self) -> bool {
        self.pool.id == other.pool.id
    }
}

impl Eq for StatefulPool {}

impl PoolMembers for StatefulPool {
    fn count(&self) -> usize {
        self.members.len()
    }

    fn at(&self, position: usize) -> Option<MemberFacts<'_>> {
        let member = self.members.get(position)?;
        Some(MemberFacts {
            address: &member.address,
            name: &member.name,
            is_up: member.is_up(),
            weight: member.weight,
            distance: member.distance as u8,
            zone: member.zone.as_deref(),
            reached: &member.reached,
            noted: &member.noted,
        })
    }
}
