//! A kept reply on its way to one reader.

use std::sync::Arc;

use proxima_wire::message::Reply;

use crate::{
    client::SharedReply,
    engine::{Engine, ReplyTo},
    near::SMALL,
    route::{Answer, Walk},
};

/// A kept reply.
#[derive(Clone, Copy)]
pub(super) struct KeptReply<'a> {
    reply: &'a Reply,
    bytes: &'a [u8],
    /// The same bytes, where they are many and are not copied.
    lent: Option<&'a Arc<[u8]>>,
}

impl<'a> KeptReply<'a> {
    pub(super) fn small(reply: &'a Reply, bytes: &'a [u8]) -> Self {
        Self {
            reply,
            bytes,
            lent: None,
        }
    }

    pub(super) fn shared(reply: &'a Reply, bytes: &'a Arc<[u8]>) -> Self {
        Self {
            reply,
            bytes,
            lent: Some(bytes).filter(|bytes| bytes.len() > SMALL),
        }
    }
}

impl Engine {
    /// Gives a kept reply to its reader, as the reader's own. A large one leaves in pieces where a client reads
    /// it. Returns `false` if there is no room for the reply: the reader has no answer yet.
    pub(super) fn give_kept(&mut self, walk: &Walk<'_>, given: KeptReply<'_>) -> bool {
        let KeptReply { reply, bytes, lent } = given;
        let mut own = std::mem::take(&mut self.router.own);
        let cacheable = walk.origin.protocol.cacheable();
        let replaced = cacheable.and_then(|of| of.own(walk.request, walk.message, bytes, &mut own));
        let first = replaced.unwrap_or(0);
        let reply = Reply {
            head: (reply.head as usize + own.len()).saturating_sub(first) as u32,
            ..*reply
        };
        let loan = lent.map(|bytes| SharedReply {
            own: replaced.map(|_| (&own[..], first)),
            bytes,
            tail: b"",
        });
        let is_given = match (walk.to, loan) {
            (ReplyTo::Client { client, seq }, Some(loan))
                if self.answer_shared((client, seq), &reply, loan) =>
            {
                true
            }
            _ if !self.takes_reply(walk.to, bytes.len()) => false,
            _ if replaced.is_some() => {
                own.extend_from_slice(bytes.get(first..).unwrap_or_default());
                self.pass_on_answer(walk.to, &Answer::Reply(&reply, &own));
                true
            }
            _ => {
                self.pass_on_answer(walk.to, &Answer::Reply(&reply, bytes));
                true
            }
        };
        own.clear();
        if own.capacity() > SMALL * 2 {
            own = Vec::new();
        }
        self.router.own = own;
        is_given
    }
}
