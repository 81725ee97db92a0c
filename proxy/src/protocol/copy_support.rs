//! Requests to the copies of a value: the part of the contract for protocols whose pools can be replicated.

use proxima_wire::message::{Effect, Request};

use super::Repair;

/// Replication of a protocol's values to all servers of a pool. [`Repair`] says how a server that missed
/// writes is repaired.
pub trait CopySupport: Repair {
    /// The effect of a request where every server holds a copy.
    fn effect(&self, request: &Request, message: &[u8]) -> Effect;

    /// Appends the request for the other copies after one copy has decided the value. By default it removes
    /// theirs.
    fn follow_up(&self, request: &Request, message: &[u8], out: &mut Vec<u8>) {
        self.removal(request.key.of(message), out);
    }

    /// Appends the request that reads the value which this request will leave; both are sent on one lane, one
    /// right behind the other. Returns false, and appends nothing, if the request computes no value. By
    /// default no request does.
    fn read_back(&self, _: &Request, _message: &[u8], _out: &mut Vec<u8>) -> bool {
        false
    }

    /// Appends the request for the other copies after this complete reply to [`CopySupport::read_back`].
    /// `_unix`: the current time in seconds since 1970. By default it removes theirs.
    fn store_read_back(
        &self,
        request: &Request,
        message: &[u8],
        _reply: &[u8],
        _unix: u64,
        out: &mut Vec<u8>,
    ) {
        self.removal(request.key.of(message), out);
    }

    /// Appends the request that undoes what the read-back itself has changed, given its reply. Returns false,
    /// and appends nothing, if there is nothing to undo.
    fn undo_read_back(&self, _: &Request, _message: &[u8], _reply: &[u8], _out: &mut Vec<u8>) -> bool {
        false
    }

    /// Appends the head of a request in which each version of a value is marked as one server's. Returns
    /// false, and appends nothing, if the request names no version. By default no request does.
    fn mark_request(&self, _: &Request, _message: &[u8], _mark: u64, _out: &mut Vec<u8>) -> bool {
        false
    }

    /// Appends a reply to `command`, or its head alone, in which the version is marked as one server's.
    /// Returns false, and appends nothing, if the reply names no version. By default no reply does.
    fn mark_reply(&self, _command: u16, _reply: &[u8], _mark: u64, _out: &mut Vec<u8>) -> bool {
        false
    }

    /// Appends the request that reads all that another copy needs to hold the value of this key. Returns
    /// false, and appends nothing, if there is no such request. By default there is none.
    fn fetch(&self, _key: &[u8], _out: &mut Vec<u8>) -> bool {
        false
    }

    /// Appends the request that stores what this complete reply to [`CopySupport::fetch`] has, unless the
    /// copy has a value. `_unix`: the current time in seconds since 1970. Returns false, and appends nothing,
    /// if the reply has nothing to be stored.
    fn store_fetched(&self, _key: &[u8], _reply: &[u8], _unix: u64, _out: &mut Vec<u8>) -> bool {
        false
    }

    /// Appends the request that removes this key, which is in the server's spelling.
    fn removal(&self, key: &[u8], out: &mut Vec<u8>);
}
