//! A request on its way down the tree.

use std::rc::Rc;

use proxima_wire::message::{Outcome, Reply, Request};

use super::{
    Children, NodeId, Origin, Query, Tree,
    handle::behind_prefix,
    tree::{Asking, Of},
};
use crate::{
    copies::Snapshot,
    engine::{ClientId, ReplyTo},
    micros::Micros,
};

/// The inputs of every step on the way down: the request, its origin, and the destination of its reply.
#[derive(Clone, Copy)]
pub struct Walk<'a> {
    /// The tree that the request walks.
    pub tree: &'a Rc<Tree>,
    /// The origin of the request.
    pub origin: Origin,
    /// The parsed request.
    pub request: &'a Request,
    /// The request's bytes; for a streamed request, its head alone.
    pub message: &'a [u8],
    /// The destination of the reply.
    pub to: ReplyTo,
}

impl<'a> Walk<'a> {
    /// Is the request streamed, so that its body follows as it comes?
    pub fn is_streamed(&self) -> bool {
        (self.message.len() as u64) < self.request.len()
    }

    /// The children of a node, as the node's decision sees them.
    #[inline]
    pub fn children<'b>(&'b self, ids: &'b [NodeId], snapshot: &'b Snapshot) -> Children<'b> {
        Children {
            tree: self.tree,
            ids,
            snapshot,
            class: self.request.class,
        }
    }

    /// Is this reply what a server says that has nothing of what the request asks for?
    pub(super) fn has_missed(&self, reply: &Reply, bytes: &[u8]) -> bool {
        let Origin { protocol, form, .. } = self.origin;
        reply.outcome == Outcome::NotFound
            || !reply.outcome.is_error() && protocol.is_miss(form, self.request, self.message, bytes)
    }

    /// The same request with another destination for its reply.
    pub fn to(&self, to: ReplyTo) -> Self {
        Self { to, ..*self }
    }

    /// The key that routes look at. `scratch` has room for a key that must be decoded.
    #[inline]
    pub fn key<'b>(&self, scratch: &'b mut [u8; 250]) -> &'b [u8]
    where
        'a: 'b,
    {
        self.origin.protocol.key(self.request, self.message, scratch)
    }

    /// The inputs of a decision, with this key. `unix` is the present time, since 1970.
    #[inline]
    pub fn query<'b>(&self, key: &'b [u8], unix: Micros) -> Query<'b> {
        Query {
            // What belongs together goes one way, whichever its commands are.
            command: match self.request.is_of_transaction {
                true => u16::MAX,
                false => self.request.command,
            },
            class: self.request.class,
            key: match self.origin.hides_prefix {
                false => key,
                true => behind_prefix(key).1,
            },
            protocol: self.origin.protocol,
            locality: self.origin.locality,
            unix,
            of: Of::Nobody,
        }
    }
}

impl Asking for Walk<'_> {
    fn request(&self) -> &Request {
        self.request
    }

    fn message(&self) -> &[u8] {
        self.message
    }

    fn client(&self) -> Option<ClientId> {
        self.origin.client
    }
}
