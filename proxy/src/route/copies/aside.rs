//! Changes that come to a copy by another route than its pool: no flight of the pool notes what it misses of them.

use std::sync::Arc;

use crate::{
    engine::{Engine, News},
    members::Member,
    route::{Node, ReplyTo},
};

impl Engine {
    /// Is whoever waits for this reply the pool's own flight? That one knows what its copies have missed.
    pub(crate) fn notes_misses(&mut self, to: ReplyTo) -> bool {
        let ReplyTo::Flight { flight: id, .. } = to else {
            return false;
        };
        self.router
            .flights
            .get(id)
            .is_some_and(|flight| matches!(flight.tree.node(flight.node), Node::Copies(_)))
    }

    /// This copy does not have, or may not have, a change that no flight of its pool knows of. `key` is empty where it is
    /// not known.
    pub(crate) fn miss_aside(&mut self, member: &Arc<Member>, key: &[u8], why: &str) {
        if !self.tree.names(member.id) {
            return;
        }
        self.views.owe(member.id, key);
        self.fall(member, why);
    }

    /// This worker reads the copy no more, and tells the control thread, unless it has done so before.
    pub(super) fn fall(&mut self, member: &Arc<Member>, why: &str) {
        if self.views.fall(member.id) {
            self.wishes
                .news
                .push(News::Missed(Arc::clone(member), why.to_owned()));
        }
    }
}
