//! Errors that the proxy itself answers, on their way to a client.

use std::fmt;

use proxima_wire::message::Outcome;

/// An error of a request that no server has answered. The codec writes it in its protocol's words only where
/// the client's session is known, so that no other part has to parse it again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failed<'a> {
    /// The outcome of the request.
    pub outcome: Outcome,
    /// The address of the server that has failed; empty if no server has failed.
    pub server: &'a str,
    /// The reason, in words for the client.
    pub what: &'a str,
    /// The fate of the request.
    pub fate: Fate,
}

/// The fate of a request that no server has answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// No server has executed it.
    Unsent,
    /// A server may have executed it, and the answer is lost.
    Lost,
    /// It may be what has ended the connection to its server. No other server is asked.
    Blamed,
}

impl<'a> Failed<'a> {
    /// The reason that a connection was closed by its server.
    pub const CLOSED: &'static str = "Connection closed by the server";

    /// An error of the proxy itself.
    pub const fn here(outcome: Outcome, what: &'a str) -> Self {
        Self::at("", outcome, what)
    }

    /// An error of the server with this address.
    pub const fn at(server: &'a str, outcome: Outcome, what: &'a str) -> Self {
        Self {
            outcome,
            server,
            what,
            fate: Fate::Unsent,
        }
    }
}

/// The error in one line: it begins with the address of the server that has failed, if there is one.
impl fmt::Display for Failed<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.server {
            "" => out.write_str(self.what),
            server => write!(out, "{server}: {}", self.what),
        }
    }
}
