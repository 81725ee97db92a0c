//! Limits on the connections that clients have for themselves.

use std::time::Duration;

/// Limits on the connections to a server that one client has for itself, of each worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dedicated {
    /// The most connections.
    pub max: u32,
    /// Time for which a client waits if all are in use.
    pub wait: Duration,
    /// The most connections that are kept while no client uses them.
    pub idle: u32,
    /// Time after which a connection that no client uses is closed.
    pub idle_timeout: Duration,
    /// The most connections of all workers together; `None`: as many as the server offers, or each worker's
    /// own limit alone where servers tell none.
    pub total: Option<u32>,
    /// When a server forgets the session that has had a connection before.
    pub reset: Reset,
}

impl Dedicated {
    /// The defaults for MySQL, where every statement has a connection for itself while it runs: 1000
    /// connections, of which 64 are kept for 5 minutes, and a wait of ten seconds.
    pub const MYSQL: Self = Self {
        max: 1000,
        wait: Duration::from_secs(10),
        idle: 64,
        ..Self::DEFAULT
    };
    /// These limits, where what is the general default is that for MySQL.
    #[must_use]
    pub fn for_mysql(self) -> Self {
        let (general, own) = (Self::DEFAULT, Self::MYSQL);
        Self {
            max: if self.max == general.max {
                own.max
            } else {
                self.max
            },
            wait: if self.wait == general.wait {
                own.wait
            } else {
                self.wait
            },
            idle: if self.idle == general.idle {
                own.idle
            } else {
                self.idle
            },
            ..self
        }
    }

    /// The defaults: 64 connections, of which 4 are kept for 5 minutes, and a wait of a second.
    pub const DEFAULT: Self = Self {
        max: 64,
        wait: Duration::from_secs(1),
        idle: 4,
        idle_timeout: Duration::from_secs(300),
        total: None,
        reset: Reset::Needed,
    };
}

/// When a server forgets the session that has had a connection before another one has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reset {
    /// Where it keeps something that cannot be told otherwise.
    #[default]
    Needed,
    /// Always.
    Always,
}
