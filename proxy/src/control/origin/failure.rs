//! How an origin fails, in words for clients.

use proxima_wire::message::Outcome;

use crate::near::Failure;

/// The most bytes of a reply's status and fields.
pub(super) const LONGEST_HEAD: usize = 64 << 10;
/// The error text for a longer one.
pub(super) const TOO_MANY_FIELDS: &str = "the fields of its reply take more than 64 KiB, or are too many";
/// The origin has failed.
pub(super) fn failed(outcome: Outcome, text: impl Into<String>) -> Failure {
    Failure {
        outcome,
        text: text.into(),
        is_origins: true,
    }
}

/// What a broken exchange is to a client.
pub(super) fn broken(error: &hyper::Error) -> Failure {
    if error.is_parse_too_large() {
        return failed(Outcome::RemoteError, TOO_MANY_FIELDS);
    }
    match error.is_parse() || error.is_parse_status() {
        true => failed(Outcome::RemoteError, format!("its reply is no HTTP: {error}")),
        false => failed(Outcome::ConnectError, format!("the connection broke: {error}")),
    }
}
