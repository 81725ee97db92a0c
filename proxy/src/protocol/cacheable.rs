//! Replies that may be kept in the near cache, and what requests change.

use proxima_wire::message::{Class, Reply, Request};

/// The scope of a request's change at a server, the least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChangeScope {
    /// No data.
    Nothing,
    /// The keys that it names, at most.
    Keys,
    /// The keys that it names or any others, as the operator knows of scripts.
    Scripts,
    /// Any key.
    Everything,
    /// Any key: now, and again in so many seconds.
    EverythingLater(u32),
}

/// The fitness of a reply to be kept, and the clients that may have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit<'b> {
    /// This of it is kept, and is the reply to all who ask the same.
    Kept(Reply, &'b [u8]),
    /// It is not kept. It is the reply to all who have sent the same bytes.
    Shared,
    /// It is for one client alone.
    Alone,
}

/// The parts of a reply around the value of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueFrame {
    /// Is the value in it at all?
    pub has_value: bool,
    /// The bytes behind the value.
    pub tail: &'static [u8],
    /// The bytes of the tail that are left out when replies are joined: a reply's
    /// [`trailer`](Reply::trailer).
    pub trailer: u32,
}

/// The keeping of a protocol's replies, and the requests that end it.
pub trait Cacheable: Send + Sync {
    /// Appends all that decides the bytes of the reply to this request, beside its key: requests for one key
    /// with the same form have the same reply. `client_form`: that of the client's
    /// [`Session`](super::Session). Returns false if no reply to it may be kept.
    fn form(&self, client_form: u16, request: &Request, message: &[u8], out: &mut Vec<u8>) -> bool;

    /// The part of this complete reply, which is no error, that is kept for others that ask the same.
    fn kept<'b>(&self, request: &Request, message: &[u8], reply: &Reply, bytes: &'b [u8]) -> Fit<'b>;

    /// Appends this request's own beginning of the kept reply, and returns for how many of its first bytes
    /// that stands. `None` if the reply is the same, as by default.
    fn own(&self, _: &Request, _message: &[u8], _bytes: &[u8], _out: &mut Vec<u8>) -> Option<usize> {
        None
    }

    /// Appends what stands before a value of this length in the reply to this request, and returns the rest.
    /// `None` if its reply does not follow from the value of one key alone, as by default.
    fn value_frame(
        &self,
        _: &Request,
        _message: &[u8],
        _len: usize,
        _out: &mut Vec<u8>,
    ) -> Option<ValueFrame> {
        None
    }

    /// Appends the reply to a request that has removed its one key. `None` if this request does something
    /// else, as by default.
    fn removed(&self, _: &Request, _message: &[u8], _out: &mut Vec<u8>) -> Option<Reply> {
        None
    }

    /// Do clients with this login see the same as those with the pool's own? By default only the pool's own
    /// login does.
    fn is_pools(&self, login: &[u8]) -> bool {
        login.is_empty()
    }

    /// Does this reply say that the request is executed later, in a transaction? By default none does.
    fn is_for_later(&self, _bytes: &[u8]) -> bool {
        false
    }

    /// The scope of this request's change. `message` is the request, or the head of a streamed one. By
    /// default every request may change the keys that it names, but reads, and those about a server or a
    /// connection.
    fn changes(&self, request: &Request, _message: &[u8]) -> ChangeScope {
        match request.class {
            Class::Read | Class::Admin | Class::Session => ChangeScope::Nothing,
            Class::Write | Class::Delete | Class::Arithmetic | Class::Touch => ChangeScope::Keys,
        }
    }
}
