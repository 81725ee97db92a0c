//! In whose manner a listener answers what no server has answered.

use super::Failed;
use proxima_wire::message::Outcome;

/// In whose manner a listener answers what no server has answered, and which commands it takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Manner {
    /// Proxima's own.
    #[default]
    Own,
    /// twemproxy's: errors have the C library's texts, and what twemproxy does not understand closes the
    /// connection.
    Twemproxy {
        /// Whether the listener takes all commands that Proxima serves, and not only those of twemproxy.
        all_commands: bool,
    },
}

/// The text of an error as twemproxy writes it.
pub(super) fn twemproxys_text(failed: &Failed<'_>) -> String {
    let text = match failed.outcome {
        Outcome::Timeout | Outcome::ConnectTimeout => "Connection timed out",
        Outcome::Ejected => "Connection refused",
        Outcome::ConnectError => match failed.what {
            // The end of a connection has no number of an error.
            Failed::CLOSED => "unknown",
            // A server that answers nonsense.
            what if what.starts_with(super::MALFORMED) => "Invalid argument",
            what => what,
        },
        _ => return failed.to_string(),
    };
    text.to_owned()
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
}
