//! Why the API server tells nothing.

use std::{io, mem::discriminant};

use super::rights::Right;
use crate::{members::endpoints::BadAnswer, tls::TlsError};

/// Why there is no answer. What is known stays in use.
#[allow(missing_docs, reason = "the messages say it")]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApiFailure {
    #[error("this process is in no pod: KUBERNETES_SERVICE_HOST is not set")]
    NoPod,
    #[error("{path}: {why} (does the pod have `automountServiceAccountToken: false`?)")]
    Account { path: String, why: String },
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error("cannot connect: {0}")]
    Connect(String),
    #[error("no answer in time")]
    Late,
    #[error("its answer ends before its end: {0}")]
    Cut(String),
    #[error("it does not take the token of this pod's ServiceAccount (401)")]
    Unknown,
    #[error(
        "this pod's ServiceAccount may not (403): it needs a Role in the namespace {namespace} with {right}, and a \
         RoleBinding"
    )]
    Forbidden { namespace: String, right: Right },
    #[error("it answers {0}")]
    Status(u16),
    #[error("its answer is no object")]
    NoObject,
    #[error("an object, or a page of its list, is longer than {0} bytes")]
    TooLong(usize),
    #[error(transparent)]
    Bad(#[from] BadAnswer),
}

impl ApiFailure {
    /// Whether both failures are of the same kind, whatever their details.
    pub(in crate::control) fn is_same_kind(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Bad(one), Self::Bad(other)) => discriminant(one) == discriminant(other),
            _ => discriminant(self) == discriminant(other),
        }
    }
}

impl From<io::Error> for ApiFailure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::TimedOut => Self::Late,
            _ => Self::Connect(error.to_string()),
        }
    }
}
