//! `stats`: the proxy's own figures over memcached, or the embedded store's where the listener leads straight to it.

use std::io::Write;

use proxima_wire::message::Request;

use crate::{
    engine::Engine,
    near::embedded::{self, Connections, Context},
    route::{Leaf, Node},
};

impl Engine {
    /// Time and process, for a request to the embedded store.
    pub(crate) fn store_context(&self) -> Context<'_> {
        Context {
            now: self.now / 1000,
            unix: self.unix(),
            pid: self.facts.pid,
            threads: self.facts.workers,
            largest_reply: self.limits.value_bytes,
            connections: &*self.register,
        }
    }

    /// Does this listener lead straight to the embedded store?
    pub(crate) fn serves_store(&self, listener: u16) -> bool {
        let root = self.tree.root(usize::from(listener));
        root.is_some_and(|root| matches!(self.tree.node(root), Node::Leaf(Leaf::Embedded)))
    }

    pub(crate) fn stats(&self, listener: u16, request: &Request, message: &[u8], out: &mut Vec<u8>) {
        if self.serves_store(listener) {
            embedded::answer(&self.store, &self.store_context(), request, message, out);
            return;
        }
        if message.trim_ascii() != b"stats" {
            // Groups of memcached's (items, slabs, reset, …) mean nothing for a proxy.
            return out.extend_from_slice(b"CLIENT_ERROR bad stats command\r\n");
        }
        let figures = &self.figures;
        let mut row = |name: &str, value: &dyn std::fmt::Display| {
            // Writing to a Vec cannot fail.
            let _ = write!(out, "STAT {name} {value}\r\n");
        };
        row("pid", &self.facts.pid);
        row("uptime", &(self.now / 1_000_000));
        row("time", &self.unix());
        row("version", &env!("CARGO_PKG_VERSION"));
        row("config_version", &self.tree.version);
        row("threads", &self.facts.workers);
        row("curr_connections", &self.register.current());
        row("total_connections", &self.register.total());
        row("worker", &self.facts.worker);
        row("worker_connections", &self.clients.len());
        row("worker_requests", &figures.requests.iter().sum::<u64>());
        row("worker_replies", &figures.replies.all());
        row("worker_failovers", &figures.failovers);
        row("worker_in_flight", &self.in_flight());
        for member in self.tree.reach(usize::from(listener)) {
            let state = format!("{:?} {:?}", member.health.state(), member.distance).to_lowercase();
            row(&format!("member_{}", member.address), &state);
        }
        out.extend_from_slice(b"END\r\n");
    }

    /// Requests sent to servers and not answered.
    pub fn in_flight(&self) -> usize {
        self.in_flight
    }
}
