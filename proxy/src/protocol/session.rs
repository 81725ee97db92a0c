//! The session of a client, for its codec.

use std::fmt;

use super::{Access, StateSlot};

/// State from the first byte of a client's connection to its last.
pub struct Session {
    /// The codec's own state.
    pub state: StateSlot,
    /// The login that the client's requests use at servers (user, database, version), in the codec's words;
    /// empty: the pool's own.
    pub login: Vec<u8>,
    /// The login that clients of the listener need before they are served.
    pub access: Access,
    /// The client has named its library, and that was not counted yet.
    pub has_named_library: bool,
    /// The form in which the client wants its replies (the version of the protocol). The tree gets no other
    /// part of the session.
    pub form: u16,
    /// The state that the server keeps for the client on its dedicated lane.
    pub retention: Retention,
    /// The request that is planned needs nothing that the server keeps on the client's lane, which is given
    /// back before.
    pub leaves_lane: bool,
    /// The request that is planned takes the way of the tree, which may lead it elsewhere, although the
    /// client has a lane: that is of use to it, and it can do without.
    pub follows_tree: bool,
    /// The number of the client's connection, which no other client of the process has.
    pub id: u64,
    /// Every earlier request of the client is answered.
    pub is_idle: bool,
    /// The servers that the client's requests can reach, as it is when one of them is planned.
    pub reach: Reach,
    /// The client has subscriptions.
    pub has_subscriptions: bool,
    /// The client's listener leads to the embedded store, and nowhere else.
    pub is_embedded: bool,
    /// The client has said something that changes the meaning even of a read, write or delete of one key:
    /// each is planned too.
    pub plans_all: bool,
}

impl Session {
    /// The session of a client that has connected.
    pub const NEW: Self = Self {
        state: StateSlot::NONE,
        login: Vec::new(),
        access: Access::Open,
        has_named_library: false,
        form: 0,
        retention: Retention::Clean,
        leaves_lane: false,
        follows_tree: false,
        id: 0,
        is_idle: false,
        reach: Reach {
            is_one: false,
            database: 0,
            version: 0,
        },
        has_subscriptions: false,
        is_embedded: false,
        plans_all: false,
    };

    /// The session for requests that no client has made.
    pub const NOBODY: &Self = &Self::NEW;

    /// Has the client a dedicated lane on which the server keeps something for it?
    pub const fn has_lane(&self) -> bool {
        matches!(self.retention, Retention::Kept) || self.retention.is_passing()
    }

    /// Bytes of memory that clients fill, used or not.
    pub fn memory(&self) -> usize {
        self.state.memory() + self.login.capacity()
    }
}

/// No password is shown, nor any other word of the client.
impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("id", &self.id)
            .field("form", &self.form)
            .field("access", &self.access)
            .field("retention", &self.retention)
            .finish_non_exhaustive()
    }
}

impl Default for Session {
    fn default() -> Self {
        Self::NEW
    }
}

/// The servers that the requests of a client can reach.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reach {
    /// It is a single server, and nothing else.
    pub is_one: bool,
    /// The number of the database that the pool's own login has.
    pub database: u32,
    /// A server's version, in the codec's words ([`ServerLogin`]); 0 before any server has told it.
    ///
    /// [`ServerLogin`]: super::ServerLogin
    pub version: u64,
}

impl Retention {
    /// Does the server keep nothing but what the last request has left, which the client can do without?
    pub const fn is_passing(self) -> bool {
        matches!(self, Self::Loose | Self::Firm | Self::Brief)
    }
}

/// The state that a server keeps for a client on its dedicated lane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Retention {
    /// The server keeps nothing: the lane is free for another client after its last reply.
    #[default]
    Clean,
    /// The server keeps only what the last request has left, for which few clients ask. The lane stays the
    /// client's for a second, or until another client wants one and finds none idle; what is left is lost
    /// then.
    Loose,
    /// The server keeps what the last request has left, and the client is likely to ask for it. The lane
    /// stays the client's for a second, or until another client wants one and can open none.
    Firm,
    /// The same, and the client will ask for it: the lane stays the client's for a second.
    Brief,
    /// The server keeps something, as the beginning of a transaction: the lane stays the client's.
    Kept,
    /// The server keeps nothing but the login that the session has now: after its last reply, the lane is
    /// free for another client with that login.
    Moved,
    /// The server keeps something that it forgets when it is [reset](super::ServerSide::reset): after its
    /// last reply, the lane is reset and then free.
    Dirty,
    /// The server keeps something that no other client may find: the lane is closed after its last reply.
    Spoilt,
}

#[cfg(test)]
mod tests {
    use super::Session;

    #[test]
    fn nothing_that_a_client_has_said_is_shown() {
        let said = || b"secret".to_vec();
        let session = Session {
            login: said(),
            ..Session::NEW
        };
        let shown = format!("{session:?}");
        assert!(shown.starts_with("Session {"), "{shown}");
        let bytes = format!("{:?}", b"secret");
        assert!(
            !shown.contains("secret") && !shown.contains(&bytes[1..8]),
            "{shown}"
        );
    }
}
