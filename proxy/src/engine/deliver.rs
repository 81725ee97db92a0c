//! Delivery of every answer to its receiver.
//!
//! A client gets its answer at once. A receiver inside the engine (a flight, an operation, a task, a login)
//! may ask another one when it is answered, and may be answered at once again: by the embedded store, or by
//! an error. An answer that is made while a request walks down waits in a queue until the walk is over.
//! Therefore:
//!
//! * a receiver that has asked several has asked all of them before the first answer arrives;
//! * the state that a receiver has lent to a walk is back when an answer arrives;
//! * answers are not handed on within each other, however many receivers are answered at once. Only the
//!   answer *of* a receiver goes up to its own parent directly, at most as far as the tree is high.
//!
//! Lanes that become free meanwhile are given to the clients that wait for one in the same way.

use std::{mem, sync::Arc};

use proxima_wire::message::Reply;

use super::{
    Engine, ReplyTo,
    waiting::{Due, Waiting},
};
use crate::{
    members::{Member, MemberId},
    protocol::Failed,
    route::Answer,
};

/// The answers that wait, and the state that decides whether more have to.
#[derive(Debug, Default)]
pub(super) struct Delivery {
    way: Way,
    waiting: Waiting,
    /// The buffers of what is being handed on; empty at other times.
    spare: Waiting,
    /// The member whose reply is being handed on. `None`: what is handed on is no member's, or nothing is.
    from: Option<MemberId>,
}

/// The work that is under way in the engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Way {
    /// Nothing: an answer comes from outside.
    #[default]
    Rest,
    /// A request of a receiver walks down.
    Down,
    /// An answer is handed to its receiver, or a lane to its next client.
    Up,
}

impl Engine {
    /// Hands a reply to the receiver that waits for it.
    #[inline]
    pub(crate) fn deliver(&mut self, to: ReplyTo, reply: &Reply, bytes: &[u8]) {
        match to {
            ReplyTo::Client { client, seq } => self.answer(client, seq, reply, bytes),
            to => self.deliver_inside(to, &Answer::Reply(reply, bytes)),
        }
    }

    /// Hands the reply of this member to the receiver that waits for it.
    #[inline]
    pub(crate) fn deliver_from(&mut self, member: MemberId, to: ReplyTo, reply: &Reply, bytes: &[u8]) {
        match to {
            ReplyTo::Client { client, seq } => self.answer(client, seq, reply, bytes),
            to => self.handing_on(member, |engine| {
                engine.deliver_inside(to, &Answer::Reply(reply, bytes));
            }),
        }
    }

    /// Hands on what this member has sent: meanwhile it is known [whose](Self::replier) answer that is.
    pub(crate) fn handing_on<T>(&mut self, member: MemberId, hand: impl FnOnce(&mut Self) -> T) -> T {
        self.delivery.from = Some(member);
        let handed = hand(self);
        self.delivery.from = None;
        handed
    }

    /// The member whose reply is being handed on. `None`: it is no member's.
    pub(crate) fn replier(&self) -> Option<MemberId> {
        self.delivery.from
    }

    /// Hands an error of the proxy to the receiver that waits.
    pub(crate) fn fail(&mut self, to: ReplyTo, failed: &Failed<'_>) {
        match to {
            ReplyTo::Client { client, seq } => self.answer_failed(client, seq, failed),
            to => self.deliver_inside(to, &Answer::Failed(*failed)),
        }
    }

    /// Hands on the answer of a receiver that was answered itself.
    pub(crate) fn pass_on_answer(&mut self, to: ReplyTo, answer: &Answer<'_>) {
        match (to, answer) {
            (ReplyTo::Client { client, seq }, Answer::Reply(reply, bytes)) => {
                self.answer(client, seq, reply, bytes);
            }
            (ReplyTo::Client { client, seq }, Answer::Failed(failed)) => {
                self.answer_failed(client, seq, failed);
            }
            (to, answer) if self.delivery.way == Way::Up => self.hand(to, answer),
            (to, answer) => self.deliver_inside(to, answer),
        }
    }

    /// Lets requests of a receiver walk down: answers that are made within `walk` wait until it is over.
    #[inline]
    pub(crate) fn descend(&mut self, walk: impl FnOnce(&mut Self)) {
        let before = mem::replace(&mut self.delivery.way, Way::Down);
        walk(self);
        self.delivery.way = before;
        if before == Way::Rest {
            self.hand_waiting();
        }
    }

    /// Returns whether the answer to this receiver has been made, and waits.
    pub(crate) fn is_answered(&self, to: ReplyTo) -> bool {
        self.delivery.waiting.has(to)
    }

    /// Gives free lanes to this member to the clients that wait for one: now, or when what is under way is
    /// over.
    pub(crate) fn give_lanes(&mut self, member: &Arc<Member>) {
        if self.delivery.way != Way::Rest {
            return self.delivery.waiting.push_lanes(member);
        }
        self.hand_lanes(member);
        self.hand_waiting();
    }

    /// Hands an answer to a receiver that is no client: now, or when the walk is over.
    fn deliver_inside(&mut self, to: ReplyTo, answer: &Answer<'_>) {
        match to {
            ReplyTo::Flight { .. }
            | ReplyTo::Operation { .. }
            | ReplyTo::Peer { .. }
            | ReplyTo::Admission { .. }
            | ReplyTo::Pool { .. } => {
                if self.delivery.way != Way::Rest {
                    return self.delivery.waiting.push(to, answer);
                }
                self.hand(to, answer);
                self.hand_waiting();
            }
            ReplyTo::Lane { lane } => self.lane_answered(lane, answer),
            ReplyTo::Client { .. } | ReplyTo::Nobody => {}
        }
    }

    /// Hands an answer to a receiver inside the engine.
    fn hand(&mut self, to: ReplyTo, answer: &Answer<'_>) {
        let before = mem::replace(&mut self.delivery.way, Way::Up);
        match to {
            ReplyTo::Flight { flight, child } => self.arrive(flight, child, answer),
            ReplyTo::Operation { operation, child } => self.copy_answered(operation, child, answer),
            ReplyTo::Peer { task } => self.answer_peer(task, answer),
            ReplyTo::Admission { client } => self.admission_answered(client, answer),
            ReplyTo::Pool { question } => self.pool_answered(question, answer),
            ReplyTo::Client { .. } | ReplyTo::Lane { .. } | ReplyTo::Nobody => {}
        }
        self.delivery.way = before;
    }

    fn hand_lanes(&mut self, member: &Arc<Member>) {
        let before = mem::replace(&mut self.delivery.way, Way::Up);
        self.serve_queue(member);
        self.delivery.way = before;
    }

    /// Hands on what waits, and what comes because of that.
    #[inline]
    fn hand_waiting(&mut self) {
        while !self.delivery.waiting.is_empty() {
            self.hand_all();
        }
    }

    /// Hands on all that waits now. What comes meanwhile waits behind it.
    #[cold]
    fn hand_all(&mut self) {
        // What waits was made here.
        self.delivery.from = None;
        let spare = mem::take(&mut self.delivery.spare);
        let mut all = mem::replace(&mut self.delivery.waiting, spare);
        for due in all.iter() {
            match due {
                Due::Answer(to, answer) => self.hand(to, &answer),
                Due::Lanes(member) => self.hand_lanes(member),
            }
        }
        all.clear();
        self.delivery.spare = all;
    }
}
