//! Replies to the parts of a request that went to several members. They are held until the last has come.

use std::collections::VecDeque;

use super::{Part, Slots, State, held::Held};
use crate::{
    client::HIGH_WATER,
    dialect::{Assembly, Excerpt, Join, Shares},
    stream::append,
};

/// Requests that went to several members.
#[derive(Debug, Default)]
pub(super) struct Divided {
    /// The share of each key, in the order of the requests.
    orders: VecDeque<u16>,
    /// A buffer for joining shares.
    cursors: Vec<usize>,
    /// What is still to leave of a large joined reply, first of all. Its shares stay until the last excerpt
    /// has left, and nothing of them is held twice.
    leaving: Option<Leaving>,
}

/// A large joined reply that leaves as the client takes it.
#[derive(Debug)]
struct Leaving {
    excerpts: std::vec::IntoIter<Excerpt>,
    /// The rest of the excerpt that has begun to leave.
    begun: Option<Excerpt>,
    /// The number of shares.
    count: usize,
}

impl Divided {
    /// Bytes of memory, used or not.
    pub(super) fn memory(&self) -> usize {
        let excerpts = self.leaving.as_ref().map_or(0, |leaving| leaving.excerpts.len());
        self.orders.capacity() * size_of::<u16>()
            + self.cursors.capacity() * size_of::<usize>()
            + excerpts * size_of::<Excerpt>()
    }
}

impl Slots {
    /// Adds the slot that makes one reply of the shares before it. `order`: the share of each key.
    pub(in crate::client) fn close_shares(&mut self, join: &'static Join, order: &[u16], out: &mut Vec<u8>) {
        self.divided.get_or_insert_default().orders.extend(order);
        let keys = order.len() as u32;
        self.push_known(State::Assemble { join, keys }, out);
    }

    /// Returns whether nothing of this client leaves before this share has come whole.
    pub(in crate::client) fn is_due_share(&self, seq: u32) -> bool {
        let at = seq.wrapping_sub(self.head) as usize;
        let mut before = self.queue.iter().take(at + 1);
        at < self.queue.len() && before.all(|slot| slot.part == Part::Share)
    }

    /// Returns whether a joined reply has begun to leave and waits until the client has taken more of it.
    #[inline]
    pub(in crate::client) fn is_leaving(&self) -> bool {
        let divided = self.divided.as_ref();
        divided.is_some_and(|divided| divided.leaving.is_some())
    }

    /// Lets more of a joined reply leave: the client has taken what was there.
    pub(in crate::client) fn go_on(&mut self, out: &mut Vec<u8>) {
        if self.is_leaving() {
            self.release(out);
        }
    }

    /// Lets the shares at the front leave as one reply. Returns `false` if one of them has not come, or if
    /// the client has to take what has left before more does.
    pub(super) fn assemble(&mut self, out: &mut Vec<u8>) -> bool {
        if self.is_leaving() {
            return self.leave(out);
        }
        let Some(count) = self.queue.iter().position(|slot| slot.part != Part::Share) else {
            return false;
        };
        let is_there = |state: &State| matches!(state, State::Held { .. } | State::Collected(_));
        let all = self.queue.iter().take(count).all(|slot| is_there(&slot.state));
        let Some(State::Assemble { join, keys }) = self.queue.get(count).map(|slot| &slot.state) else {
            return false;
        };
        if !all {
            return false;
        }
        let Divided {
            orders,
            cursors,
            leaving,
        } = &mut **self.divided.get_or_insert_default();
        let order = orders.make_contiguous().get(..*keys as usize).unwrap_or_default();
        cursors.clear();
        cursors.resize(count, 0);
        let (queue, held) = (&self.queue, &self.held);
        let reply = |share: usize| {
            let state = queue.get(share).map(|slot| &slot.state);
            state.map_or((&[][..], true), |state| state.share(held))
        };
        let mut excerpts = Vec::new();
        let is_large = (0..count).map(|share| reply(share).0.len()).sum::<usize>() > HIGH_WATER;
        if let Join::Shares(make) = join {
            make(
                &mut Shares {
                    count,
                    order,
                    reply: &reply,
                    cursors,
                },
                &mut Assembly::new(out, is_large.then_some(&mut excerpts)),
            );
        }
        orders.drain(..*keys as usize);
        *leaving = Some(Leaving {
            excerpts: excerpts.into_iter(),
            begun: None,
            count,
        });
        self.leave(out)
    }

    /// Lets excerpts of the joined reply leave until enough bytes wait for the client. Returns `true` if the
    /// last excerpt has left.
    fn leave(&mut self, out: &mut Vec<u8>) -> bool {
        let Some(leaving) = self.divided.as_mut().and_then(|divided| divided.leaving.as_mut()) else {
            return true;
        };
        while let Some(mut excerpt) = leaving.begun.take().or_else(|| leaving.excerpts.next()) {
            let room = HIGH_WATER.saturating_sub(out.len());
            let state = self.queue.get(excerpt.share as usize).map(|slot| &slot.state);
            let reply = state.map_or(&[][..], |state| state.share(&self.held).0);
            let now = excerpt.range.start..excerpt.range.end.min(excerpt.range.start + room);
            append(reply.get(now.clone()).unwrap_or_default(), out);
            if now.end < excerpt.range.end {
                excerpt.range.start = now.end;
                leaving.begun = Some(excerpt);
                return false;
            }
        }
        let count = leaving.count;
        if let Some(divided) = &mut self.divided {
            divided.leaving = None;
        }
        for _ in 0..=count {
            match self.queue.front().map(|slot| &slot.state) {
                Some(State::Held { place, .. }) => {
                    self.held.take(place.clone());
                }
                Some(State::Collected(bytes)) => self.collected -= bytes.len(),
                _ => {}
            }
            self.pop();
        }
        true
    }
}

impl State {
    /// The reply of a share, and whether it is an error.
    fn share<'a>(&'a self, held: &'a Held) -> (&'a [u8], bool) {
        match self {
            State::Held { place, failed } => (held.get(place.clone()), *failed),
            State::Collected(bytes) => (bytes, false),
            _ => (&[], true),
        }
    }
}
