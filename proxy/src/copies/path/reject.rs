//! Rejects a write that too few copies took.

use std::{rc::Rc, sync::Arc};

use proxima_wire::message::{Outcome, Parsed};

use super::{
    members,
    operation::{ENDED, Stage},
};
use crate::{
    copies::CopyState,
    engine::{Engine, OperationId, ReplyTo},
    members::Member,
    protocol::Failed,
    route::{Copies, Tree, Walk},
};

impl Engine {
    /// Too few copies took this change: it is removed where it landed, and as this may be the side that is
    /// cut off, copies in reach are not trusted either. `sent`: it was sent to all, and not only to its home.
    pub(super) fn reject_change(&mut self, tree: &Rc<Tree>, copies: &Copies, id: OperationId, sent: bool) {
        let Some(operation) = self.copies.operations.get_mut(id) else {
            return self.broken(ENDED);
        };
        let (parent, landed, origin) = (operation.parent, operation.landed, operation.origin);
        let home = match operation.stage {
            Stage::Following { home, .. } => Some(home),
            _ => None,
        };
        let key = operation.key().into_owned();
        let mut removal = Vec::new();
        // A flush is not undone: where it landed nothing is left.
        if !key.is_empty() {
            copies.copied.removal(&key, &mut removal);
        }
        let missed = std::mem::take(&mut operation.missed);
        self.copies.operations.end(id);
        let mut reached: Vec<(usize, &Arc<Member>)> = members(tree, copies)
            .filter(|(_, member)| !missed.iter().any(|&(other, _)| other == member.id))
            .collect();
        let snapshot = &mut self.copies.snapshot;
        reached.retain(|&(child, member)| {
            let is_written = snapshot.state(member.id).is_written();
            if !is_written && !key.is_empty() && (sent || home == Some(child)) {
                // It has taken this write, and is not given the removal.
                snapshot.miss(member.id, &key);
            }
            is_written
        });
        // Copies that return one after the other are all joining, and not read: they must not begin anew with
        // each write.
        let was_read = reached
            .iter()
            .any(|(_, member)| snapshot.state(member.id) != CopyState::Joining);
        for (child, member) in reached {
            if let Parsed::Head(request) = origin.protocol.head(&removal) {
                let walk = Walk {
                    tree,
                    origin,
                    request: &request,
                    message: &removal,
                    to: ReplyTo::Nobody,
                };
                self.walk(copies.children[child], &walk);
            }
            if was_read {
                let why = "too few copies took a write: this proxy may be the one that is cut off";
                self.miss_bypass_write(member, b"", why);
            }
        }
        let text = format!(
            "only {landed} of the {} copies that min_acks asks for took this write",
            copies.min_acks
        );
        self.fail(parent, &Failed::here(Outcome::Overloaded, &text));
    }
}
