//! Requests for several keys.

use std::rc::Rc;

use proxima_wire::message::{Outcome, Parsed, Request};

use super::session::REMOVED;
use crate::{
    engine::Engine,
    route::{ReplyTo, Tree},
};

impl Engine {
    /// Several keys: each a request of its own.
    pub(super) fn split(
        &mut self,
        index: u32,
        tree: &Rc<Tree>,
        request: &Request,
        message: &[u8],
        end: &[u8],
    ) {
        let Some(client) = self.clients.get_mut(index as usize) else {
            return;
        };
        let (dialect, listener, generation) = (client.dialect, client.listener, client.generation);
        let Some(root) = tree.root(usize::from(listener)) else {
            return self.refuse(index, request, REMOVED);
        };
        let mut single = std::mem::take(&mut self.scratch);
        let mut keys = std::mem::take(&mut self.keys);
        // All slots first: a reply that is there at once must find the closing slot behind it.
        dialect.keys(request, message, &mut |key| {
            keys.push((
                key,
                client
                    .slots
                    .push(request.command, request.is_quiet, true, self.now),
            ));
        });
        client.slots.push_answer(end, true, &mut client.stream.out);
        for (key, seq) in keys.drain(..) {
            single.clear();
            dialect.single(request, message, key, &mut single);
            let to = ReplyTo::Client {
                index,
                generation,
                seq,
            };
            match dialect.request(&single, self.limits.value_bytes as u64) {
                Parsed::Head(request) => self.dispatch(tree, root, listener, dialect, &request, &single, to),
                _ => self.deliver_error(
                    to,
                    dialect,
                    Outcome::LocalError,
                    "a key of this request cannot be asked for alone",
                ),
            }
        }
        single.clear();
        self.scratch = single;
        self.keys = keys;
    }
}
