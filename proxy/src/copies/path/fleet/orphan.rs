//! Deletes the keys of changes that a departed coordinator has not finished, at all copies, by ordinary
//! changes.

use std::rc::Rc;

use proxima_wire::message::Parsed;

use super::LockMode;
use crate::{
    copies::path::operation::{Message, Stage},
    engine::{Engine, ReplyTo},
    fleet::keeper::Orphan,
    members::Locality,
    route::{Origin, Walk},
};

impl Engine {
    /// Deletes these keys at all copies.
    pub(super) fn delete_orphans(&mut self, orphans: Vec<Orphan>) {
        let tree = Rc::clone(&self.tree);
        for orphan in orphans {
            let node = self
                .copies
                .fleet
                .as_ref()
                .and_then(|fleet| fleet.pools.get(&orphan.pool).copied());
            let Some((node, copies)) = node.and_then(|node| Some((node, tree.copies(node)?))) else {
                continue;
            };
            let Some(fleet_pool) = &copies.fleet else { continue };
            let mut message = Vec::new();
            match orphan.key.is_empty() {
                true => {
                    message.extend_from_slice(copies.copied.flush().map_or(&b""[..], |question| question.1))
                }
                false => copies.copied.removal(&orphan.key, &mut message),
            }
            let Parsed::Head(request) = fleet_pool.protocol.head(&message) else {
                continue;
            };
            let walk = Walk {
                tree: &tree,
                origin: Origin {
                    listener: 0,
                    form: 0,
                    login: 0,
                    locality: Locality::NONE,
                    client: None,
                    protocol: fleet_pool.protocol,
                    hides_prefix: false,
                },
                request: &request,
                message: &message,
                to: ReplyTo::Nobody,
            };
            let mut lock = self.copies.holder.lock(&orphan.key, LockMode::AtOnce);
            let goes = lock.try_lock();
            let operations = &mut self.copies.operations;
            let id = operations.begin(node, &walk, Some(lock), self.now, |mut buffer| {
                buffer.extend_from_slice(&message);
                match goes {
                    true => Stage::replicating(Message(buffer), false),
                    false => Stage::Waiting {
                        message: Message(buffer),
                    },
                }
            });
            match goes {
                true => self.replicate(id),
                false => self.go_on(id),
            }
        }
    }
}
