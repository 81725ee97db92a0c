//! In a request for several keys, each key is a request of its own.
//!
//! The keys are served as there is room, a batch at a time, and from a line whose end has not come. The
//! rest of such a request waits where all of the client's bytes do, so that it takes no memory of its own
//! however many keys it has.

use std::rc::Rc;

use proxima_wire::message::{NextKey, Outcome, Parsed, Reply, Request};

use super::{
    ReplyRole,
    errors::{OUT_OF_MEMORY, REMOVED},
    input::Input,
    stage::{Keys, Stage},
};
use crate::{
    engine::{ClientId, Endpoint, Engine, ReplyTo},
    micros::Micros,
    protocol::{Failed, Join},
    route::{Tree, Walk},
};

/// The number of keys of one client that servers are asked for at a time. A request for one key is short to
/// send and costs a server as much as any. Many clients with many more keys would be a queue before every
/// other client.
const KEYS_AT_ONCE: usize = 256;
/// The same number while a worker has [`BUSY`] requests at servers.
const KEYS_AT_BUSY_TIMES: usize = 16;
const BUSY: usize = 4096;

/// The keys of one request, of which `used` bytes are served.
struct KeyBatch<'a> {
    request: &'a Request,
    head: &'a [u8],
    join: &'static Join,
    failed: bool,
    used: usize,
    /// Keys that were asked for.
    asked: u64,
}

/// The reason why a batch ends.
#[derive(PartialEq, Eq)]
enum Stop {
    /// The last key is served.
    End,
    /// The next bytes cannot be understood.
    Cut,
    /// The next key has not come.
    More,
    /// There is no room for another reply, or other clients are to be served first.
    Full,
}

impl Engine {
    /// Begins to serve a request for several keys, which comes next. Returns `true` when all its keys are
    /// served; `None` if its keys are not served one by one.
    pub(super) fn split(&mut self, id: ClientId, request: &Request, input: &mut Input<'_>) -> Option<bool> {
        let client = self.clients.table.get_mut(id)?;
        let message = input.rest();
        let mut begin = Vec::new();
        let join = client
            .protocol
            .split(&client.session, request, message, &mut begin)?;
        let number = client.number(request.command);
        self.serve_pending(id, input);
        self.metrics.asked(number);
        let (head, keys) = message.split_at(request.key.start as usize);
        let mut batch = KeyBatch {
            request,
            head,
            join,
            failed: false,
            used: 0,
            asked: 0,
        };
        if self.clients.over_memory {
            // One error takes the place of the whole list.
            if matches!(join, Join::List) {
                batch.join = &Join::Concat { end: b"" };
            }
            self.fail_keys(id, &mut batch, Outcome::Overloaded, OUT_OF_MEMORY);
        } else if !begin.is_empty() {
            self.answer_here(id, &begin, false);
        }
        let stop = self.serve_keys(id, input.tree, &mut batch, keys, &mut input.budget);
        let KeyBatch {
            join, failed, used, ..
        } = batch;
        let is_over = self.end_keys(id, join, &stop);
        if !is_over && let Some(client) = self.clients.table.get_mut(id) {
            client.stage = Stage::Keys(Box::new(Keys {
                request: *request,
                head: head.to_vec(),
                join,
                failed,
                since: self.now,
            }));
        }
        input.at += head.len() + used;
        Some(is_over)
    }

    /// Serves more keys of a request. Returns `false` if the last one has not been served.
    pub(super) fn go_on_splitting(&mut self, id: ClientId, input: &mut Input<'_>) -> bool {
        let Some(client) = self.clients.table.get_mut(id) else {
            return false;
        };
        let Stage::Keys(mut keys) = std::mem::replace(&mut client.stage, Stage::Requests) else {
            return true;
        };
        let mut batch = KeyBatch {
            request: &keys.request,
            head: &keys.head,
            join: keys.join,
            failed: keys.failed,
            used: 0,
            asked: 0,
        };
        let stop = self.serve_keys(id, input.tree, &mut batch, input.rest(), &mut input.budget);
        let (used, failed) = (batch.used, batch.failed);
        input.at += used;
        if self.end_keys(id, keys.join, &stop) {
            return true;
        }
        if let Some(client) = self.clients.table.get_mut(id) {
            keys.failed = failed;
            client.stage = Stage::Keys(keys);
        }
        false
    }

