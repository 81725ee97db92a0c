//! Replies to the parts of a request that went several ways. They are held until the last has come.

use std::collections::VecDeque;

use super::{Part, Slots, State, held::Held};
use crate::{
    client::HIGH_WATER,
    micros::Micros,
    protocol::{Assembly, Excerpt, Join, Shares},
    stream::append,
};

/// Buffers for more keys than this are given back when no request needs them.
const KEPT: usize = 4 * 1024;

/// Requests that went several ways.
#[derive(Debug, Default)]
pub(super) struct Divided {
    /// The share of each key, in the order of the requests.
    orders: VecDeque<u32>,
    /// A buffer for joining shares.
    cursors: Vec<usize>,
    /// The requests whose shares are in the queue, in its order.
    requests: VecDeque<Shared>,
    /// What is still to leave of a large joined reply, first of all. Its shares stay until the last excerpt
    /// has left, and nothing of them is held twice.
    leaving: Option<Leaving>,
}

/// One request, by its shares.
#[derive(Debug)]
struct Shared {
    /// The number of the first share's slot; the others follow it.
    first: u32,
    /// The number of its shares.
    count: u32,
    /// The number of shares that have not come.
    waiting: u32,
    /// One of those that have come is an error.
    has_failed: bool,
    /// The last share has its slot.
    is_closed: bool,
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
        self.orders.capacity() * size_of::<u32>()
            + self.cursors.capacity() * size_of::<usize>()
            + self.requests.capacity() * size_of::<Shared>()
            + excerpts * size_of::<Excerpt>()
    }
}

impl Slots {
    /// Adds the slot of one more share of a request.
    pub(in crate::client) fn push_share(
        &mut self,
        command: u16,
        quiet: bool,
        size: u32,
        started: Micros,
    ) -> u32 {
        let seq = self.push(command, quiet, Part::Share, size, started);
        let requests = &mut self.divided.get_or_insert_default().requests;
        match requests.back_mut().filter(|request| !request.is_closed) {
            Some(open) => {
                open.count += 1;
                open.waiting += 1;
            }
            None => requests.push_back(Shared {
                first: seq,
                count: 1,
                waiting: 1,
                has_failed: false,
                is_closed: false,
            }),
        }
        seq
    }

    /// Adds the slot that makes one reply of the shares before it. `order`: the share of each key.
    pub(in crate::client) fn close_shares(&mut self, join: &'static Join, order: &[u32], out: &mut Vec<u8>) {
        let divided = self.divided.get_or_insert_default();
        let Some(open) = divided.requests.back_mut().filter(|request| !request.is_closed) else {
            return;
        };
        open.is_closed = true;
        divided.orders.extend(order);
        let keys = order.len() as u32;
        self.push_known(State::Assemble { join, keys }, out);
    }

    /// The number of shares that have not come, of a request of which others are still to be sent.
    pub(in crate::client) fn open_shares(&self) -> usize {
        let last = self.divided.as_ref().and_then(|divided| divided.requests.back());
        last.filter(|request| !request.is_closed)
            .map_or(0, |request| request.waiting as usize)
    }

    /// The place of this share's request among those whose shares are in the queue.
    fn request_of(&self, seq: u32) -> Option<usize> {
        let distance = |of: u32| of.wrapping_sub(self.head);
        let requests = &self.divided.as_ref()?.requests;
        let behind = requests.partition_point(|request| distance(request.first) <= distance(seq));
        behind.checked_sub(1)
    }

    /// Notes that a share has come.
    pub(super) fn share_came(&mut self, seq: u32, failed: bool) {
        let at = self.request_of(seq);
        let divided = self.divided.as_mut();
        if let Some(request) = at
            .zip(divided)
            .and_then(|(at, divided)| divided.requests.get_mut(at))
        {
            request.waiting = request.waiting.saturating_sub(1);
            request.has_failed |= failed;
        }
    }

    /// Has no share of this one's request failed?
    pub(super) fn is_first_failure(&self, seq: u32) -> bool {
        let at = self.request_of(seq).zip(self.divided.as_ref());
        let request = at.and_then(|(at, divided)| divided.requests.get(at));
        request.is_none_or(|request| !request.has_failed)
    }

    /// Returns whether nothing of this client leaves before this share has come whole.
    pub(in crate::client) fn is_due_share(&self, seq: u32) -> bool {
        let front = self.divided.as_ref().and_then(|divided| divided.requests.front());
        let at = seq.wrapping_sub(self.head);
        front.is_some_and(|request| request.first == self.head && at < request.count)
    }

    /// Returns whether a joined reply has begun to leave and waits until the client has taken more of it.
    #[inline]
    pub(in crate::client) fn is_leaving(&self) -> bool {
        let divided = self.divided.as_ref();
        divided.is_some_and(|divided| divided.leaving.is_some())
    }

    /// Does a joined or a lent reply leave, of which there is more when the client has taken what was there?
    pub(in crate::client) fn leaves_in_pieces(&self) -> bool {
        let front = self.queue.first().map(|slot| &slot.state);
        self.is_leaving() || matches!(front, Some(State::Lent(_)))
    }

    /// Lets more of a joined or lent reply leave: the client has taken what was there.
    pub(in crate::client) fn go_on(&mut self, out: &mut Vec<u8>) {
        if self.leaves_in_pieces() {
            self.release(out);
        }
    }

    /// Lets the shares at the front leave as one reply. Returns `false` if one of them has not come, or if
    /// the client has to take what has left before more does.
    pub(super) fn assemble(&mut self, out: &mut Vec<u8>) -> bool {
        if self.is_leaving() {
            return self.leave(out);
        }
        let Divided {
            orders,
            cursors,
            requests,
            leaving,
        } = &mut **self.divided.get_or_insert_default();
        let Some(request) = requests
            .front()
            .filter(|request| request.first == self.head && request.is_closed && request.waiting == 0)
        else {
            return false;
        };
        let count = request.count as usize;
        let Some(State::Assemble { join, keys }) = self.queue.get(count).map(|slot| &slot.state) else {
            return false;
        };
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
        requests.pop_front();
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
            if divided.requests.is_empty() && divided.orders.capacity() > KEPT {
                self.divided = None;
            }
        }
        for _ in 0..=count {
            match self.queue.first().map(|slot| &slot.state) {
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
