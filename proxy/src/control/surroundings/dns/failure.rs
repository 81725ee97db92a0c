//! Why a look-up has no usable answer.

use std::mem::discriminant;

use hickory_resolver::{
    net::{DnsError, NetError},
    proto::op::ResponseCode,
};

use crate::control::surroundings::{discovery::DiscoveryFailure, kubernetes::ApiFailure};

/// More servers than any real answer has.
pub(super) const LIMIT: usize = 10_000;

/// Why an answer cannot be used. The answer before it stays in use.
#[allow(missing_docs, reason = "the messages say it")]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LookupFailure {
    #[error("there is no such name")]
    NoName,
    #[error("the name has no such records")]
    NoRecords,
    #[error("the DNS server answers {0}")]
    Refused(ResponseCode),
    #[error("no answer in time")]
    Late,
    #[error("no good answer: {0}")]
    Bad(String),
    #[error("more than {LIMIT} servers")]
    TooMany,
    #[error("whom to ask is not known: {0}")]
    NoServers(String),
    #[error(transparent)]
    Endpoint(#[from] DiscoveryFailure),
    #[error(transparent)]
    Service(#[from] ApiFailure),
}

impl LookupFailure {
    /// Whether both failures are of the same kind, whatever their details.
    pub(super) fn is_same_kind(&self, other: &Self) -> bool {
        let is_same_endpoint = match (self, other) {
            (Self::Endpoint(one), Self::Endpoint(other)) => discriminant(one) == discriminant(other),
            (Self::Service(one), Self::Service(other)) => one.is_same_kind(other),
            _ => true,
        };
        is_same_endpoint && discriminant(self) == discriminant(other)
    }

    /// Whether DNS says that there is nothing: no such name, or no such records.
    pub(super) fn is_nothing(&self) -> bool {
        matches!(self, Self::NoName | Self::NoRecords)
    }
}

impl From<NetError> for LookupFailure {
    fn from(error: NetError) -> Self {
        match error {
            NetError::Timeout => Self::Late,
            NetError::Dns(DnsError::NoRecordsFound(nothing)) => nothing.response_code.into(),
            NetError::Dns(DnsError::ResponseCode(code)) => code.into(),
            other => Self::Bad(other.to_string()),
        }
    }
}

impl From<ResponseCode> for LookupFailure {
    fn from(code: ResponseCode) -> Self {
        match code {
            ResponseCode::NXDomain => Self::NoName,
            ResponseCode::NoError => Self::NoRecords,
            other => Self::Refused(other),
        }
    }
}
