//! A protocol's client side: logins, plans for requests, and answers.

use std::sync::Arc;

use proxima_wire::message::{Bad, Class, NextKey, Outcome, Reply, Request};

use super::{
    Admission, AdmissionContext, ConnectionFacts, Control, Declared, Failed, Join, Plan, ProcessCounters,
    Replier, ServerAnswer, Session, StateSlot,
};

/// A protocol's client side: first the methods that every protocol must have, then those with a default.
pub trait ClientSide: Send + Sync {
    /// Appends an error that the proxy itself answers.
    fn error(&self, session: &Session, failed: &Failed<'_>, out: &mut Vec<u8>);

    /// Appends the proxy's answer to a request of this command that has failed. By default that is one error.
    fn failure(&self, session: &Session, _command: u16, failed: &Failed<'_>, out: &mut Vec<u8>) {
        self.error(session, failed, out);
    }

    /// Is the [session](Session) of a client kept from one call to the next? Without it every call gets a new
    /// one. By default it is.
    fn keeps_session(&self) -> bool {
        true
    }

    /// Appends the greeting of a listener's clients, which is sent before a member is chosen. `_said`: what
    /// each member that the listener leads to has told last of itself; the member that is the whole pool to a
    /// client, if there is one, comes first. `_configured`: the version of servers that the listener names.
    /// It is asked again when any of that has changed. By default clients are greeted with nothing.
    fn greeting(&self, _said: &[Arc<[u8]>], _configured: Option<&str>, _out: &mut Vec<u8>) {}

    /// Takes one step of a client's login. The first call, without bytes, comes when the client connects: a
    /// protocol whose server speaks first writes its greeting here. A login may begin anew
    /// ([`Plan::Admit`]). By default clients do not log in.
    fn admit(
        &self,
        _: &mut Session,
        _: &AdmissionContext<'_>,
        _bytes: &[u8],
        _out: &mut Vec<u8>,
    ) -> Admission {
        Admission::Ready { used: 0 }
    }

    /// Takes the step of a login for which a server was [asked](Admission::Ask). It uses no bytes. By default
    /// nothing is asked.
    fn heard(
        &self,
        _: &mut Session,
        _: &AdmissionContext<'_>,
        _: ServerAnswer<'_>,
        _out: &mut Vec<u8>,
    ) -> Admission {
        Admission::Denied
    }

    /// The request as the configuration declares its command, if the codec does not know that; or as this
    /// session makes it a shorter one. By default neither does.
    fn resolve(&self, _: &Session, _: Declared<'_>, _: &Request, _message: &[u8]) -> Option<Request> {
        None
    }

    /// Is each key of this request served as a request of its own, as it comes? The returned [`Join`] says
    /// how the replies are joined; such a request is not planned. Bytes appended to `_begin` are written
    /// before the replies. By default no request is split.
    #[inline]
    fn split(
        &self,
        _: &Session,
        _: &Request,
        _message: &[u8],
        _begin: &mut Vec<u8>,
    ) -> Option<&'static Join> {
        None
    }

    /// The plan for a request. It is asked for once for each request, as soon as the session reaches it. A
    /// read, write or delete of one key walks the tree without this call, unless the
    /// [session](Session::plans_all) wants it. For a value that is passed on as it comes, `message` holds the
    /// bytes that have come.
    ///
    /// By default a request about one key is routed, and any other is rejected. Many clients share a
    /// connection to a server, so no client may change the connection's state; and several keys may belong to
    /// several servers.
    #[inline]
    fn plan(&self, _: &mut Session, request: &Request, _message: &[u8], _out: &mut Vec<u8>) -> Plan {
        match request.class {
            Class::Admin | Class::Session => Plan::Reject("the proxy cannot tell which server this is for"),
            _ if !request.more_keys.is_empty() => Plan::Reject("the proxy takes one key at a time"),
            _ => Plan::Route,
        }
    }

    /// Appends the reply to a request that asks for these [counters](Plan::Counters). By default none does.
    fn counters(&self, _: &Session, _message: &[u8], _: &ProcessCounters, _out: &mut Vec<u8>) {}

    /// Appends the reply to a request that the control thread [answers](Plan::Consult), where no front door
    /// does. It may take as long as a server needs. By default it is an error.
    fn consulted(&self, _message: &[u8], _: &dyn Control, out: &mut Vec<u8>) {
        let failed = Failed::here(Outcome::LocalError, "nobody answers this here");
        self.error(Session::NOBODY, &failed, out);
    }

    /// Appends the reply to a request that asks for these [facts](Plan::Connection). By default none does.
    fn connection(&self, _: &Session, _message: &[u8], _: &ConnectionFacts, _out: &mut Vec<u8>) {}

