//! A change that some copies took, and that could not be sent to others for a lack of this proxy's resources,
//! is rejected. Its key is removed at the copies that took it before the client is answered: no two copies
//! keep different values, and no client reads the rejected value.

use std::{rc::Rc, sync::Arc};

use proxima_wire::message::Parsed;

use super::{
    members,
    operation::{ENDED, Operation, Stage, is_done},
};
use crate::{
    engine::{Engine, OperationId, ReplyTo},
    members::Member,
    route::{Copies, Tree, Walk},
};

/// Has this change to be taken back?
pub(super) fn is_due(operation: &Operation) -> bool {
    let has_landed = || match operation.stage {
        Stage::Everywhere { .. } => operation.answers.outcomes().any(is_done),
        Stage::Following { .. } => true,
        _ => false,
    };
    !operation.unsent.is_empty() && has_landed()
}

impl Engine {
    /// Removes the key of a rejected change from every copy that may have taken it. The key stays locked
    /// until all have answered; a copy that fails to remove it has missed a write.
    pub(super) fn undo(&mut self, tree: &Rc<Tree>, copies: &Copies, id: OperationId) {
        let Some(operation) = self.copies.operations.get_mut(id) else {
            return self.broken(ENDED);
        };
        let origin = operation.origin;
        let key = operation.key().into_owned();
        let mut removal = Vec::with_capacity(key.len() + 16);
        // A flush is not undone: where it landed nothing is left.
        if !key.is_empty() {
            copies.copied.removal(&key, &mut removal);
        }
        let landed: Vec<(usize, &Arc<Member>)> = members(tree, copies)
            .filter(|(_, member)| !operation.missed.iter().any(|&(other, _)| other == member.id))
            .filter(|(_, member)| !operation.unsent.contains(&member.id))
            .collect();
        operation.stage = Stage::Undoing { key };
        operation.pending = 0;
        self.descend(|engine| {
            if let Parsed::Head(request) = origin.protocol.head(&removal) {
                let walk = Walk {
                    tree,
                    origin,
                    request: &request,
                    message: &removal,
                    to: ReplyTo::Nobody,
                };
                for (child, member) in landed {
                    match engine.copies.snapshot.state(member.id).is_written() {
                        true => engine.ask_copy(copies, id, child, &walk),
                        false => engine.miss(member, id, ""),
                    }
                }
            }
            engine.conclude(id);
        });
    }
}
