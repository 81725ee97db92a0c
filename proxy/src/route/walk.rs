//! A request on its way down the tree.

use std::rc::Rc;

use proxima_wire::message::Request;

use super::{Children, NodeId, Origin, Query, ReplyTo, Tree};
use crate::copies::Snapshot;

/// What every step of a way down needs: the request, where it came from, and whom its reply is for.
#[derive(Clone, Copy)]
pub struct Walk<'a> {
    /// The tree that the request walks.
    pub tree: &'a Rc<Tree>,
    pub origin: Origin,
    pub request: &'a Request,
    /// The request's bytes; the head alone of a request that is streamed.
    pub message: &'a [u8],
    pub to: ReplyTo,
}

impl<'a> Walk<'a> {
    /// Does the request's body follow as it comes?
    pub fn is_streamed(&self) -> bool {
        (self.message.len() as u64) < self.request.len()
    }

    /// The children of a node, as its decision sees them.
    #[inline]
    pub fn children<'b>(&'b self, ids: &'b [NodeId], snapshot: &'b Snapshot) -> Children<'b> {
        Children {
            tree: self.tree,
            ids,
            snapshot,
            class: self.request.class,
        }
    }

    /// The same request with another destination for its reply.
    pub fn to(&self, to: ReplyTo) -> Self {
        Self { to, ..*self }
    }

    /// The key that routes look at, which `scratch` has room for if it must be decoded.
    #[inline]
    pub fn key<'b>(&self, scratch: &'b mut [u8; 250]) -> &'b [u8]
    where
        'a: 'b,
    {
        self.origin.dialect.key(self.request, self.message, scratch)
    }

    /// What decisions may look at, with this key.
    pub fn query<'b>(&self, key: &'b [u8]) -> Query<'b> {
        Query {
            command: self.request.command,
            class: self.request.class,
            key,
            dialect: self.origin.dialect,
            locality: self.origin.locality,
        }
    }
}
