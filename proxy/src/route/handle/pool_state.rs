//! Pools for which a protocol keeps a state at run time. The state makes requests wait, names the member that
//! a request goes to, and redirects a request where a reply says so. A pool has the nodes that its state makes
//! use of: one whose state only chooses opens no flight.

use proxima_wire::message::{Class, Request};

use super::Random;
use crate::{
    protocol::{Role, Tried},
    route::{
        Answer, StatefulPool,
        tree::{Attempt, AttemptRecord, Children, Choose, Query, Wrap, Wrapped},
    },
};

/// Holds requests while the pool's state says so.
#[derive(Debug)]
pub(in crate::route) struct Held(pub(in crate::route) StatefulPool);

impl Wrap for Held {
    fn name(&self) -> &'static str {
        "hold"
    }

    fn request(&self, _: &Request, _: &[u8], query: &Query<'_>, _: &mut Random) -> Wrapped {
        match self.0.state() {
            Some(state) if self.0.pool.orders.is_held() || state.holds(&query.asked(), &self.0) => {
                Wrapped::Park(self.0.clone())
            }
            _ => Wrapped::Pass,
        }
    }

    fn may_hold(&self) -> bool {
        true
    }

    fn why(&self) -> String {
        format!("requests of pool {} may have to wait", self.0.pool)
    }
}

/// Chooses the member that the pool's state names. The first child is the pool's own hash; the children
/// behind it are the pool's members.
#[derive(Debug)]
pub(in crate::route) struct Assigned(pub(in crate::route) StatefulPool);

impl Choose for Assigned {
    fn name(&self) -> &'static str {
        "assigned"
    }

    fn choose(&self, query: &Query<'_>, _: &Children<'_>, _: &mut Random) -> usize {
        let state = self.0.state();
        let member = state.and_then(|state| state.member(&query.asked(), &self.0));
        member.map_or(0, |position| 1 + position)
    }

    fn why(&self, _: &Query<'_>, _: &Children<'_>, chosen: usize) -> String {
        match chosen.checked_sub(1).and_then(|at| self.0.members.get(at)) {
            Some(member) => {
                let status = self
                    .0
                    .state()
                    .and_then(|state| state.role(&member.answerer(chosen - 1)));
                let pool = &self.0.pool;
                match status.map(|status| status.role) {
                    Some(Role::Writer) => format!("the writer of pool {pool}"),
                    Some(Role::Reader) => format!("a reader of pool {pool}"),
                    Some(Role::Out) => {
                        format!("pool {pool} knows of no server that serves, and this one says why")
                    }
                    None => format!("pool {pool} says that {} has this key", member.address),
                }
            }
            None => "the pool's own hash".into(),
        }
    }
}

/// Goes on to the member that a reply names, or begins anew where a member has failed. The children are those of
/// [`Assigned`], in the same order, and the first once more.
#[derive(Debug)]
pub(in crate::route) struct Redirected(pub(in crate::route) StatefulPool);

impl Attempt for Redirected {
    fn name(&self) -> &'static str {
        "redirect"
    }

    fn next(
        &self,
        query: &Query<'_>,
        tried: &mut AttemptRecord,
        children: &Children<'_>,
        answer: &Answer<'_>,
    ) -> Option<usize> {
        let state = self.0.state()?;
        let reply = match answer {
            Answer::Reply(_, reply) => reply,
            Answer::Failed(failed) => {
                let mut members = self.0.members.iter().enumerate();
                let (position, member) = members.find(|(_, member)| *member.address == *failed.server)?;
                let begins_anew = state.failed(&query.asked(), &member.answerer(position), failed);
                return begins_anew.then(|| children.len() - 1);
            }
        };
        let before = Tried {
            count: tried.count,
            last: tried
                .child
                .checked_sub(1)
                .filter(|&position| position < self.0.members.len()),
        };
        let position = state.redirect(&query.asked(), reply, before, &self.0)?;
        let is_new = position == self.0.members.len() || before.last != Some(position);
        Some(1 + position).filter(|&next| is_new && next < children.len())
    }

    fn goes_on_behind(&self, class: Class, answer: &Answer<'_>) {
        if let Some(state) = self.0.state() {
            state.sent_again(
                class,
                match answer {
                    Answer::Reply(_, reply) => Ok(reply),
                    Answer::Failed(failed) => Err(failed.fate),
                },
            );
        }
    }

    fn follow(&self, _: &Query<'_>, _: &AttemptRecord, _: &Children<'_>) -> Option<usize> {
        None
    }

    fn goes_on(&self, _: &Query<'_>) -> bool {
        true
    }

    fn why(&self) -> String {
        format!("pool {} may send it on", self.0.pool)
    }
}
