//! Replies to the parts of a request that went several ways. They are buffered until the last has come.

use std::collections::VecDeque;

use super::{ReplyRole, Slots, State, early::EarlyReplies};
use crate::{
    client::HIGH_WATER,
    micros::Micros,
    protocol::{Assembly, Excerpt, Join, Parts},
    stream::append,
};

/// Buffers for more keys than this are given back when no request needs them.
const KEPT: usize = 4 * 1024;

/// Requests that went several ways.
#[derive(Debug, Default)]
pub(super) struct SpreadRequests {
    /// The part of each key, in the order of the requests.
    orders: VecDeque<u32>,
    /// A buffer for joining parts.
    cursors: Vec<usize>,
    /// The requests whose parts are in the queue, in its order.
    requests: VecDeque<SpreadRequest>,
    /// The rest of a large joined reply, which leaves before anything else. Its parts stay until the last
    /// excerpt has left, so that nothing of them is buffered twice.
    leaving: Option<LeavingReply>,
}

/// One request, by its parts.
#[derive(Debug)]
struct SpreadRequest {
    /// The number of the first part's slot; the others follow it.
    first: u32,
    /// The number of its parts.
    count: u32,
    /// The number of parts that have not come.
    waiting: u32,
    /// One of those that have come is an error.
    has_failed: bool,
    /// The last part has its slot.
    is_closed: bool,
}

/// A large joined reply that leaves as the client takes it.
#[derive(Debug)]
struct LeavingReply {
    excerpts: std::vec::IntoIter<Excerpt>,
    /// The rest of the excerpt that has begun to leave.
    begun: Option<Excerpt>,
    /// The number of parts.
    count: usize,
}

impl SpreadRequests {
    /// Bytes of memory, used or not.
    pub(super) fn memory(&self) -> usize {
        let excerpts = self.leaving.as_ref().map_or(0, |leaving| leaving.excerpts.len());
        self.orders.capacity() * size_of::<u32>()
            + self.cursors.capacity() * size_of::<usize>()
            + self.requests.capacity() * size_of::<SpreadRequest>()
            + excerpts * size_of::<Excerpt>()
    }
}

impl Slots {
    /// Adds the slot of one more part of a request.
    pub(in crate::client) fn push_part(
        &mut self,
        command: u16,
        quiet: bool,
        size: u32,
        started: Micros,
    ) -> u32 {
        let seq = self.push(command, quiet, ReplyRole::Part, size, started);
        let requests = &mut self.spread.get_or_insert_default().requests;
        match requests.back_mut().filter(|request| !request.is_closed) {
            Some(open) => {
                open.count += 1;
                open.waiting += 1;
            }
            None => requests.push_back(SpreadRequest {
                first: seq,
                count: 1,
                waiting: 1,
                has_failed: false,
                is_closed: false,
            }),
        }
        seq
    }

    /// Adds the slot that makes one reply of the parts before it. `order`: the part of each key.
    pub(in crate::client) fn close_parts(&mut self, join: &'static Join, order: &[u32], out: &mut Vec<u8>) {
        let spread = self.spread.get_or_insert_default();
        let Some(open) = spread.requests.back_mut().filter(|request| !request.is_closed) else {
            return;
        };
        open.is_closed = true;
        spread.orders.extend(order);
        let keys = order.len() as u32;
        self.push_known(State::Assemble { join, keys }, out);
    }

    /// The number of parts that have not come, of a request of which others are still to be sent.
    pub(in crate::client) fn open_parts(&self) -> usize {
        let last = self.spread.as_ref().and_then(|spread| spread.requests.back());
        last.filter(|request| !request.is_closed)
            .map_or(0, |request| request.waiting as usize)
    }

    /// The position of this part's request among those whose parts are in the queue.
    fn request_of(&self, seq: u32) -> Option<usize> {
        let distance = |of: u32| of.wrapping_sub(self.head);
        let requests = &self.spread.as_ref()?.requests;
        let behind = requests.partition_point(|request| distance(request.first) <= distance(seq));
        behind.checked_sub(1)
    }

    /// Notes that a part has come.
    pub(super) fn part_came(&mut self, seq: u32, failed: bool) {
        let at = self.request_of(seq);
        let spread = self.spread.as_mut();
        if let Some(request) = at
            .zip(spread)
            .and_then(|(at, spread)| spread.requests.get_mut(at))
        {
            request.waiting = request.waiting.saturating_sub(1);
            request.has_failed |= failed;
        }
    }

