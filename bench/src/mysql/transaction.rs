//! Statements of a transaction. Each has a reply before the next one leaves.

use super::{packet::HEAD, request::append_query};

/// A server's reply when a transaction has begun.
pub(crate) const BEGUN: &[u8] = b"\x07\0\0\x01\0\0\0\x03\0\0\0";
/// A server's reply when it has ended.
pub(crate) const COMMITTED: &[u8] = b"\x07\0\0\x01\0\0\0\x02\0\0\0";

/// The bit of the status that says that a transaction is open.
const OPEN: u8 = 1;
/// The place of that bit from the end of every reply that ends with a status and the number of warnings.
const STATUS: usize = 4;

/// Appends the beginning.
pub(crate) fn append_begin(out: &mut Vec<u8>) {
    append_query(BEGIN, out);
}

/// Appends the end.
pub(crate) fn append_commit(out: &mut Vec<u8>) {
    append_query(COMMIT, out);
}

pub(super) const BEGIN: &[u8] = b"BEGIN";
pub(super) const COMMIT: &[u8] = b"COMMIT";

/// A reply within a transaction, as it is outside of any: they differ in the status alone. `None`: it says
/// that no transaction is open.
pub(crate) fn as_outside(reply: &[u8]) -> Option<Vec<u8>> {
    let mut outside = reply.to_vec();
    let status = status(&mut outside)?;
    (*status & OPEN != 0).then(|| *status &= !OPEN)?;
    Some(outside)
}

/// Makes the reply that `out` ends with one within a transaction.
pub(super) fn set_open(out: &mut [u8]) {
    if let Some(status) = status(out) {
        *status |= OPEN;
    }
}

fn status(reply: &mut [u8]) -> Option<&mut u8> {
    let place = reply.len().checked_sub(STATUS).filter(|place| *place > HEAD)?;
    reply.get_mut(place)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mysql::result_set::{END, STORED};

    #[test]
    fn a_reply_within_a_transaction_has_its_bit_and_is_otherwise_the_same() {
        for reply in [END, STORED] {
            let mut within = reply.to_vec();
            set_open(&mut within);
            assert_ne!(within, reply);
            assert_eq!(as_outside(&within).as_deref(), Some(reply));
            assert_eq!(as_outside(reply), None);
        }
    }
}
