//! Versions of values (memcached's "cas unique") are one server's own count: from another home than the one
//! that decides, a number would mean another change, or by chance the wrong one. So they are shown to clients
//! with their home's mark.

use std::borrow::Cow;

use proxima_wire::{hash::spooky64, message::Reply};

use super::{
    member,
    operation::{Stage, reply_to},
};
use crate::{
    engine::Engine,
    members::Member,
    route::{Copies, NodeId, Tree, Walk},
};

/// The mark of a server, the same in every proxy that knows it by the same name.
pub(super) fn mark(member: &Member) -> u64 {
    spooky64(member.name.as_bytes(), 0)
}

/// The reply of child `home` as a client may see it.
pub(super) fn shown<'a>(
    tree: &Tree,
    copies: &Copies,
    home: usize,
    command: u16,
    reply: &Reply,
    bytes: &'a [u8],
) -> (Reply, Cow<'a, [u8]>) {
    let mut out = Vec::new();
    let marked = member(tree, copies, home)
        .is_some_and(|member| copies.copied.mark_reply(command, bytes, mark(member), &mut out));
    if !marked {
        return (*reply, Cow::Borrowed(bytes));
    }
    let head = (u64::from(reply.head) + out.len() as u64).saturating_sub(bytes.len() as u64) as u32;
    (Reply { head, ..*reply }, Cow::Owned(out))
}

impl Engine {
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
