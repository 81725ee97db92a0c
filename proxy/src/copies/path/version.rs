//! Versions of values (memcached's "cas unique") are one server's own count: at another home than the one
//! that decides, the number would belong to another change, or by chance to a wrong one. They are therefore
//! shown to clients with their home's mark.

use std::borrow::Cow;

use proxima_wire::{hash::spooky64, message::Reply};

use super::{
    member,
    operation::{Stage, reply_to},
};
use crate::{
    engine::Engine,
    route::{Copies, NodeId, Tree, Walk},
};

/// The reply of a home with this mark as a client may see it.
pub(super) fn shown<'a>(
    copies: &Copies,
    mark: u64,
    command: u16,
    reply: &Reply,
    bytes: &'a [u8],
) -> (Reply, Cow<'a, [u8]>) {
    let mut out = Vec::new();
    if !copies.copied.mark_reply(command, bytes, mark, &mut out) {
        return (*reply, Cow::Borrowed(bytes));
    }
    let head = (u64::from(reply.head) + out.len() as u64).saturating_sub(bytes.len() as u64) as u32;
    (Reply { head, ..*reply }, Cow::Owned(out))
}

impl Engine {
    /// The mark of child `home`: that of the server's name, the same in every proxy that knows the server by
    /// it. In a fleet, that of the peer's stay: another stay begins with an empty memory of versions.
    pub(super) fn mark(&self, tree: &Tree, copies: &Copies, home: usize) -> u64 {
        let stay = self.copies.fleet.as_ref().and_then(|fleet| fleet.keeper.me());
        match (&copies.fleet, stay) {
            (Some(fleet), Some((slot, stay))) => {
                let stay = [u64::from(slot.0).to_le_bytes(), stay.0.to_le_bytes()];
                spooky64(stay.as_flattened(), fleet.hash)
            }
            _ => member(tree, copies, home).map_or(0, |member| spooky64(member.name.as_bytes(), 0)),
        }
    }

    /// Looks at what only the key's home knows.
    pub(super) fn look_at_home(&mut self, node: NodeId, (home, child): (usize, NodeId), walk: &Walk<'_>) {
        let operations = &mut self.copies.operations;
        let id = operations.begin(node, walk, None, self.now, |_| Stage::Looking { home });
        if let Some(operation) = operations.get_mut(id) {
            operation.pending = 1;
        }
        self.walk(child, &walk.to(reply_to(id, home)));
    }
}
