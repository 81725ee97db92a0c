//! Reading and changing of requests and replies, for routes, copies and both ends.

use std::ops::Range;

use proxima_wire::message::{Bad, Class, Parse, Parsed, Piece, Reply, Request, Span};

use super::Join;

/// The expiry of a value that a request stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expiry {
    /// The request says nothing about it.
    None,
    /// Never.
    Never,
    /// In so many seconds; negative: at once.
    In(i64),
}

/// The parts of a request that a route changes; `None` for a part that stays.
#[derive(Clone, Copy, Debug, Default)]
pub struct Change<'a> {
    /// The new key.
    pub key: Option<&'a [u8]>,
    /// The new expiry time, as the protocol counts it.
    pub ttl: Option<i64>,
}

/// A protocol's form of requests and replies: first the methods that every protocol must have, then those
/// with a default.
pub trait Requests: Send + Sync {
    /// Parses the head of the next request. `parse` holds what an earlier call noted about the beginning of
    /// these bytes, which was incomplete then; otherwise it is new. The call leaves it new, unless the bytes
    /// are still incomplete, or the request is [open](Request::is_open).
    ///
    /// `value_limit`: the most bytes of a value.
    fn request(&self, parse: &mut Parse, bytes: &[u8], value_limit: u64) -> Parsed<Request>;

    /// Appends the reply of an empty cache; for a streamed request `message` is its head. `form`: that of the
    /// client's [`Session`](super::Session).
    fn miss(&self, form: u16, request: &Request, message: &[u8], out: &mut Vec<u8>) -> Reply;

    /// Does this reply say that there is nothing of what the request asks for, although it is no null? By
    /// default the reply's outcome says all.
    fn is_miss(&self, _form: u16, _: &Request, _message: &[u8], _reply: &[u8]) -> bool {
        false
    }

    /// Parses the head of a request that is complete.
    fn head(&self, message: &[u8]) -> Parsed<Request> {
        self.request(&mut Parse::default(), message, u64::MAX)
    }

    /// Checks the end of the request's body. By default any end is valid: the length says all.
    ///
    /// # Errors
    /// The end is wrong; the error says what is answered, and whether the connection is closed.
    #[inline]
    fn check_end(&self, _message: &[u8]) -> Result<(), Bad> {
        Ok(())
    }

    /// Parses what follows in an [open](Request::is_open) request behind the bytes that were counted. `parse`
    /// is what [`Requests::request`] or this method left; the last piece leaves it new. By default no request
    /// is open.
    fn piece(&self, _: &mut Parse, _bytes: &[u8], _value_limit: u64) -> Parsed<Piece> {
        Parsed::Bad(Bad::fatal(b""))
    }

    /// Gives each key of a complete request to `take`, in order. By default that is its first key.
    fn keys(&self, request: &Request, _message: &[u8], take: &mut dyn FnMut(Span)) {
        if !request.key.is_empty() {
            take(request.key);
        }
    }

    /// The way in which the replies of several members to parts of this request, or to all of it, are joined;
    /// a [`Join::Parts`]. By default a request cannot be split.
    fn spread(&self, _: &Request) -> Option<&'static Join> {
        None
    }

    /// Appends the request for some of the keys of a request that is [split](Requests::spread): these,
    /// which [`keys`](Requests::keys) has given, in order.
    fn part(&self, _: &Request, _message: &[u8], _keys: &mut dyn Iterator<Item = Span>, _out: &mut Vec<u8>) {}

    /// The number that this reply to one of several keys adds to their [sum](Join::Sum), or that a delete has
    /// removed. By default replies are counted.
    fn number(&self, _: &Reply, _bytes: &[u8]) -> i64 {
        1
    }

    /// The key that routes hash, as the server will see it. By default it is the key's bytes in the request.
    #[inline]
    fn key<'a>(&self, request: &Request, message: &'a [u8], _scratch: &'a mut [u8; 250]) -> &'a [u8] {
        request.key.of(message)
    }

    /// Appends the head with changes and without the words that ask for quiet. Returns false, and appends
    /// nothing, if the result would be no valid request. By default no request can be changed: a route that
    /// must change one answers an error.
    #[must_use]
    fn rewrite(&self, _: &Request, _message: &[u8], _: &Change<'_>, _out: &mut Vec<u8>) -> bool {
        false
    }

    /// Does this request consist of several, which are sent in one piece? By default none does.
    fn is_composite(&self, _: &Request) -> bool {
        false
    }

    /// Gives each request of a [composite](Requests::is_composite) one to `take`, with its place in the
    /// message.
    fn each_request(&self, _: &Request, _message: &[u8], _take: &mut dyn FnMut(&Request, Range<usize>)) {}

    /// Appends a complete request with each of its keys replaced by what `change` makes of it. Returns false
    /// if the result would be no request that does the same; what was appended is of no use then. By default
    /// no request can be changed.
    #[must_use]
    fn rewrite_keys(
        &self,
        _: &Request,
        _message: &[u8],
        _change: &mut dyn FnMut(&[u8]) -> Vec<u8>,
        _out: &mut Vec<u8>,
    ) -> bool {
        false
    }

    /// The effect of a request on the data, for routes that look at it. By default it is the request's own
    /// class.
    fn acts_as(&self, request: &Request, _message: &[u8]) -> Class {
        request.class
    }

    /// The expiry of a value that this request stores. `unix`: the present time, in seconds since 1970. By
    /// default requests say nothing about it.
    fn expiry(&self, _: &Request, _message: &[u8], _unix: u64) -> Expiry {
        Expiry::None
    }

    /// The fault of this key, which a route has made for the request. By default any key will do.
    ///
    /// # Errors
    /// The server would not take the key; the error says why not.
    fn check_key(&self, _request: &Request, _key: &[u8]) -> Result<(), &'static str> {
        Ok(())
    }

    /// Appends the reply with the client's own key in place of the one that a route has sent. By default
    /// replies name no key.
    fn rewrite_reply_key(&self, _command: u16, _key: &[u8], reply: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(reply);
    }

    /// The word by which metrics count an error reply; empty: it is not counted by a word, as by default.
    fn error_word<'a>(&self, _reply: &'a [u8]) -> &'a [u8] {
        b""
    }
}
