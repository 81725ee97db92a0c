//! memcached's `stats` and `lru_crawler`: the proxy's own metrics, and those of the embedded store where the
//! listener leads straight to it.
//!
//! Facts that only a server knows (its items and slabs) are asked of the server if there is just one behind
//! the listener. With several servers there is nothing to tell, and the answer is an empty list.

mod endings;

use std::{io::Write, rc::Rc, sync::Arc};

use proxima_wire::message::{Parsed, Request};

pub(super) use self::endings::ENDINGS;

use crate::client::{ReplyRole, stage::Stage};
use crate::{
    embedded::{
        Connections,
        memcache::{self, Dump},
    },
    engine::{ClientId, Endpoint, Engine, ReplyTo},
    members::Member,
    route::Tree,
};

/// A dump goes on while fewer bytes than this wait to be sent.
const DUMP_BACKLOG: usize = 64 * 1024;
/// The number of steps of a dump in one turn; other clients are served in between.
const DUMP_STEPS: usize = 256;

/// The subjects of `stats` that a server is asked for, and the requests for them.
const SERVER_SUBJECTS: [(&[u8], &[u8]); 4] = [
    (b"settings", b"stats settings\r\n"),
    (b"items", b"stats items\r\n"),
    (b"slabs", b"stats slabs\r\n"),
    (b"sizes", b"stats sizes\r\n"),
];

impl Engine {
    /// Tells the other workers what `stats` counts.
    pub(crate) fn tell_counts(&self) {
        self.clients.register.tally.tell(self.facts.worker, &self.metrics);
    }

    /// Answers a request for metrics.
    pub(in crate::client) fn stats(
        &mut self,
        id: ClientId,
        listener: u16,
        request: &Request,
        message: &[u8],
    ) {
        self.tell_counts();
        if self.serves_store(listener) {
            return self.ask_store(id, request, message);
        }
        let line = message.trim_ascii();
        let subject = line.strip_prefix(b"stats").map(<[u8]>::trim_ascii);
        let Some(subject) = subject else {
            return self.answer_here(id, b"CLIENT_ERROR lru crawler disabled\r\n", false);
        };
        let tree = Rc::clone(&self.tree);
        let asked = SERVER_SUBJECTS.iter().find(|(known, _)| *known == subject);
        if let (Some((_, line)), Some(server)) = (asked, only_server(&tree, listener)) {
            return self.ask_server(id, server, line);
        }
        let mut out = std::mem::take(&mut self.scratch);
        match subject {
            b"" => self.general(&tree, listener, &mut out),
            b"settings" => self.settings(&mut out),
            b"items" | b"slabs" | b"sizes" => {}
            b"conns" => memcache::connections(&*self.clients.register, &mut out),
            b"reset" => self.clients.register.tally.reset(),
            _ => out.extend_from_slice(b"CLIENT_ERROR bad stats command\r\n"),
        }
        match subject {
            b"reset" => out.extend_from_slice(b"RESET\r\n"),
            _ if out.starts_with(b"CLIENT_ERROR") => {}
            _ => out.extend_from_slice(b"END\r\n"),
        }
        self.answer_here(id, &out, false);
        out.clear();
        self.scratch = out;
    }

    fn ask_store(&mut self, id: ClientId, request: &Request, message: &[u8]) {
        if let Some(dump) = Dump::asked(request, message)
            && let Some(client) = self.clients.table.get_mut(id)
        {
            client.stage = Stage::Dump(Box::new(dump));
            return;
        }
        let mut out = std::mem::take(&mut self.scratch);
        memcache::answer(&self.store, &self.store_context(), request, message, &mut out);
        self.answer_here(id, &out, false);
        out.clear();
        self.scratch = out;
    }

    /// Asks a server with a line that is known here. The line is not the client's, so a server cannot take it
    /// for more than one request.
    fn ask_server(&mut self, id: ClientId, server: &Arc<Member>, line: &[u8]) {
        let now = self.now;
        let Some(client) = self.clients.table.get_mut(id) else {
            return;
        };
        let Parsed::Head(request) = client.protocol.head(line) else {
            return;
        };
        let to = ReplyTo::Client {
            client: id,
            seq: client
                .slots
                .push(request.command, false, ReplyRole::Whole, line.len() as u32, now),
        };
        self.send(server, 0, &request, line, to);
    }

