//! Limits on the connections that clients have for themselves, as they stand in a configuration.

use crate::config::{
    Diagnostic,
    document::Node,
    form::{Choice, Count, Form, Optional, PositiveTime, Shape, Word},
    reading::Reading,
    schema::{Dedicated, Reset},
    section::section,
};

impl Choice for Reset {
    const WHAT: &'static str = "when a server forgets the session before";
    const WORDS: &'static [(&'static str, Self, &'static str)] = &[
        (
            "needed",
            Self::Needed,
            "where it keeps something that cannot be told otherwise",
        ),
        (
            "always",
            Self::Always,
            "before each other session, which costs a round trip and prepared statements",
        ),
    ];
}

section! {
    /// Limits on the connections to a server that one client has for itself, of each worker: for a
    /// transaction that is not sent in one piece, a command that blocks, subscriptions, and what else a
    /// server keeps for one client.
    pub(super) struct DedicatedKeys {
        /// The most connections. Further clients wait in turn.
        max: Count<1, 65535> = Dedicated::DEFAULT.max,
        /// Time for which a client waits; after that it is answered an error.
        wait: PositiveTime = Dedicated::DEFAULT.wait,
        /// The most connections that are kept while no client uses them.
        idle: Count<0, 65535> = Dedicated::DEFAULT.idle,
        /// Time after which a connection that no client uses is closed.
        idle_timeout: PositiveTime = Dedicated::DEFAULT.idle_timeout,
        /// The most connections to a server of all workers together. One that a worker keeps without use is
        /// closed when another worker wants it. Without this, each worker has `max`; for MySQL, all of them
        /// together have four fifths of what the server takes (`max_connections`).
        total: Optional<Count<1>>,
        /// When a MySQL server forgets the session that has had a connection before, by
        /// `COM_RESET_CONNECTION`.
        reset: Word<Reset> = Reset::Needed,
    }
}

/// Limits on dedicated connections as they stand in a configuration.
#[derive(Debug)]
pub(super) struct DedicatedForm;

impl Form for DedicatedForm {
    type Value = Dedicated;

    fn shape() -> Shape {
        DedicatedKeys::shape()
    }

    fn read(node: &Node, cx: &mut Reading) -> Result<Dedicated, Diagnostic> {
        let DedicatedKeys {
            max,
            wait,
            idle,
            idle_timeout,
            total,
            reset,
        } = DedicatedKeys::read(node, cx)?;
        Ok(Dedicated {
            max,
            wait,
            idle,
            idle_timeout,
            total,
            reset,
        })
    }

    fn absent() -> Option<Dedicated> {
        Some(Dedicated::DEFAULT)
    }
}
