//! The bytes of a client that are being served.

use std::rc::Rc;

use crate::route::Tree;

/// The bytes of a client that are being served.
pub(super) struct Input<'a> {
    /// The tree that its requests enter.
    pub(super) tree: &'a Rc<Tree>,
    pub(super) bytes: &'a [u8],
    /// The number of bytes that are taken.
    pub(super) at: usize,
    /// The number of requests that may still be taken in this turn.
    pub(super) budget: usize,
    /// The bytes are not the client's own, and not there in the next turn.
    pub(super) is_made: bool,
}

impl<'a> Input<'a> {
    /// The bytes that are not taken yet.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    /// Drops the rest. Returns `false`: no more can be taken.
    pub(super) fn discard(&mut self) -> bool {
        self.at = self.bytes.len();
        false
    }
}
