//! What a codec knows of a client.

/// From the first byte of a client's connection to its last. What `step` and `notes` mean is the codec's business.
#[derive(Debug, Default)]
pub struct Session {
    /// How far the login is.
    pub step: u32,
    /// What must be remembered (a salt, a user's name).
    pub notes: Vec<u8>,
    /// As whom its requests are made at servers (user, database, version), in the codec's words; empty: as the pool says.
    pub login: Vec<u8>,
    /// How this client has asked its replies to be written (in which version of the protocol); all that the tree is told of it.
    pub form: u16,
    /// What its server keeps for it on a lane of its own.
    pub lease: Lease,
    /// Something that the client has said changes what even a read, write or delete of one key means: each is planned too.
    pub plans_all: bool,
}

/// What a server keeps for a client on the lane that is the client's own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lease {
    /// Nothing: the lane is another's when its last reply has come.
    #[default]
    Clean,
    /// A transaction, a subscription: the lane stays the client's.
    Kept,
    /// Something that nobody else may find: the lane is closed when its last reply has come.
    Spoilt,
}
