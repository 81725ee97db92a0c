//! A queue in one piece of memory.
//!
//! The queue of the standard library is a ring: every access computes where the ring wraps, and `push_back`
//! is a call. Each request passes through two queues, and these costs were a fiftieth of all its
//! instructions.

use std::ops::{Deref, DerefMut};

/// Items in the order in which they came, as a slice.
///
/// Invariant: an item is moved once on average. Those that were removed make room for new ones only when they
/// are at least as many as those that are moved.
#[derive(Clone, Debug)]
pub(crate) struct Queue<T> {
    items: Vec<T>,
    /// The number of items at the front that were removed.
    removed: usize,
}

impl<T> Queue<T> {
    /// Adds an item behind the last.
    // The call would cost as much as the rest, and the item would be written twice.
    #[inline(always)]
    pub(crate) fn push(&mut self, item: T) {
        self.make_room();
        self.items.push(item);
    }

    /// Removes the first item. What it owns may be freed later, so that large things are taken out before.
    #[inline]
    pub(crate) fn drop_first(&mut self) {
        self.removed += usize::from(self.removed < self.items.len());
        if self.removed == self.items.len() {
            // The next item takes the same place, which is in the processor's cache.
            self.items.clear();
            self.removed = 0;
        }
    }

    /// Puts an item before the one that has this number now, or behind the last.
    pub(crate) fn insert(&mut self, number: usize, item: T) {
        self.make_room();
        let number = number.min(self.len());
        self.items.insert(self.removed + number, item);
    }

    /// The number of items for which it has memory.
    #[inline]
    pub(crate) fn capacity(&self) -> usize {
        self.items.capacity()
    }

    /// Takes the room of those that were removed, if there is no other.
    #[inline(always)]
    fn make_room(&mut self) {
        if self.items.len() == self.items.capacity() && self.removed > 0 {
            self.close_gap();
        }
    }

    #[cold]
    fn close_gap(&mut self) {
        if self.removed >= self.len() {
            self.items.drain(..self.removed);
            self.removed = 0;
        }
    }
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self {
            items: Vec::new(),
            removed: 0,
        }
    }
}

impl<T> Deref for Queue<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        self.items.get(self.removed..).unwrap_or_default()
    }
}

impl<T> DerefMut for Queue<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        self.items.get_mut(self.removed..).unwrap_or_default()
    }
}

impl<T> Extend<T> for Queue<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, items: I) {
        items.into_iter().for_each(|item| self.push(item));
    }
}

impl<T> IntoIterator for Queue<T> {
    type Item = T;
    type IntoIter = std::iter::Skip<std::vec::IntoIter<T>>;

    fn into_iter(self) -> Self::IntoIter {
        self.items.into_iter().skip(self.removed)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;
    use crate::random::Random;

    #[test]
    fn it_holds_what_a_ring_holds_and_no_more_memory_than_four_times_that() {
        let mut random = Random(1);
        let (mut queue, mut ring) = (Queue::default(), VecDeque::new());
        let mut most = 0;
        for step in 0..100_000_u32 {
            // It is filled for a while, and then emptied.
            let fills = random.below(100) < if step / 500 % 2 == 0 { 70 } else { 30 };
            match random.below(50) {
                0 => {
                    let number = random.below(ring.len() + 1);
                    queue.insert(number, step);
                    ring.insert(number, step);
                }
                _ if fills => {
                    queue.push(step);
                    ring.push_back(step);
                }
                _ => {
                    queue.drop_first();
                    ring.pop_front();
                }
            }
            most = most.max(ring.len());
            assert!(queue.iter().eq(&ring), "step {step}");
            assert!(queue.capacity() <= 4 * most.max(4), "step {step}");
        }
        assert!(most > 100, "{most}");
        assert!(queue.into_iter().eq(ring));
    }

    #[test]
    fn one_that_is_never_empty_keeps_its_memory() {
        let mut queue = Queue::default();
        queue.push(0);
        for item in 1..10_000 {
            queue.push(item);
            queue.drop_first();
            assert_eq!(queue.first(), Some(&item));
        }
        assert_eq!(queue.capacity(), 4);
    }
}
