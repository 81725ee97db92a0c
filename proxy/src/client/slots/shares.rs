//! Replies to the parts of a request that went to several members. They are held until the last has come.

use std::collections::VecDeque;

use super::{Part, Slots, State};
use crate::dialect::{Join, Shares};

/// Requests that went to several members.
#[derive(Debug, Default)]
pub(super) struct Divided {
    /// The share of each key, in the order of the requests.
    orders: VecDeque<u16>,
    /// A buffer for joining shares.
    cursors: Vec<usize>,
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

    /// Lets the shares at the front leave as one reply. Returns `false` if one of them has not come.
    pub(super) fn assemble(&mut self, out: &mut Vec<u8>) -> bool {
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
        let Divided { orders, cursors } = &mut **self.divided.get_or_insert_default();
        let order = orders.make_contiguous().get(..*keys as usize).unwrap_or_default();
        cursors.clear();
        cursors.resize(count, 0);
        let (queue, held) = (&self.queue, &self.held);
        let reply = |share: usize| match queue.get(share).map(|slot| &slot.state) {
            Some(State::Held { place, failed }) => (held.get(place.clone()), *failed),
            Some(State::Collected(bytes)) => (&bytes[..], false),
            _ => (&[][..], true),
        };
        if let Join::Shares(make) = join {
            make(
                &mut Shares {
                    count,
                    order,
                    reply: &reply,
                    cursors,
                },
                out,
            );
        }
        orders.drain(..*keys as usize);
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
