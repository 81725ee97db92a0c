//! The answers of Redis' `INFO` about the process, and of `CLIENT INFO` about a client.

use proxima_wire::{message::Class, resp::Command};

use crate::{
    client::Client,
    embedded::Connections,
    engine::{ClientId, Engine},
    metrics::Metrics,
    protocol::{ConnectionFacts, ProcessCounters, Protocols},
};

/// The keys that reads of Redis have found, and those that they have not.
pub(super) fn lookups(metrics: &Metrics) -> [u64; 2] {
    let first = Protocols::PLAIN
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
    /// Appends the reply to a request for counters of the process.
    pub(in crate::client) fn append_figures(&mut self, id: ClientId, message: &[u8], out: &mut Vec<u8>) {
        self.tell_counts();
        let register = &self.clients.register;
        let mut counters = ProcessCounters {
            uptime: self.now.as_secs(),
            clients: register.current(),
            most_clients: self.limits.clients as u64,
            connections: register.total(),
            ..ProcessCounters::default()
        };
        register.tally.fill_in(&mut counters);
        if let Some(client) = self.clients.table.get(id) {
            client.protocol.counters(&client.session, message, &counters, out);
        }
    }

    /// Appends the reply to a request for facts of its client's connection, of which so many bytes have come.
    pub(in crate::client) fn append_connection(
        &self,
        id: ClientId,
        message: &[u8],
        received: usize,
        out: &mut Vec<u8>,
    ) {
        let Some(client) = self.clients.table.get(id) else {
            return;
        };
        let (read, leaves) = (&client.stream.read_buffer, &client.stream.out);
        let subscriptions = client.subscriptions.as_ref();
        let facts = ConnectionFacts {
            age: (self.now - client.since).as_secs(),
            idle: (self.now - client.active).as_secs(),
            subscriptions: subscriptions.map(|all| all.totals()).unwrap_or_default(),
            received,
            room: read.capacity().saturating_sub(received),
            leaving: [leaves.len() + client.unsent, leaves.capacity()],
            held: client.slots.buffered(),
            memory: size_of::<Client>() + client.charged,
            ..self.clients.register.facts(self.facts.worker, id.index())
        };
        client.protocol.connection(&client.session, message, &facts, out);
    }
}