    /// Writes the general metrics. The counts are those of all workers; a name that begins with `worker` is
    /// of the worker that serves this connection.
    ///
    /// There is no `total_items`, which every memcached has: a proxy that repairs this one as a copy must
    /// find out that it is no memcached. Writes may still be on their way behind a proxy when its `stats
    /// conns` shows no client any more.
    fn general(&self, tree: &Tree, listener: u16, out: &mut Vec<u8>) {
        let metrics = &self.metrics;
        row(out, "pid", self.facts.pid);
        row(out, "uptime", self.now.as_secs());
        row(out, "time", self.unix().as_secs());
        row(out, "version", env!("CARGO_PKG_VERSION"));
        row(out, "pointer_size", usize::BITS);
        row(out, "config_version", &tree.version);
        row(out, "threads", self.facts.workers);
        row(out, "max_connections", self.limits.clients);
        row(out, "curr_connections", self.clients.register.current());
        row(out, "total_connections", self.clients.register.total());
        row(out, "accepting_conns", u8::from(!self.clients.draining));
        for (name, count) in self.clients.register.tally.rows() {
            row(out, name, count);
        }
        row(out, "worker", self.facts.worker);
        row(out, "worker_connections", self.clients.len());
        row(out, "worker_requests", metrics.requests.iter().sum::<u64>());
        row(out, "worker_replies", metrics.replies.all());
        row(out, "worker_failovers", metrics.failovers);
        row(out, "worker_in_flight", self.servers.in_flight());
        for member in tree.reach(usize::from(listener)) {
            // The value always has two words: exporters take a row whose name has a colon for the row of a
            // slab, unless they see that it is none.
            let health = format!("{:?}", member.health.state()).to_lowercase();
            let state = format!("{health} {}", member.distance.name());
            row(out, &format!("member_{}", member.address), state);
        }
    }

    fn settings(&self, out: &mut Vec<u8>) {
        row(out, "maxconns", self.limits.clients);
        row(out, "num_threads", self.facts.workers);
        row(out, "item_size_max", self.limits.value_bytes);
        row(out, "idle_timeout", self.limits.idle.as_secs());
        row(out, "binding_protocol", "ascii");
        row(out, "auth_enabled_sasl", "no");
        row(out, "auth_enabled_ascii", "no");
        row(out, "lru_crawler", "no");
        row(out, "dump_enabled", "no");
        row(out, "shutdown_command", "no");
    }

    /// Goes on with the dump that this client has asked for, as far as there is room. Returns `false` if it
    /// has to go on later.
    pub(in crate::client) fn go_on_dumping(&mut self, id: ClientId) -> bool {
        let now = self.now;
        let Some(client) = self.clients.table.get_mut(id) else {
            return false;
        };
        let Stage::Dump(mut dump) = std::mem::replace(&mut client.stage, Stage::Requests) else {
            return true;
        };
        let mut out = std::mem::take(&mut client.stream.out);
        let mut steps = 0;
        let mut done = false;
        while !done && steps < DUMP_STEPS && out.len() < DUMP_BACKLOG {
            done = dump.step(&self.store, &self.store_context(), &mut out);
            steps += 1;
        }
        let Some(client) = self.clients.table.get_mut(id) else {
            return false;
        };
        client.active = now;
        client.stream.out = out;
        let sends = !client.stream.out.is_empty();
        if !done {
            client.stage = Stage::Dump(dump);
            client.stalled = true;
        }
        if sends {
            // The client is woken when it has taken what is sent.
            self.flush_later(Endpoint::Client(id));
        } else if !done {
            self.requeue(id);
        }
        done
    }
}

/// The server that this listener leads to, if it leads to nothing else.
fn only_server(tree: &Tree, listener: u16) -> Option<&Arc<Member>> {
    let listener = usize::from(listener);
    match tree.reach(listener) {
        [server] if !tree.reaches_store(listener) => Some(server),
        _ => None,
    }
}

fn row(out: &mut Vec<u8>, name: &str, value: impl std::fmt::Display) {
    // Writing to a Vec cannot fail.
    let _ = write!(out, "STAT {name} {value}\r\n");
}
