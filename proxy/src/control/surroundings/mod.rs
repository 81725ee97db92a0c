//! The surroundings: DNS, discovery, Kubernetes, the node agent, this machine, and files.

pub(in crate::control) mod certificates;
pub(in crate::control) mod discovery;
pub(in crate::control) mod dns;
pub(in crate::control) mod file_watcher;
pub(in crate::control) mod host;
pub(in crate::control) mod kubernetes;
pub(in crate::control) mod nodes;

use std::sync::Arc;

use self::nodes::Agent;
use crate::{
    members::Localities,
    route::{Orders, Tree},
};

/// What the node agent tells.
#[derive(Default)]
pub(super) struct Surroundings {
    /// Where processes run; `None`: the agent has told nothing, or there is none.
    localities: Option<Arc<Localities>>,
    agent: Agent,
}

impl Surroundings {
    /// Where processes run; `None`: nobody has told.
    pub(super) fn localities(&self) -> Option<&Localities> {
        self.localities.as_deref()
    }

    /// The state of the node agent, and where processes run as far as it has told that.
    pub(super) fn agent(&self) -> (Agent, Option<Arc<Localities>>) {
        (self.agent.clone(), self.localities.clone())
    }

    /// The orders of `nearest` in this tree.
    pub(super) fn orders(&self, tree: &Tree) -> Orders {
        let localities = self.localities.as_deref();
        localities.map_or_else(Orders::default, |localities| tree.orders(localities))
    }
}