    /// Has no part of this one's request failed?
    pub(super) fn is_first_failure(&self, seq: u32) -> bool {
        let at = self.request_of(seq).zip(self.spread.as_ref());
        let request = at.and_then(|(at, spread)| spread.requests.get(at));
        request.is_none_or(|request| !request.has_failed)
    }

    /// Returns whether nothing of this client leaves before this part has come whole.
    pub(in crate::client) fn is_due_part(&self, seq: u32) -> bool {
        let front = self.spread.as_ref().and_then(|spread| spread.requests.front());
        let at = seq.wrapping_sub(self.head);
        front.is_some_and(|request| request.first == self.head && at < request.count)
    }

    /// Returns whether a joined reply has begun to leave and waits until the client has taken more of it.
    #[inline]
    pub(in crate::client) fn is_leaving(&self) -> bool {
        let spread = self.spread.as_ref();
        spread.is_some_and(|spread| spread.leaving.is_some())
    }

    /// Does a joined or a shared reply leave, of which there is more when the client has taken what was
    /// there?
    pub(in crate::client) fn leaves_in_pieces(&self) -> bool {
        let front = self.queue.first().map(|slot| &slot.state);
        self.is_leaving() || matches!(front, Some(State::Shared(_)))
    }

    /// Lets more of a joined or shared reply leave: the client has taken what was there.
    pub(in crate::client) fn go_on(&mut self, out: &mut Vec<u8>) {
        if self.leaves_in_pieces() {
            self.release(out);
        }
    }

    /// Lets the parts at the front leave as one reply. Returns `false` if one of them has not come, or if
    /// the client has to take what has left before more does.
    pub(super) fn assemble(&mut self, out: &mut Vec<u8>) -> bool {
        if self.is_leaving() {
            return self.leave(out);
        }
        let SpreadRequests {
            orders,
            cursors,
            requests,
            leaving,
        } = &mut **self.spread.get_or_insert_default();
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
        let (queue, early) = (&self.queue, &self.early);
        let reply = |part: usize| {
            let state = queue.get(part).map(|slot| &slot.state);
            state.map_or((&[][..], true), |state| state.part(early))
        };
        let mut excerpts = Vec::new();
        let is_large = (0..count).map(|part| reply(part).0.len()).sum::<usize>() > HIGH_WATER;
        if let Join::Parts(make) = join {
            make(
                &mut Parts {
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
        *leaving = Some(LeavingReply {
            excerpts: excerpts.into_iter(),
            begun: None,
            count,
        });
        self.leave(out)
    }

    /// Lets excerpts of the joined reply leave until enough bytes wait for the client. Returns `true` if the
    /// last excerpt has left.
    fn leave(&mut self, out: &mut Vec<u8>) -> bool {
        let Some(leaving) = self.spread.as_mut().and_then(|spread| spread.leaving.as_mut()) else {
            return true;
        };
        while let Some(mut excerpt) = leaving.begun.take().or_else(|| leaving.excerpts.next()) {
            let room = HIGH_WATER.saturating_sub(out.len());
            let state = self.queue.get(excerpt.part as usize).map(|slot| &slot.state);
            let reply = state.map_or(&[][..], |state| state.part(&self.early).0);
            let now = excerpt.range.start..excerpt.range.end.min(excerpt.range.start + room);
            append(reply.get(now.clone()).unwrap_or_default(), out);
            if now.end < excerpt.range.end {
                excerpt.range.start = now.end;
                leaving.begun = Some(excerpt);
                return false;
            }
        }
        let count = leaving.count;
        if let Some(spread) = &mut self.spread {
            spread.leaving = None;
            if spread.requests.is_empty() && spread.orders.capacity() > KEPT {
                self.spread = None;
            }
        }
        for _ in 0..=count {
            match self.queue.first().map(|slot| &slot.state) {
                Some(State::Early { range, .. }) => {
                    self.early.take(range.clone());
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
    /// The reply of a part, and whether it is an error.
    fn part<'a>(&'a self, early: &'a EarlyReplies) -> (&'a [u8], bool) {
        match self {
            State::Early { range, failed } => (early.get(range.clone()), *failed),
            State::Collected(bytes) => (bytes, false),
            _ => (&[], true),
        }
    }
}
