//! The steps of a client's login.

/// The next step of a login.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Step {
    /// The client is greeted.
    #[default]
    Greet,
    /// The client says who it is, or asks for TLS.
    Hear,
    /// TLS has begun: the client says who it is.
    HearWithinTls,
    /// The client claims to be another user, and is asked for a proof.
    Again(Claim),
    /// The client answers by the method for which it was asked.
    Switched(Claim),
    /// The client says its password.
    Password(Claim),
    /// The client has the key with which it encrypts its password.
    Encrypted(Claim),
    /// A server is asked.
    Asked,
    /// The client is a user.
    Over,
}

/// The user and the schema that a client names, until it has proved that it is that user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Claim {
    pub(super) user: Vec<u8>,
    pub(super) schema: Vec<u8>,
    pub(super) method: Vec<u8>,
}

impl Claim {
    /// Bytes of memory that the client fills in it.
    pub(super) fn memory(&self) -> usize {
        self.user.capacity() + self.schema.capacity() + self.method.capacity()
    }
}

impl Step {
    /// Bytes of memory that the client fills in it.
    pub(super) fn memory(&self) -> usize {
        match self {
            Self::Again(claim) | Self::Switched(claim) | Self::Password(claim) | Self::Encrypted(claim) => {
                claim.memory()
            }
            Self::Greet | Self::Hear | Self::HearWithinTls | Self::Asked | Self::Over => 0,
        }
    }
}
