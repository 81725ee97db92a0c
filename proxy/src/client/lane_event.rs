//! Events on a lane that belongs to one client: a lane of its own, or one with its subscriptions.

use proxima_wire::message::Reply;

use crate::{
    engine::{ClientId, Engine, LaneId},
    members::Member,
    protocol::StateSlot,
};

/// An event on a lane that belongs to one client.
#[derive(Clone, Copy)]
pub(crate) enum LaneEvent<'a> {
    /// A request of the client is answered: this is the reply, or the head or last part of a large one.
    Answered {
        /// The number of its command.
        command: u16,
        /// The reply.
        reply: &'a Reply,
        /// Its bytes.
        bytes: &'a [u8],
    },
    /// A part of a reply to this command of the client has begun, which is handed on as it comes.
    Begun(u16),
    /// The server has sent a message that no request has asked for.
    Pushed(&'a [u8]),
    /// The server sends more than the client may have buffered.
    Overwhelmed,
    /// The server keeps nothing for the client any more: the lane is free.
    Freed,
    /// The server keeps nothing any more, and the lane is not free for others.
    Released,
    /// The connection has ended, with what the server kept. This is what the codec had kept for it.
    Lost(&'a StateSlot),
    /// The same, and what waited on it has its answer.
    Ended,
}

impl Engine {
    /// Hands a client an event on its lane to this member.
    pub(crate) fn lane_has(&mut self, owner: ClientId, lane: LaneId, member: &Member, event: LaneEvent<'_>) {
        let is_subscribed = self.clients.is_subscribed_on(owner, member.id, lane);
        match event {
            LaneEvent::Answered { .. } if is_subscribed => self.reject_subscription(owner),
            LaneEvent::Answered {
                command,
                reply,
                bytes,
            } => self.clients.note_reply(owner, member, command, (reply, bytes)),
            LaneEvent::Begun(command) => self.clients.note_begin(owner, member, command),
            LaneEvent::Pushed(bytes) if is_subscribed => self.push_to_subscriber(owner, lane, bytes),
            LaneEvent::Pushed(bytes) => {
                // A client that does not read fast enough is closed, as its server would do.
                if !self.push_to_client(owner, bytes) {
                    self.close_slow(owner);
                }
            }
            LaneEvent::Overwhelmed => self.close_slow(owner),
            LaneEvent::Freed => self.clients.set_own_lane(owner, None),
            LaneEvent::Released => self.clients.end_retention(owner),
            LaneEvent::Lost(state) => self.lose_own_lane(owner, lane, state),
            LaneEvent::Ended => self.lose_subscriptions(owner, member, lane),
        }
    }
}
