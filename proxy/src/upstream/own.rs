//! Requests of a pool's own: the questions of its state. They leave on lanes of the pool's own, where no
//! request of a client delays them.

use std::sync::Arc;

use proxima_wire::message::{Class, Request};

use super::Asker;
use crate::{
    engine::{Engine, LaneId, ReplyTo},
    members::Member,
    protocol::{PoolQuestion, ServerAnswer},
    route::{Answer, StatefulPool},
};

impl Engine {
    /// Asks a member of this pool what the pool's state wants to know.
    pub(crate) fn ask_for_pool(&mut self, kept: &StatefulPool, question: &PoolQuestion) {
        let Some(member) = kept.members.get(question.member) else {
            return;
        };
        let asker = Asker::State(Arc::clone(member), question.token, question.member);
        let mut request = Request::new(question.command, Class::Session, question.message.len());
        request.extra_timeout = u32::MAX;
        let id = self.own_lane_to(member);
        let number = self.servers.askers.insert(asker);
        self.give(
            id,
            member,
            &request,
            &question.message,
            ReplyTo::Pool { question: number },
        );
    }

    /// The lane of the pool's own to this member; opened if there is none.
    fn own_lane_to(&mut self, member: &Arc<Member>) -> LaneId {
        if let Some(own) = self.lanes_of(member).own {
            return own;
        }
        let id = self.open_lane(member, 0, false);
        self.lanes_of(member).own = Some(id);
        id
    }

    /// Handles the answer to a question that the pool itself has asked.
    pub(crate) fn pool_answered(&mut self, question: u32, answer: &Answer<'_>) {
        let heard = match answer {
            Answer::Reply(reply, bytes) => ServerAnswer::Reply(reply, bytes),
            Answer::Failed(failed) => ServerAnswer::Failed(failed),
        };
        match self.servers.askers.take(question) {
            Some(Asker::State(member, token, position)) => {
                if let Some(state) = &member.pool.state {
                    state.answered(token, &member.answerer(position), heard);
                }
            }
            Some(Asker::Cancel(cancel)) => self.canceled(&cancel, !answer.outcome().is_error()),
            None => {}
        }
    }
}
