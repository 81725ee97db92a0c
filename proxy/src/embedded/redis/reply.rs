//! Replies, in the words of the servers.

use proxima_wire::{message::Outcome, resp::append_number};

use crate::embedded::TOO_LARGE;

pub(super) const NOT_INTEGER: &str = "value is not an integer or out of range";
pub(super) const SYNTAX: &str = "syntax error";

pub(super) fn ok(out: &mut Vec<u8>) -> Outcome {
    out.extend_from_slice(b"+OK\r\n");
    Outcome::Ok
}

pub(super) fn number(out: &mut Vec<u8>, number: i64) -> Outcome {
    append_number(b':', number, out);
    Outcome::Found
}

pub(super) fn bulk(out: &mut Vec<u8>, text: &[u8]) -> Outcome {
    append_number(b'$', text.len() as i64, out);
    out.extend_from_slice(text);
    out.extend_from_slice(b"\r\n");
    Outcome::Found
}

/// Appends the reply to a look-up that finds nothing, as the form of the session wants it.
pub(super) fn null(out: &mut Vec<u8>, form: u16) -> Outcome {
    out.extend_from_slice(if form == 0 { b"$-1\r\n" } else { b"_\r\n" });
    Outcome::NotFound
}

/// Appends an error with the word `ERR`. The text has no line end.
#[cold]
pub(super) fn error(out: &mut Vec<u8>, text: &str) -> Outcome {
    out.extend_from_slice(b"-ERR ");
    out.extend_from_slice(text.as_bytes());
    out.extend_from_slice(b"\r\n");
    Outcome::ClientError
}

/// Appends the error for an invalid expiry time.
#[cold]
pub(super) fn bad_time(out: &mut Vec<u8>, command: &str) -> Outcome {
    error(out, &format!("invalid expire time in '{command}' command"))
}

/// Appends the error for a value that is larger than the store takes.
#[cold]
pub(super) fn too_large(out: &mut Vec<u8>) -> Outcome {
    error(out, &TOO_LARGE.to_string());
    Outcome::RemoteError
}

/// Appends the error for a reply that is larger than replies may be.
#[cold]
pub(super) fn no_memory(out: &mut Vec<u8>) -> Outcome {
    error(out, "out of memory for the reply");
    Outcome::RemoteError
}
