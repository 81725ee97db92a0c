//! The way home of every answer: to whom it goes.

use proxima_wire::message::Reply;

use super::{Engine, ReplyTo};
use crate::{protocol::Failed, route::Answer};

impl Engine {
    /// Hands a reply to the receiver that waits for it.
    #[inline]
    pub(crate) fn deliver(&mut self, to: ReplyTo, reply: &Reply, bytes: &[u8]) {
        match to {
            ReplyTo::Client { client, seq } => self.answer(client, seq, reply, bytes),
            to => self.hand_inside(to, &Answer::Reply(reply, bytes)),
        }
    }

    /// Hands an error of the proxy to the receiver that waits.
    pub(crate) fn fail(&mut self, to: ReplyTo, failed: &Failed<'_>) {
        match to {
            ReplyTo::Client { client, seq } => self.answer_failed(client, seq, failed),
            to => self.hand_inside(to, &Answer::Failed(*failed)),
        }
    }

    /// Hands an answer to a receiver that is no client.
    fn hand_inside(&mut self, to: ReplyTo, answer: &Answer<'_>) {
        match to {
            ReplyTo::Flight { flight, child } => self.arrive(flight, child, answer),
            ReplyTo::Operation { operation, child } => self.copy_answered(operation, child, answer),
            ReplyTo::Peer { task } => self.answer_peer(task, answer),
            ReplyTo::Lane { lane } => self.lane_answered(lane, answer),
            ReplyTo::Admission { client } => self.admission_answered(client, answer),
            ReplyTo::Client { .. } | ReplyTo::Nobody => {}
        }
    }
}
