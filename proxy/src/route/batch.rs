//! Four requests of a pipeline at once, where the tree is one choice of a member. FNV, which hashes most
//! keys, makes the processor wait for each byte of a key; four keys take hardly longer than one.

use std::{rc::Rc, sync::Arc};

use proxima_wire::message::{Class, Request};

use super::{Leaf, Node, NodeId, Origin, Tree, Walk};
use crate::{
    engine::{Engine, ReplyTo},
    members::Member,
};

/// The number of requests in a batch.
pub(crate) const BATCH: usize = 4;

/// A request that has its slot and waits for the requests behind it. It waits no longer than the bytes that
/// it came with are kept.
pub(crate) struct Pending {
    pub(crate) request: Request,
    /// The offset of the request in these bytes.
    pub(crate) start: usize,
    pub(crate) to: ReplyTo,
}

impl Pending {
    fn message<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        &bytes[self.start..self.start + self.request.len() as usize]
    }
}

impl Engine {
    /// Walks the tree with pending requests, in their order. They came from `origin`, within `bytes`.
    #[inline]
    pub(crate) fn walk_batch(&mut self, origin: Origin, tree: &Rc<Tree>, pending: &[Pending], bytes: &[u8]) {
        let Some(root) = tree.root(usize::from(origin.listener)) else {
            return;
        };
        let members = choose(tree, root, pending, bytes);
        for (pending, member) in pending.iter().zip(members) {
            let (request, message, to) = (&pending.request, pending.message(bytes), pending.to);
            // A delete whose failure is kept needs a flight.
            let is_spooled = request.class == Class::Delete && tree.spool().is_some();
            match member.filter(|_| !is_spooled) {
                Some(member) => self.send(member, origin.login, request, message, to),
                None => {
                    let walk = Walk {
                        tree,
                        origin,
                        request,
                        message,
                        to,
                    };
                    self.walk(root, &walk);
                }
            }
        }
    }
}

/// The members that the requests of a whole batch go to. `None`: the request walks the tree by itself,
/// because the batch is incomplete, the choice depends on more than the key, or the member is ejected.
fn choose<'a>(
    tree: &'a Tree,
    node: NodeId,
    pending: &[Pending],
    bytes: &[u8],
) -> [Option<&'a Arc<Member>>; BATCH] {
    let (Node::Choose { handle, children }, Ok(batch)) =
        (tree.node(node), <&[Pending; BATCH]>::try_from(pending))
    else {
        return [None; BATCH];
    };
    let keys = batch
        .each_ref()
        .map(|pending| pending.request.key.of(pending.message(bytes)));
    let Some(chosen) = handle.choose_four(keys) else {
        return [None; BATCH];
    };
    chosen.map(|child| match tree.node(*children.get(child)?) {
        Node::Leaf(Leaf::Member(member)) => Some(member).filter(|member| member.is_up()),
        _ => None,
    })
}
