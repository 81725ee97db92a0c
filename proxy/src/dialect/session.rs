//! What a codec knows of a client.

/// From the first byte of a client's connection to its last. What the words mean is the codec's business, but for the last two.
#[derive(Debug, Default)]
pub struct Session {
    /// How far the login is.
    pub step: u32,
    /// What must be remembered (a salt, a user's name).
    pub notes: Vec<u8>,
    /// How this client has asked its replies to be written (in which version of the protocol); all that the tree is told of it.
    pub form: u16,
    /// Something that the client has said changes what even a read, write or delete of one key means: each is planned too.
    pub plans_all: bool,
}
