//! The codec's state of a client.

/// State from the first byte of a client's connection to its last. Only the codec knows what `step` and
/// `notes` mean.
#[derive(Debug, Default)]
pub struct Session {
    /// The next step of the login.
    pub step: u32,
    /// Data that a later step needs (a salt, a user's name).
    pub notes: Vec<u8>,
    /// The login that the client's requests use at servers (user, database, version), in the codec's words;
    /// empty: the pool's own.
    pub login: Vec<u8>,
    /// How the client wants its replies written (in which version of the protocol). The tree gets no other
    /// part of the session.
    pub form: u16,
    /// What the server keeps for the client on its dedicated lane.
    pub lease: Lease,
    /// The number of the client's connection, which no other client of the process has.
    pub id: u64,
    /// Every earlier request of the client is answered.
    pub is_idle: bool,
    /// The client's listener leads to the embedded store, and nowhere else.
    pub is_embedded: bool,
    /// The client has said something that changes the meaning even of a read, write or delete of one key:
    /// each is planned too.
    pub plans_all: bool,
}

/// What a server keeps for a client on its dedicated lane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lease {
    /// The server keeps nothing: the lane is free for another client after its last reply.
    #[default]
    Clean,
    /// The server keeps a transaction or a subscription: the lane stays the client's.
    Kept,
    /// The server keeps something that no other client may find: the lane is closed after its last reply.
    Spoilt,
}