    /// Parses what comes next in a request that is to be split. `bytes` begin at its first key or behind any
    /// of its keys, and may be incomplete. By default the proxy cannot tell. A mistake that closes the
    /// connection has no reply.
    fn next_key(&self, _: &Request, _bytes: &[u8]) -> NextKey {
        NextKey::Bad(Bad::fatal(b""))
    }

    /// The text in place of an error with this result, with which a server has answered a part of a request
    /// that is [split](super::Requests::spread). `None` to keep the server's own, as by default.
    fn error_of_part(&self, _: Outcome) -> Option<&'static [u8]> {
        None
    }

    /// The member that is asked by a request that [visits](Plan::Visit) several. `numbers` are those of the
    /// members, in ascending order; a member's number is the same in every process, and remains as others
    /// come and go. Appends the request for that member, or, if no member is asked, the reply. By default no
    /// member is.
    fn visit(&self, _message: &[u8], _numbers: &[u16], _out: &mut Vec<u8>) -> Option<usize> {
        None
    }

    /// Appends the reply to a request that cannot be split and whose keys are at several servers: two of
    /// the keys, each with the address of its server. Returns false, and appends nothing, if an error of the
    /// proxy is the answer, as it is by default.
    #[must_use]
    fn apart(
        &self,
        _: &mut Session,
        _: &Request,
        _message: &[u8],
        _: [(&[u8], &str); 2],
        _out: &mut Vec<u8>,
    ) -> bool {
        false
    }

    /// Appends the request for one key of a split request, with the data that belongs to the key. `_head`:
    /// the bytes before the first key.
    fn single(&self, _: &Request, _head: &[u8], _key: &[u8], _out: &mut Vec<u8>) {}

    /// A request of a client for which a server keeps something was rejected here, and has reached no server.
    /// `has_lane`: the client has the lane on which the server keeps it. Returns whether the session is still
    /// what the client believes it to be, or what its next requests will be answered as; otherwise the client
    /// is closed, as by default.
    fn rejected(&self, _: &mut Session, _command: u16, _has_lane: bool) -> bool {
        false
    }

    /// The client's dedicated lane has ended, with what its server kept for the client; `_lane` is what the
    /// codec kept for the lane. What waited there is answered with an error. Returns whether the session has
    /// all that the client relies on, so that its next requests mean the same on another lane; otherwise the
    /// client is closed, as by default. Its retention is [`Retention::Clean`] from then on; where it was so
    /// before, nothing is asked.
    ///
    /// [`Retention::Clean`]: super::Retention::Clean
    fn outlives(&self, _: &mut Session, _lane: &StateSlot) -> bool {
        false
    }

    /// Notes in the session what the server keeps for the client after this reply on a dedicated lane. The
    /// bytes are the complete reply, or its head or last part if it is large, or a part with a trailer, as
    /// the server has sent them: [`finish`](super::ServerSide::finish) sees them behind this. No byte of them
    /// has left yet. By default nothing changes.
    fn answered(&self, _: &mut Session, _by: &Replier<'_>, _command: u16, _: &Reply, _bytes: &[u8]) {}

    /// The first bytes of a part of a reply have come, and are handed on as they are. By default nothing
    /// changes.
    fn begins(&self, _: &mut Session, _by: &Replier<'_>, _command: u16) {}

    /// Is a reply with this outcome kept from a client that asked for quiet? By default every one is: such a
    /// client reads no reply, and would take this one for the answer to its next request.
    fn silenced(&self, _command: u16, _: Outcome) -> bool {
        true
    }

    /// Is the client in a transaction, so that others may wait for what it holds? By default it is if a
    /// server keeps something for it.
    fn is_in_transaction(&self, session: &Session) -> bool {
        session.retention == super::Retention::Kept
    }

    /// The user that the client has logged in as; empty without a login, as by default.
    fn user<'a>(&self, _: &'a Session) -> &'a [u8] {
        b""
    }

    /// The number of the [cached login](super::CachedLogin) by which the client was admitted; 0 if by no
    /// cached login, as by default.
    fn cached_login(&self, _: &Session) -> u64 {
        0
    }

    /// The schema that this message is about: the client's own, or the one that it names to be that. Empty:
    /// none, as by default.
    fn schema<'a>(&self, _: &'a Session, _message: &'a [u8]) -> &'a [u8] {
        b""
    }

    /// The reason why the session stays at one connection to a server, or a word for a session that does not,
    /// for operators. The words are few, and the same in every process. `None` if the protocol has no such
    /// words, as by default.
    fn session_state(&self, _: &Session) -> Option<&'static str> {
        None
    }

    /// The name of the client's library, as the client has told it. By default clients tell none.
    fn library<'a>(&self, _: &'a Session) -> &'a [u8] {
        b""
    }
}
