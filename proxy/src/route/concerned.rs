//! The members that a request without a key concerns.

use std::sync::Arc;

use proxima_wire::message::Class;

use super::{Leaf, Node, NodeId, Walk, tree::Query};
use crate::{engine::Engine, members::Member};

/// What a request without a key is about. Members that get mere copies of requests are never concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum About {
    /// The keys that clients find: where reads go now. Of several children with the same keys, one tells.
    Keys,
    /// The channels of which messages may come: each message is to be heard once.
    Channels,
    /// All data, or what servers know besides: every member that may serve a request.
    Everything,
}

impl Engine {
    /// Adds the members below `node` that a request about this concerns to `found`, each once.
    pub(crate) fn concerned(
        &mut self,
        mut node: NodeId,
        walk: &Walk<'_>,
        about: About,
        found: &mut Vec<Arc<Member>>,
    ) {
        loop {
            match walk.tree.node(node) {
                Node::Choose { handle, children } => {
                    let query = Query {
                        // The words of single commands do not count.
                        command: u16::MAX,
                        class: match about {
                            About::Channels => Class::Write,
                            About::Keys | About::Everything => Class::Read,
                        },
                        ..walk.query(b"", self.unix())
                    };
                    let (by_key, varies) = (handle.looks_at_key(query.unix), handle.varies(&query));
                    if by_key || about == About::Everything || varies && about == About::Channels {
                        return self.all_concerned(children, walk, about, found);
                    }
                    let choices = walk.children(children, self.copies.snapshot());
                    let chosen = match varies {
                        true => (0..children.len())
                            .find(|&child| choices.is_up(child))
                            .unwrap_or(0),
                        false => handle.choose(&query, &choices, &mut self.random),
                    };
                    match children.get(chosen) {
                        Some(&child) => node = child,
                        None => return,
                    }
                }
                Node::ByClient { handle, children } if about != About::Everything => {
                    match children.get(handle.choose(self.address_of(walk.to), children.len())) {
                        Some(&child) => node = child,
                        None => return,
                    }
                }
                Node::Gather { children, .. } | Node::Attempt { children, .. }
                    if about != About::Everything =>
                {
                    let choices = walk.children(children, self.copies.snapshot());
                    let first = (0..children.len()).find(|&child| choices.is_up(child));
                    match children.get(first.unwrap_or(0)) {
                        Some(&child) => node = child,
                        None => return,
                    }
                }
                Node::Fan { handle, children } if about != About::Everything || handle.shadows() => {
                    match children.first() {
                        Some(&child) => node = child,
                        None => return,
                    }
                }
                Node::ByClient { children, .. }
                | Node::Gather { children, .. }
                | Node::Attempt { children, .. }
                | Node::Fan { children, .. }
                | Node::Script { children, .. } => return self.all_concerned(children, walk, about, found),
                Node::Wrap { child, .. } => node = *child,
                Node::Near(near) => node = near.child,
                Node::Leaf(Leaf::Member(member)) => {
                    if !found.iter().any(|other| other.id == member.id) {
                        found.push(Arc::clone(member));
                    }
                    return;
                }
                Node::Copies(_) | Node::Leaf(_) => return,
            }
        }
    }

    fn all_concerned(
        &mut self,
        children: &[NodeId],
        walk: &Walk<'_>,
        about: About,
        found: &mut Vec<Arc<Member>>,
    ) {
        for &child in children {
            self.concerned(child, walk, about, found);
        }
    }
}
