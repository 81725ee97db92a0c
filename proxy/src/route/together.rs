//! Four requests of a pipeline at once, where the tree is one choice of a member. FNV, which most keys are hashed with, makes
//! the processor wait for each byte of a key; four keys take hardly longer than one.

use std::{rc::Rc, sync::Arc};

use proxima_wire::message::Request;

use super::{Leaf, Node, NodeId, ReplyTo, Tree};
use crate::{engine::Engine, members::Member};

/// So many requests are looked at together.
pub(crate) const TOGETHER: usize = 4;

/// A request that has its slot and waits for those behind it, no longer than the bytes last with which it came.
pub(crate) struct Ahead {
    pub(crate) request: Request,
    /// Where it lies in these bytes.
    pub(crate) start: usize,
    pub(crate) to: ReplyTo,
}

impl Ahead {
    fn message<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        &bytes[self.start..self.start + self.request.len() as usize]
    }
}

impl Engine {
    /// Walks the tree with the requests of this client that wait for each other, in their order.
    #[inline]
    pub(crate) fn dispatch_ahead(&mut self, client: u32, tree: &Rc<Tree>, bytes: &[u8]) {
        if self.ahead.is_empty() {
            return;
        }
        let mut ahead = std::mem::take(&mut self.ahead);
        if let Some(client) = self.clients.get(client as usize)
            && let Some(root) = tree.root(usize::from(client.listener))
        {
            let origin = client.origin();
            let members = choose(tree, root, &ahead, bytes);
            for (ahead, member) in ahead.iter().zip(members) {
                let (request, message, to) = (&ahead.request, ahead.message(bytes), ahead.to);
                match member {
                    Some(member) => self.send(member, origin.login, request, message, to),
                    None => self.walk(tree, root, origin, request, message, to),
                }
            }
        }
        ahead.clear();
        self.ahead = ahead;
    }
}

/// The members that four requests go to; none for fewer requests, or where one must be thought about.
fn choose<'a>(
    tree: &'a Tree,
    node: NodeId,
    ahead: &[Ahead],
    bytes: &[u8],
) -> [Option<&'a Arc<Member>>; TOGETHER] {
    let (Node::Choose { handle, children }, Ok(four)) =
        (tree.node(node), <&[Ahead; TOGETHER]>::try_from(ahead))
    else {
        return [None; TOGETHER];
    };
    let keys = four
        .each_ref()
        .map(|ahead| ahead.request.key.of(ahead.message(bytes)));
    let Some(chosen) = handle.choose_four(keys) else {
        return [None; TOGETHER];
    };
    chosen.map(|child| match tree.node(*children.get(child)?) {
        Node::Leaf(Leaf::Member(member)) => Some(member).filter(|member| member.is_up()),
        _ => None,
    })
}
