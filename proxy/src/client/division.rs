//! The keys of one request, and which of them go the same way.

use proxima_wire::message::Span;

use crate::route::Mark;

/// Keys by the ways they go. Everything takes a time in proportion to the number of keys, whatever the keys and
/// however many ways there are.
#[derive(Debug, Default)]
pub(super) struct Division {
    /// The keys of the request, in its order.
    pub(super) keys: Vec<Span>,
    /// The group of each key that is placed. When the request is sent: the number of the share it is in.
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
/// The table has at least this many places.
const LEAST: usize = 16;

impl Division {
    /// The number of keys that are placed.
    pub(super) fn placed(&self) -> usize {
        self.order.len()
    }

    /// The number of groups of the keys that are placed.
    pub(super) fn groups(&self) -> usize {
        self.groups.len()
    }

    /// Notes the way of the next key.
    pub(super) fn place(&mut self, mark: Mark) {
        let key = self.order.len() as u32;
        self.next.push(NONE);
        let place = self.place_of(mark);
        match self.table[place] {
            0 => {
                self.groups.push(Group {
                    mark,
                    first: key,
                    last: key,
                });
                self.table[place] = self.groups.len() as u32;
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

    /// The place of this way's group in the table, or a free one.
    fn place_of(&mut self, mark: Mark) -> usize {
        if self.table.is_empty() {
            self.table.resize(LEAST, 0);
        }
        let last = self.table.len() - 1;
        let mut place = mark.0 as usize & last;
        while let Some(number) = self.table[place].checked_sub(1)
            && self.groups[number as usize].mark != mark
        {
            place = (place + 1) & last;
        }
        place
    }

    /// Keeps at least half of the table free.
    fn grow(&mut self) {
        if self.groups.len() * 2 < self.table.len() {
            return;
        }
        let places = self.table.len() * 2;
        self.table.clear();
        self.table.resize(places, 0);
        for number in 0..self.groups.len() {
            let place = self.place_of(self.groups[number].mark);
            self.table[place] = number as u32 + 1;
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
    use super::{Division, Mark};

    #[test]
    fn keys_of_one_way_are_together_in_their_order_however_many_ways_there_are() {
        for ways in [1, 2, 7, 1000, 70_000] {
            let mut division = Division::default();
            for key in 0..140_000_u64 {
                division.place(Mark(key % ways));
            }
            assert_eq!(division.groups() as u64, ways);
            for group in 0..ways {
                let expected = (group..140_000).step_by(ways as usize);
                assert!(
                    division
                        .keys_of(group as usize)
                        .map(|key| key as u64)
                        .eq(expected)
                );
            }
            assert!(
                division
                    .order
                    .iter()
                    .zip(0..)
                    .all(|(&group, key)| u64::from(group) == key % ways)
            );
            division.clear();
            assert!(division.groups() == 0 && division.memory() < 1024);
        }
    }
}
