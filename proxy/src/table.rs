//! Tables whose entries are addressed by handles. The handle of a removed entry finds nothing, even when
//! another entry has taken its place: each entry has a generation, which its handle repeats.

use std::{cmp::Ordering, fmt, marker::PhantomData, ops::Range};

use slab::Slab;

/// The handle of an entry of a `Table<T>`. Handles order by age only within one place.
pub struct Id<T> {
    index: u32,
    generation: u32,
    entry: PhantomData<fn() -> T>,
}

/// Generations have 30 bits, so that a handle and two more bits fit the tag of a reactor.
const GENERATIONS: u32 = 0x3fff_ffff;

impl<T> Id<T> {
    const fn new(index: u32, generation: u32) -> Self {
        Self {
            index,
            generation,
            entry: PhantomData,
        }
    }

    /// The place of the entry, which is unique among the entries that exist.
    pub const fn index(self) -> u32 {
        self.index
    }

    /// The handle in 62 bits.
    pub const fn to_bits(self) -> u64 {
        (self.generation as u64) << 32 | self.index as u64
    }

    /// The handle in the low 62 bits; the other bits are ignored.
    pub const fn from_bits(bits: u64) -> Self {
        Self::new(bits as u32, (bits >> 32) as u32 & GENERATIONS)
    }
}

impl<T> Clone for Id<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Id<T> {}

impl<T> PartialEq for Id<T> {
    fn eq(&self, other: &Self) -> bool {
        (self.index, self.generation) == (other.index, other.generation)
    }
}

impl<T> Eq for Id<T> {}

impl<T> PartialOrd for Id<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Id<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.generation, self.index).cmp(&(other.generation, other.index))
    }
}

impl<T> fmt::Debug for Id<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.index, self.generation)
    }
}

/// An entry of a table. The generation is stored in the entry, so that checking it touches no memory but the
/// entry's.
pub trait Entry {
    /// The type that its handle names: the entry's own type, or a marker by which other parts can name the
    /// entry without knowing it.
    type Kind;
    /// The generation of its handle.
    fn generation(&self) -> u32;
}

/// Entries with handles.
#[derive(Clone)]
pub struct Table<T> {
    slots: Slab<T>,
    generation: u32,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self {
            slots: Slab::new(),
            generation: 0,
        }
    }
}

impl<T: Entry> Table<T> {
    /// Adds the entry that `entry` makes for its generation, and returns the handle.
    pub fn insert(&mut self, entry: impl FnOnce(u32) -> T) -> Id<T::Kind> {
        self.generation = (self.generation + 1) & GENERATIONS;
        let index = self.slots.insert(entry(self.generation));
        Id::new(index as u32, self.generation)
    }

    /// The entry of this handle; `None`: it was removed.
    #[inline]
    pub fn get(&self, id: Id<T::Kind>) -> Option<&T> {
        let entry = self.slots.get(id.index as usize)?;
        (entry.generation() == id.generation).then_some(entry)
    }

    /// The entry of this handle, to be changed; `None`: it was removed.
    #[inline]
    pub fn get_mut(&mut self, id: Id<T::Kind>) -> Option<&mut T> {
        let entry = self.slots.get_mut(id.index as usize)?;
        (entry.generation() == id.generation).then_some(entry)
    }

    /// Removes the entry and returns it. From now on its handle finds nothing.
    pub fn remove(&mut self, id: Id<T::Kind>) -> Option<T> {
        self.get(id)?;
        self.slots.try_remove(id.index as usize)
    }

    /// All entries with their handles.
    pub fn iter(&self) -> impl Iterator<Item = (Id<T::Kind>, &T)> {
        self.slots
            .iter()
            .map(|(index, entry)| (Id::new(index as u32, entry.generation()), entry))
    }

    /// The entries in these places, with their handles.
    pub fn range(&self, places: Range<usize>) -> impl Iterator<Item = (Id<T::Kind>, &T)> {
        places.filter_map(|index| {
            let entry = self.slots.get(index)?;
            Some((Id::new(index as u32, entry.generation()), entry))
        })
    }

    /// The number of places, with an entry or without.
    pub fn places(&self) -> usize {
        self.slots.capacity()
    }

    /// All entries with their handles, to be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (Id<T::Kind>, &mut T)> {
        self.slots
            .iter_mut()
            .map(|(index, entry)| (Id::new(index as u32, entry.generation()), entry))
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Returns whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::{Entry, Id, Table};

    impl Entry for u32 {
        type Kind = Self;

        fn generation(&self) -> u32 {
            *self
        }
    }

    #[test]
    fn handle_of_a_removed_entry_does_not_find_the_next_in_its_place() {
        let mut table = Table::default();
        let first: Id<u32> = table.insert(|generation| generation);
        assert_eq!(
            (table.get(first).copied(), table.remove(first)),
            (Some(1), Some(1))
        );
        let second = table.insert(|generation| generation);
        assert_eq!((first.index(), second.index()), (0, 0));
        assert_eq!((table.get(first).copied(), table.remove(first)), (None, None));
        assert_eq!((table.get(second), table.len()), (Some(&2), 1));
        assert_eq!(Id::from_bits(second.to_bits() | 3 << 62), second);
    }

    #[test]
    fn each_entry_is_found_in_one_range_of_places() {
        let mut table = Table::default();
        let all: Vec<Id<u32>> = (0..10).map(|_| table.insert(|generation| generation)).collect();
        table.remove(all[3]);
        let places = table.places();
        let found = (0..places).step_by(4);
        let found = found.flat_map(|first| table.range(first..first + 4));
        let found: Vec<Id<u32>> = found.map(|(id, _)| id).collect();
        let left: Vec<Id<u32>> = all.iter().copied().filter(|&id| id != all[3]).collect();
        assert_eq!(found, left);
    }
}
