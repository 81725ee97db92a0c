//! What the copies of a value are told: the part of the contract for protocols whose pools can be replicated.

use proxima_wire::message::{Effect, Request};

use super::Repair;

/// How a protocol's values are copied to all servers of a pool. How a server that missed writes is repaired
/// is the part [`Repair`] of it.
pub trait Copied: Repair {
    /// What the request means where every server holds a copy.
    fn effect(&self, request: &Request, message: &[u8]) -> Effect;

    /// Appends what the other copies are told after one of them has decided the request's value. By default:
    /// that theirs is gone.
    fn follow_up(&self, request: &Request, message: &[u8], out: &mut Vec<u8>) {
        self.removal(request.key.of(message), out);
    }

    /// Appends the request that reads what this one will leave of its value, to be sent right behind it on
    /// one lane. False: it computes none, and nothing is appended. By default none does.
    fn read_back(&self, _: &Request, _message: &[u8], _out: &mut Vec<u8>) -> bool {
        false
    }

    /// Appends what the other copies are told after this whole reply to [`Copied::read_back`], at this time
    /// in seconds since 1970. By default: that theirs is gone.
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

    /// Appends what undoes, where the value was read back with this reply, what the reading itself has
    /// changed. False: nothing, and nothing is appended.
    fn undo_read_back(&self, _: &Request, _message: &[u8], _reply: &[u8], _out: &mut Vec<u8>) -> bool {
        false
    }

    /// Appends the head of a request with each version of a value that it names marked as one server's.
    /// False: it names none, and nothing is appended. By default none does.
    fn mark_request(&self, _: &Request, _message: &[u8], _mark: u64, _out: &mut Vec<u8>) -> bool {
        false
    }

    /// Appends a reply to `command`, maybe its head alone, with the version that it names marked so. False:
    /// it names none, and nothing is appended. By default none does.
    fn mark_reply(&self, _command: u16, _reply: &[u8], _mark: u64, _out: &mut Vec<u8>) -> bool {
        false
    }

    /// Appends the removal of this key, as the server knows it.
    fn removal(&self, key: &[u8], out: &mut Vec<u8>);
}
