//! What the account of a pod must be allowed to do.

use std::fmt;

/// A right to objects of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Right {
    verbs: &'static str,
    what: &'static str,
}

/// To follow the endpoints of Services.
pub(in crate::control) const SLICES: Right = Right {
    verbs: "get, list and watch",
    what: "endpointslices of discovery.k8s.io",
};

/// To begin a fleet.
pub(in crate::control) const LEASES: Right = Right {
    verbs: "get, create and update",
    what: "leases of coordination.k8s.io",
};

/// To keep keys.
pub(in crate::control) const SECRETS: Right = Right {
    verbs: "get, create and update",
    what: "secrets",
};

/// A right in a namespace, which a request needs.
#[derive(Clone, Copy, Debug)]
pub(in crate::control) struct Needed<'a> {
    pub(super) right: Right,
    pub(super) namespace: &'a str,
}

impl Right {
    /// The right in this namespace.
    pub(in crate::control) fn of(self, namespace: &str) -> Needed<'_> {
        Needed {
            right: self,
            namespace,
        }
    }
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the verbs {} for {}", self.verbs, self.what)
    }
}
