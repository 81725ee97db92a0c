//! The keys of one request, grouped by the way that they go.

use proxima_wire::message::Span;

use crate::route::Mark;

/// Keys grouped by the ways that they go. Every operation takes a time in proportion to the number of keys,
/// whatever the keys and however many ways there are.
#[derive(Debug, Default)]
pub(super) struct KeyGroups {
    /// The keys of the request, in its order.
    pub(super) keys: Vec<Span>,
    /// The group of each key so far. Once the request is sent, the number of the part that the key is in.
    pub(super) order: Vec<u32>,
    groups: Vec<Group>,
    /// The next key of the same group; [`NONE`] behind its last one.
    next: Vec<u32>,
    /// Open addressing: the number of a group plus 1, or 0.
    table: Vec<u32>,
    /// The request for one group.
    pub(super) part: Vec<u8>,
}

/// Keys that go the same way.
#[derive(Clone, Copy, Debug)]
struct Group {
    mark: Mark,
    first: u32,
    last: u32,
}

const NONE: u32 = u32::MAX;
/// The table has at least this many positions.
const LEAST: usize = 16;

impl KeyGroups {
    /// The number of keys that have a group.
    pub(super) fn count(&self) -> usize {
        self.order.len()
    }

    /// The number of groups so far.
    pub(super) fn groups(&self) -> usize {
        self.groups.len()
    }

    /// Notes the way of the next key.
    pub(super) fn add(&mut self, mark: Mark) {
        let key = self.order.len() as u32;
        self.next.push(NONE);
        let position = self.position_of(mark);
        match self.table[position] {
            0 => {
                self.groups.push(Group {
                    mark,
                    first: key,
                    last: key,
                });
                self.table[position] = self.groups.len() as u32;
                self.order.push(self.groups.len() as u32 - 1);
                self.grow();
            }
            number => {
                let group = &mut self.groups[number as usize - 1];
                self.next[group.last as usize] = key;
                group.last = key;
                self.order.push(number - 1);
            }
        }
    }

    /// The position of this way's group in the table, or a free one.
    fn position_of(&mut self, mark: Mark) -> usize {
        if self.table.is_empty() {
            self.table.resize(LEAST, 0);
        }
        let last = self.table.len() - 1;
        let mut position = mark.0 as usize & last;
        while let Some(number) = self.table[position].checked_sub(1)
            && self.groups[number as usize].mark != mark
        {
            position = (position + 1) & last;
        }
        position
    }

    /// Keeps at least half of the table free.
    fn grow(&mut self) {
        if self.groups.len() * 2 < self.table.len() {
            return;
        }
        let positions = self.table.len() * 2;
        self.table.clear();
        self.table.resize(positions, 0);
        for number in 0..self.groups.len() {
            let position = self.position_of(self.groups[number].mark);
            self.table[position] = number as u32 + 1;
        }
    }

    /// The numbers of the keys of this group, in the order of the request.
    pub(super) fn keys_of(&self, group: usize) -> impl Iterator<Item = usize> {
        let mut at = self.groups.get(group).map_or(NONE, |group| group.first);
        std::iter::from_fn(move || {
            let key = (at != NONE).then_some(at as usize)?;
            at = self.next.get(key).copied().unwrap_or(NONE);
            Some(key)
        })
    }

    /// Forgets the keys. The memory for many of them is given back.
    pub(super) fn clear(&mut self) {
        const KEPT: usize = 4 * 1024;
        if self.order.capacity() > KEPT || self.part.capacity() > 64 * 1024 {
            *self = Self::default();
        }
        self.keys.clear();
        self.order.clear();
        self.groups.clear();
        self.next.clear();
        self.table.truncate(LEAST);
        self.table.fill(0);
        self.part.clear();
    }

    /// Bytes of memory that it takes.
    pub(super) fn memory(&self) -> usize {
        self.part.capacity()
            + self.keys.capacity() * size_of::<Span>()
            + self.groups.capacity() * size_of::<Group>()
            + (self.order.capacity() + self.next.capacity() + self.table.capacity()) * size_of::<u32>()
    }
}

#[cfg(test)]
mod tests {
    use super::{KeyGroups, Mark};

    #[test]
    fn keys_of_one_way_are_together_in_their_order_however_many_ways_there_are() {
        for ways in [1, 2, 7, 1000, 70_000] {
            let mut key_groups = KeyGroups::default();
            for key in 0..140_000_u64 {
                key_groups.add(Mark(key % ways));
            }
            assert_eq!(key_groups.groups() as u64, ways);
            for group in 0..ways {
                let expected = (group..140_000).step_by(ways as usize);
                assert!(
                    key_groups
                        .keys_of(group as usize)
                        .map(|key| key as u64)
                        .eq(expected)
                );
            }
            assert!(
                key_groups
                    .order
                    .iter()
                    .zip(0..)
                    .all(|(&group, key)| u64::from(group) == key % ways)
            );
            key_groups.clear();
            assert!(key_groups.groups() == 0 && key_groups.memory() < 1024);
        }
    }
}
