//! Requests for several keys.

use std::rc::Rc;

use proxima_wire::message::{Outcome, Parsed, Request};

use super::session::REMOVED;
use crate::{
    engine::{Engine, Peer},
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
            return self.refuse(index, request, Outcome::LocalError, REMOVED);
        };
        let mut single = std::mem::take(&mut self.scratch);
        let mut at = 0;
        while let Some(behind) = dialect.single(request, message, at, &mut single) {
            at = behind;
            let now = self.now;
            let Some(client) = self.client(index, generation) else {
                break;
            };
            let size = tree.cost(usize::from(listener), request.class, single.len());
            let seq = client
                .slots
                .push(request.command, request.is_quiet, true, size, now);
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
            single.clear();
        }
        single.clear();
        self.scratch = single;
        if at == 0 {
            let text = "the proxy cannot ask for these keys one by one";
            return self.refuse(index, request, Outcome::LocalError, text);
        }
        if let Some(client) = self.client(index, generation) {
            client.slots.push_answer(end, true, &mut client.stream.out);
            self.flush_later(Peer::Client { index, generation });
        }
    }
}
