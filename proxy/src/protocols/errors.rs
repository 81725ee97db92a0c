//! Error texts of the other proxies' reply styles.

use proxima_wire::message::Outcome;

use crate::protocol::{Failed, MALFORMED};

/// The text of an error as twemproxy writes it.
pub(super) fn twemproxys_text(failed: &Failed<'_>) -> String {
    let text = match failed.outcome {
        Outcome::Timeout | Outcome::ConnectTimeout => "Connection timed out",
        Outcome::Ejected => "Connection refused",
        Outcome::ConnectError => match failed.what {
            // The end of a connection has no number of an error.
            Failed::CLOSED => "unknown",
            // A server that answers nonsense.
            what if what.starts_with(MALFORMED) => "Invalid argument",
            what => what,
        },
        _ => return failed.to_string(),
    };
    text.to_owned()
}

/// The text of an error as mcrouter writes it. It begins with the words that users of mcrouter look for; for
/// a late reply these words are the whole text.
pub(super) fn mcrouters_text(failed: &Failed<'_>) -> String {
    if failed.server.is_empty() {
        return match failed.outcome {
            outcome if failed.what.is_empty() || failed.what == EJECTED => mcrouters_word(outcome).to_owned(),
            _ => failed.to_string(),
        };
    }
    match failed.outcome {
        Outcome::Timeout => "Reply timeout".to_owned(),
        Outcome::ConnectError | Outcome::ConnectTimeout => format!("AsyncSocketException: {failed}"),
        Outcome::Ejected => format!("Server unavailable. Reason: {failed}"),
        _ => failed.to_string(),
    }
}

/// The text of an error that says no more than its outcome.
const EJECTED: &str = "ejected";

/// mcrouter's text for an error that carries none.
fn mcrouters_word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Timeout => "timeout",
        Outcome::ConnectTimeout => "connection timeout",
        Outcome::ConnectError => "connection error",
        Outcome::Busy => "307 busy",
        Outcome::TryAgain => "302 try again",
        Outcome::Shutdown => "301 shutdown",
        Outcome::Ejected => "unavailable",
        Outcome::Deadline => "request deadline exceeded",
        Outcome::Overloaded => "overloaded",
        Outcome::RemoteError => "remote error",
        Outcome::ClientError => "bad key",
        _ => "local error",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_servers_have_the_texts_of_the_c_library() {
        for (outcome, what, text) in [
            (Outcome::Timeout, "timeout", "Connection timed out"),
            (
                Outcome::ConnectTimeout,
                "connection timeout",
                "Connection timed out",
            ),
            (Outcome::Ejected, "ejected", "Connection refused"),
            (Outcome::ConnectError, "Connection refused", "Connection refused"),
            (
                Outcome::ConnectError,
                "Connection reset by peer",
                "Connection reset by peer",
            ),
            (Outcome::ConnectError, Failed::CLOSED, "unknown"),
            (Outcome::ConnectError, "malformed reply", "Invalid argument"),
            (Outcome::Overloaded, "why", "m:1: why"),
        ] {
            assert_eq!(twemproxys_text(&Failed::at("m:1", outcome, what)), text);
        }
    }

    #[test]
    fn errors_begin_as_users_of_mcrouter_look_for_them() {
        for (server, outcome, what, text) in [
            ("m:1", Outcome::Timeout, "why", "Reply timeout"),
            (
                "m:1",
                Outcome::ConnectTimeout,
                "why",
                "AsyncSocketException: m:1: why",
            ),
            (
                "m:1",
                Outcome::ConnectError,
                "why",
                "AsyncSocketException: m:1: why",
            ),
            (
                "m:1",
                Outcome::Ejected,
                "why",
                "Server unavailable. Reason: m:1: why",
            ),
            ("m:1", Outcome::Overloaded, "why", "m:1: why"),
            ("m:1", Outcome::LocalError, "why", "m:1: why"),
            ("", Outcome::LocalError, "why", "why"),
            ("", Outcome::Ejected, "ejected", "unavailable"),
            ("", Outcome::Timeout, "", "timeout"),
            ("", Outcome::Busy, "", "307 busy"),
            ("", Outcome::LocalError, "", "local error"),
        ] {
            assert_eq!(mcrouters_text(&Failed::at(server, outcome, what)), text);
        }
    }
}
