//! Results under mcrouter's names.

use proxima_wire::message::Outcome;

use crate::{
    config::{
        Diagnostic,
        document::{Node, shortened},
        reading::Reading,
        suggest,
    },
    frontdoor::mcrouter::object::text,
};

/// Results that are no errors.
const GOOD: [(&str, Outcome); 6] = [
    ("notfound", Outcome::NotFound),
    ("notstored", Outcome::NotStored),
    ("exists", Outcome::Exists),
    ("stored", Outcome::Stored),
    ("deleted", Outcome::Deleted),
    ("found", Outcome::Found),
];

/// Errors, and the text of each where a reply has none.
const ERRORS: [(&str, Outcome, &str); 24] = [
    ("local_error", Outcome::LocalError, "local error"),
    ("busy", Outcome::Busy, "307 busy"),
    ("shutdown", Outcome::Shutdown, "301 shutdown"),
    ("tko", Outcome::Ejected, "unavailable"),
    ("try_again", Outcome::TryAgain, "302 try again"),
    ("connect_error", Outcome::ConnectError, "connection error"),
    ("connect_timeout", Outcome::ConnectTimeout, "connection timeout"),
    ("timeout", Outcome::Timeout, "timeout"),
    ("remote_error", Outcome::RemoteError, "remote error"),
    (
        "deadline_exceeded",
        Outcome::Deadline,
        "request deadline exceeded",
    ),
    ("overloaded", Outcome::Overloaded, "overloaded"),
    ("client_error", Outcome::ClientError, "client error"),
    ("bad_command", Outcome::ClientError, "bad command"),
    ("bad_key", Outcome::ClientError, "bad key"),
    ("bad_flags", Outcome::ClientError, "bad flags"),
    ("bad_exptime", Outcome::ClientError, "bad exptime"),
    ("bad_lease_id", Outcome::ClientError, "bad lease_id"),
    ("bad_cas_id", Outcome::ClientError, "bad cas_id"),
    // mcrouter does not fail over after these, and they are a server's errors to clients.
    ("bad_value", Outcome::Overloaded, "bad value"),
    ("aborted", Outcome::Overloaded, "aborted"),
    ("permission_denied", Outcome::Overloaded, "permission denied"),
    ("hot_key", Outcome::Overloaded, "hot key"),
    ("out_of_order", Outcome::Overloaded, "out of order"),
    ("unknown", Outcome::RemoteError, "unknown result"),
];

/// Reads any result.
pub(super) fn outcome(node: &Node, cx: &mut Reading) -> Result<Outcome, Diagnostic> {
    let errors = ERRORS.iter().map(|(name, outcome, _)| (*name, *outcome));
    named(node, errors.chain(GOOD), cx)
}

/// Reads an error, with the text that it has by itself.
pub(super) fn error(node: &Node, cx: &mut Reading) -> Result<(Outcome, &'static str), Diagnostic> {
    let errors = ERRORS
        .iter()
        .map(|(name, outcome, text)| (*name, (*outcome, *text)));
    named(node, errors, cx)
}

fn named<T>(
    node: &Node,
    known: impl Iterator<Item = (&'static str, T)> + Clone,
    cx: &mut Reading,
) -> Result<T, Diagnostic> {
    let name = text(node, cx)?;
    let bare = name.strip_prefix("mc_res_").unwrap_or(&name);
    let found = known.clone().find(|(known, _)| *known == bare);
    found.map(|(_, result)| result).ok_or_else(|| Diagnostic {
        remedy: suggest::remedy(bare, known.map(|(name, _)| name)),
        ..cx.refuse(
            node.at,
            format!("`{}` is no result, line: {}", shortened(&name), node.at.line),
        )
    })
}
