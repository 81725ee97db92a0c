//! Why a configuration does not take effect.

use std::io;

use crate::{config::ConfigError, control::surroundings::dns::LookupFailure, route::CompileError};

/// A configuration was refused; the running one stays.
#[derive(Debug, thiserror::Error)]
pub enum ReloadError {
    /// The configuration, or a file that it names, has mistakes. The operator has to correct them.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The configuration is correct in itself, but this program cannot serve it. The operator has to change
    /// it.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// The network is at fault, or the operator if there never is such a name. A retry may help.
    #[error("pool {pool}: no answer for {name} ({failure}); the change takes effect when there is one")]
    Unanswered {
        /// The pool whose servers the network names.
        pool: String,
        /// The name that was asked for.
        name: String,
        /// Why there is no answer.
        failure: LookupFailure,
    },
    /// The operator has to choose another address, or to stop the process that listens there.
    #[error("cannot listen on {address}: {source}{}", hint(.source))]
    Bind {
        /// The listener's address as configured.
        address: String,
        /// The error of the system.
        source: io::Error,
    },
    /// The system gives no threads for the spool of failed deletes. A retry may help.
    #[error("no threads for the spool of failed deletes: {0}")]
    Spool(io::Error),
    /// The proxy is at fault: the change panicked. The log says where; the operator has to report it.
    #[error("the change panicked (a bug); the log says where")]
    Panicked,
}

impl ReloadError {
    /// Whether the same configuration may be accepted later without the operator's doing. It is then tried
    /// again.
    pub(super) fn retry_may_help(&self) -> bool {
        matches!(self, Self::Unanswered { .. })
    }
}

fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => " (another process, maybe another proxima, listens there)",
        io::ErrorKind::PermissionDenied => " (ports below 1024 need CAP_NET_BIND_SERVICE)",
        _ => "",
    }
}
