//! The members of pools: copies, ejections, roles, and the orders of operators for them.
//!
//! * `connection`, `probe`, `monitor`: how the control thread talks to a member
//! * `copies`: replicated pools, whose members may miss writes
//! * `ejections`: members that are not asked for a while
//! * `roles`, `closings`: pools that have one writer
//! * `orders`: drains, holds and writers that operators order

pub(in crate::control) mod closings;
pub(in crate::control) mod connection;
pub(in crate::control) mod copies;
pub(in crate::control) mod ejections;
pub(in crate::control) mod monitor;
pub(in crate::control) mod orders;
pub(in crate::control) mod probe;
pub(in crate::control) mod roles;

use std::sync::Arc;

use self::{copies::Copies, ejections::Ejections};
use crate::{
    copies::{Departed, Snapshot},
    members::Member,
};

/// The members, their copies and their ejections.
pub(super) struct Membership {
    /// All members of the running configuration, departed copies included.
    members: Vec<Arc<Member>>,
    /// Copies that have left the lists of servers and may return.
    departed: Departed,
    copies: Copies,
    ejections: Ejections,
}

impl Membership {
    /// No member yet.
    pub(super) fn new(copies: Copies) -> Self {
        Self {
            members: Vec::new(),
            departed: Departed::default(),
            copies,
            ejections: Ejections::default(),
        }
    }

    /// All members of the running configuration, departed copies included.
    pub(super) fn members(&self) -> &[Arc<Member>] {
        &self.members
    }

    /// Copies that have left the lists of servers and may return.
    pub(super) fn departed(&self) -> &Departed {
        &self.departed
    }

    /// The copies of replicated pools.
    pub(super) fn copies(&self) -> &Copies {
        &self.copies
    }

    /// The states of all copies, for `explain`.
    pub(super) fn snapshot(&self) -> Snapshot {
        self.copies.snapshot(&self.members)
    }

    /// Takes the members of another configuration, which every worker is about to serve by.
    pub(super) fn replace(&mut self, members: Vec<Arc<Member>>, departed: Departed) {
        self.members = members;
        self.departed = departed;
    }
}