    fn serve_keys(
        &mut self,
        id: ClientId,
        tree: &Rc<Tree>,
        batch: &mut KeyBatch<'_>,
        bytes: &[u8],
        budget: &mut usize,
    ) -> Stop {
        let mut single = std::mem::take(&mut self.scratch);
        let stop = loop {
            let Some(client) = self.clients.table.get(id) else {
                // Serving one of the keys has closed the client.
                batch.used = bytes.len();
                break Stop::End;
            };
            let rest = &bytes[batch.used..];
            let key = match client.protocol.next_key(batch.request, rest) {
                NextKey::Key(key) => key,
                NextKey::End(used) => {
                    batch.used += used;
                    break Stop::End;
                }
                NextKey::More(used) => {
                    batch.used += used;
                    break Stop::More;
                }
                NextKey::Bad(bad) if bad.close => break Stop::Cut,
                NextKey::Bad(bad) => {
                    batch.used += bad.head as usize;
                    let reply = Reply::new(Outcome::ClientError, bad.reply.len());
                    self.answer_keys(id, batch, &reply, bad.reply);
                    continue;
                }
            };
            if !batch.failed {
                if *budget == 0 || !self.admits_key(id) {
                    self.stall(id, *budget == 0);
                    break Stop::Full;
                }
                *budget -= 1;
                self.serve_key(id, tree, batch, key.of(rest), &mut single);
                single.clear();
            }
            batch.used += key.end();
        };
        self.scratch = single;
        if let Some(client) = self.clients.table.get(id) {
            self.metrics.listener(client.listener).fragments += batch.asked;
        }
        stop
    }

    fn admits_key(&mut self, id: ClientId) -> bool {
        let asked = self.clients.table.get(id).map_or(0, |client| client.slots.len());
        asked < self.most_parts() && self.admits(id)
    }

    /// The number of parts of one client's request that servers are asked for at a time.
    pub(super) fn most_parts(&self) -> usize {
        match self.servers.in_flight() < BUSY {
            true => KEYS_AT_ONCE,
            false => KEYS_AT_BUSY_TIMES,
        }
    }

    /// Serves one of the keys by a request that is written into `single`.
    fn serve_key(
        &mut self,
        id: ClientId,
        tree: &Rc<Tree>,
        batch: &mut KeyBatch<'_>,
        key: &[u8],
        single: &mut Vec<u8>,
    ) {
        let Some(client) = self.clients.table.get_mut(id) else {
            return;
        };
        let (origin, listener) = (client.origin(id), client.listener);
        let Some(root) = tree.root(usize::from(listener)) else {
            return self.fail_keys(id, batch, Outcome::LocalError, REMOVED);
        };
        batch.asked += 1;
        origin.protocol.single(batch.request, batch.head, key, single);
        let Parsed::Head(request) = origin.protocol.head(single) else {
            let text = "a key of this request cannot be asked for alone";
            return self.fail_keys(id, batch, Outcome::LocalError, text);
        };
        let size = tree.cost(usize::from(listener), request.class, single.len());
        let seq = client.slots.push(
            request.command,
            batch.request.is_quiet,
            batch.role(),
            size,
            self.now,
        );
        let to = ReplyTo::Client { client: id, seq };
        let walk = Walk {
            tree,
            origin,
            request: &request,
            message: single,
            to,
        };
        self.walk(root, &walk);
    }

    /// Answers all keys that are not served yet with an error of the proxy.
    fn fail_keys(&mut self, id: ClientId, batch: &mut KeyBatch<'_>, outcome: Outcome, text: &str) {
        let Some(client) = self.clients.table.get(id) else {
            return;
        };
        let mut line = Vec::new();
        client
            .protocol
            .error(&client.session, &Failed::here(outcome, text), &mut line);
        self.answer_keys(id, batch, &Reply::new(outcome, line.len()), &line);
    }

    fn answer_keys(&mut self, id: ClientId, batch: &mut KeyBatch<'_>, reply: &Reply, line: &[u8]) {
        let Some(client) = self.clients.table.get_mut(id) else {
            return;
        };
        // Each key of a list has its own answer.
        let is_list = matches!(batch.join, Join::List);
        if std::mem::replace(&mut batch.failed, !is_list) {
            return;
        }
        self.metrics.clients.refused += 1;
        let seq = client
            .slots
            .push(batch.request.command, false, batch.role(), 0, self.now);
        let to = ReplyTo::Client { client: id, seq };
        self.deliver(to, reply, line);
    }

    /// Closes a request whose last replies are on their way. One that cannot be understood to its end has no
    /// end of its reply either: its client is closed. Returns `false` if more of the request is to be served.
    fn end_keys(&mut self, id: ClientId, join: &'static Join, stop: &Stop) -> bool {
        if matches!(stop, Stop::More | Stop::Full) {
            return false;
        }
        if let Some(client) = self.clients.table.get_mut(id) {
            client.half = Micros::NEVER;
            match stop {
                Stop::Cut => client.close_as_failed(),
                _ => client.slots.close(join, &mut client.stream.out),
            }
            self.flush_later(Endpoint::Client(id));
        }
        true
    }
}

impl KeyBatch<'_> {
    /// The part that the reply to one of the keys has.
    const fn role(&self) -> ReplyRole {
        match self.join {
            Join::Concat { .. } => ReplyRole::Body,
            Join::List => ReplyRole::Whole,
            Join::Sum { .. } => ReplyRole::Number,
            Join::Parts(_) => ReplyRole::Part,
        }
    }
}
