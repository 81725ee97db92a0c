//! The answer to a delete of a pool whose failed deletes are kept.

use std::rc::Rc;

use super::{Answer, Leaf, NodeId, Tree, Walk, flight::child_of};
use crate::{
    engine::{Engine, FlightId},
    members::Member,
    spool::FailedDelete,
};

impl Engine {
    /// Deletes at a leaf. The answer is seen where its failure is kept.
    #[inline(never)]
    pub(super) fn delete_at(&mut self, node: NodeId, leaf: &Leaf, walk: &Walk<'_>) {
        if walk.tree.spool_of(node).is_none() {
            return self.leaf(leaf, walk);
        }
        let flight = self.watch(node, walk);
        self.leaf(leaf, &walk.to(child_of(flight, 0)));
    }

    /// Hands on the answer of this member. A failure of which another copy might not know is kept instead, and
    /// the client is answered as if the key had not been there, as mcrouter does.
    pub(super) fn deleted(&mut self, tree: &Rc<Tree>, id: FlightId, member: &Member, answer: &Answer<'_>) {
        let Some(flight) = self.router.flights.get(id) else {
            return;
        };
        let (node, parent, request, origin) = (flight.node, flight.parent, flight.request, flight.origin);
        let message = std::mem::take(&mut flight.message);
        self.router.flights.close(id);
        let spool = tree.spool_of(node).filter(|_| answer.outcome().is_failover());
        let is_kept = spool.is_some_and(|(spool, name)| {
            let mut scratch = [0; 250];
            spool.take(FailedDelete {
                server: member.address.clone(),
                pool: name.clone(),
                key: origin.protocol.key(&request, &message, &mut scratch).to_owned(),
            })
        });
        if !is_kept {
            return self.pass_on_answer(parent, answer);
        }
        let mut out = std::mem::take(&mut self.router.reply);
        let reply = origin.protocol.miss(origin.form, &request, &message, &mut out);
        self.pass_on_answer(parent, &Answer::Reply(&reply, &out));
        out.clear();
        self.router.reply = out;
    }
}
