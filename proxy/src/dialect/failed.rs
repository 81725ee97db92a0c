//! Errors of ours, on their way to a client.

use std::fmt;

use proxima_wire::message::Outcome;

/// No server has answered. A codec puts it into its protocol's words, where the client's session is known and nowhere before: on
/// its way nobody has to read it out of them again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failed<'a> {
    pub outcome: Outcome,
    /// The address of the server that has failed; empty: none has.
    pub server: &'a str,
    pub what: &'a str,
}

impl<'a> Failed<'a> {
    /// We could not do it.
    pub const fn here(outcome: Outcome, what: &'a str) -> Self {
        let server = "";
        Self {
            outcome,
            server,
            what,
        }
    }

    /// The server of this address could not do it.
    pub const fn at(server: &'a str, outcome: Outcome, what: &'a str) -> Self {
        Self {
            outcome,
            server,
            what,
        }
    }
}

/// In one line: whatever the reason is, it begins with the address of the server that has failed.
impl fmt::Display for Failed<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.server {
            "" => out.write_str(self.what),
            server => write!(out, "{server}: {}", self.what),
        }
    }
}
