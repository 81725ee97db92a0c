//! What Redis' `INFO` tells of the process.

use proxima_wire::{message::Class, resp::Command};

use crate::{
    client::{ClientId, register::Register},
    dialect::{Dialects, Figures},
    engine::Engine,
    metrics::Metrics,
    near::embedded::Connections,
};

/// How many keys reads of Redis have found, and how many they have not.
pub(super) fn lookups(metrics: &Metrics) -> [u64; 2] {
    let first = Dialects::PLAIN
        .of("redis")
        .map_or(usize::MAX, |spoken| spoken.first as usize);
    (0..Command::COUNT)
        .filter(|&command| Command::of(command).is_some_and(|command| command.class == Class::Read))
        .map(|command| metrics.replies.lookups(first.saturating_add(command.into())))
        .fold([0, 0], |[hits, misses], [more, other]| {
            [hits + more, misses + other]
        })
}

impl Engine {
    /// Appends the reply to a request for figures of the process.
    pub(in crate::client) fn append_figures(&mut self, id: ClientId, message: &[u8], out: &mut Vec<u8>) {
        self.tell_counts();
        let register: &Register = &self.clients.register;
        let mut figures = Figures {
            uptime: self.now.as_secs(),
            clients: register.current(),
            most_clients: self.limits.clients as u64,
            connections: register.total(),
            ..Figures::default()
        };
        register.tally.fill_in(&mut figures);
        if let Some(client) = self.clients.table.get(id) {
            client.dialect.figures(&client.session, message, &figures, out);
        }
    }
}
