//! The surroundings: DNS, discovery, the node agent, this machine, and files of certificates.

pub(in crate::control) mod certificates;
pub(in crate::control) mod discovery;
pub(in crate::control) mod dns;
pub(in crate::control) mod file_watcher;
pub(in crate::control) mod host;
pub(in crate::control) mod nodes;
