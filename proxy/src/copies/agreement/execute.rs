//! Executes the agreement's actions, in the same order on the control thread and in the worlds of tests.

use std::collections::VecDeque;

use super::{Act, Agreement, Proposal, RepairTask};
use crate::members::ServerIdentity;

/// The surroundings of an agreement: participants, the state file and the servers.
pub trait Environment {
    /// Puts a proposal into the mailbox of every participant, behind those before it.
    fn propose(&mut self, agreement: &Agreement, proposal: Proposal);

    /// Has the state file written. Returns whether that is done; if not, [`Agreement::saved`] is called when
    /// it is.
    fn save(&mut self, agreement: &Agreement, server: &ServerIdentity, epoch: u64) -> bool;

    /// Begins to probe a copy that is out; [`Agreement::reachable`] is called with the result.
    fn watch(&mut self, server: ServerIdentity, epoch: u64, setbacks: u32);

    /// Begins a repair; [`Agreement::repaired`] is called when it ends.
    fn repair(&mut self, task: RepairTask);
}

impl Agreement {
    /// Carries out these acts, and those that follow at once, in order: participants hear proposals in the
    /// order in which they were made.
    pub fn execute(&mut self, acts: Vec<Act>, environment: &mut impl Environment) {
        let mut acts = VecDeque::from(acts);
        while let Some(act) = acts.pop_front() {
            match act {
                Act::Propose(proposal) => environment.propose(self, proposal),
                Act::Save { server, epoch } => {
                    if environment.save(self, &server, epoch) {
                        acts.extend(self.saved(&server, epoch));
                    }
                }
                Act::Watch {
                    server,
                    epoch,
                    setbacks,
                } => environment.watch(server, epoch, setbacks),
                Act::Repair(task) => environment.repair(task),
            }
        }
    }
}
