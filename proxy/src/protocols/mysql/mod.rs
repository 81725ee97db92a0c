//! The protocol of MySQL and MariaDB: statements are split by what they do, and every connection to a server
//! has the state of the session that uses it.
//!
//! ```text
//!  client ─ admit ─▶ plan ─▶ route ─▶ replay + statement ─▶ server
//!                      ▲                                      │
//!                    state ◀─ reply_end ◀── rewrite ◀──────────┘
//! ```
//!
//! A session has a connection for one statement, and keeps it while the server keeps for it what cannot be
//! told to another one (`state`). The state that can be told is what the server itself reports (`reply_end`),
//! and goes before the session's next statement on another connection (`replay`).

mod admit;
mod binding;
mod client;
mod commands;
mod connection_id;
mod description;
mod error;
mod found;
mod galera;
mod hint;
mod identity;
mod kill;
mod known;
mod lane;
mod login;
mod offer;
mod own_variable;
mod pairs;
mod pending;
mod plan;
mod prepared;
mod replay;
mod reply_end;
mod reports;
mod requests;
mod rewrite;
mod seen;
mod server;
mod settings;
mod stage;
mod state;
mod step;
mod texts;
mod ticks;
mod tracking;
mod words;

use self::galera::Galera;
use crate::protocol::{Door, PoolSettings, PoolState, Protocol, Texts};

/// The protocol, at listeners with this door.
#[derive(Debug)]
pub struct Mysql {
    door: Door,
}

static DOORS: [Mysql; Door::COUNT] = {
    let mut doors = [const { Mysql { door: Door::of(0) } }; Door::COUNT];
    let mut number = 0;
    while number < Door::COUNT {
        doors[number] = Mysql {
            door: Door::of(number),
        };
        number += 1;
    }
    doors
};

impl Mysql {
    /// MySQL at a listener that serves all statements.
    pub const PLAIN: Self = Self { door: Door::OPEN };
}

impl Protocol for Mysql {
    fn name(&self) -> &'static str {
        "mysql"
    }

    fn behind(&self, door: Door) -> Option<&'static dyn Protocol> {
        DOORS.get(door.number()).map(|protocol| protocol as &dyn Protocol)
    }

    fn commands(&self) -> &'static [&'static str] {
        &commands::NAMES
    }

    /// Only a read leaves nothing behind.
    fn may_repeat(&self, command: u16) -> bool {
        command == commands::READ
    }

    /// Each server would generate ids, and see times, of its own.
    fn is_same_everywhere(&self, command: u16) -> bool {
        command == commands::READ
    }

    fn class_of(&self, command: u16) -> Option<&'static str> {
        commands::is_statement(command).then(|| self.command_name(command))
    }

    fn has_keys(&self) -> bool {
        false
    }

    fn texts(&self) -> Option<&dyn Texts> {
        Some(self)
    }

    fn upgrades(&self) -> bool {
        true
    }

    fn pool_state(&self, settings: &PoolSettings<'_>) -> Option<Box<dyn PoolState>> {
        let writer = settings.one_writer?;
        Some(Box::new(Galera::new(settings, writer)))
    }
}
