//! Why an endpoint has not named its nodes.

use crate::{members::discovery::BadReply, tls::TlsError};

/// Why there is no list. The list before stays in use.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DiscoveryFailure {
    /// The look-up of its name fails.
    #[error("its name does not resolve: {0}")]
    Name(String),
    /// The certificates of this proxy cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// It does not accept a connection; it may later.
    #[error("cannot connect: {0}")]
    Connect(String),
    /// The answer is not there, or not whole, in time.
    #[error("no whole answer in time")]
    Late,
    /// The connection ends before the answer does.
    #[error("the connection ends before its answer: {0}")]
    Cut(String),
    /// It is a server without a list.
    #[error("it has no list of nodes: auto discovery is not configured there")]
    Nothing,
    /// It knows none of the questions.
    #[error("it does not know auto discovery")]
    Unknown,
    /// It answers what is no list.
    #[error(transparent)]
    Bad(#[from] BadReply),
}
