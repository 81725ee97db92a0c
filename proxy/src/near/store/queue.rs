//! The order in which replies go: S3-FIFO (Yang and others, *FIFO queues are all you need for cache
//! eviction*, 2023).
//!
//! A reply that comes waits in a short queue. If it was asked for again before its turn, it goes on to the
//! main queue; if not, it goes, and only the hash of its key is remembered. A reply of a key that is
//! remembered comes into the main queue. A reply at the end of the main queue that was asked for meanwhile
//! goes round once more. A hit therefore moves nothing, an eviction looks at few entries, and replies that
//! are never asked for again, however many, take the short queue alone.

use super::{
    priority::{Links, Priority},
    slab_index::SlabIndex,
    table::Table,
};

/// The divisor of all bytes that gives the short queue's part.
const SHORT: usize = 20;

/// The fate of a reply at the end of its queue.
pub(super) enum End {
    Goes,
    /// It goes, and its key is to be remembered.
    GoesFromShort,
}

/// One queue.
#[derive(Default)]
struct Queue {
    newest: Option<SlabIndex>,
    oldest: Option<SlabIndex>,
    bytes: usize,
}

/// Both queues of a shard.
#[derive(Default)]
pub(super) struct Queues {
    short: Queue,
    main: Queue,
}

impl Queues {
    /// Bytes of all replies in them.
    pub(super) const fn bytes(&self) -> usize {
        self.short.bytes + self.main.bytes
    }

    fn of(&mut self, priority: Priority) -> &mut Queue {
        match priority.is_main() {
            true => &mut self.main,
            false => &mut self.short,
        }
    }

    /// Puts a reply at the beginning of its queue.
    pub(super) fn push(&mut self, table: &mut Table, place: SlabIndex) {
        let Some(entry) = table.get_mut(place) else { return };
        let queue = self.of(entry.priority);
        queue.bytes += entry.memory();
        entry.links = Links {
            newer: None,
            older: queue.newest,
        };
        match queue.newest.replace(place).and_then(|older| table.get_mut(older)) {
            Some(older) => older.links.newer = Some(place),
            None => queue.oldest = Some(place),
        }
    }

    /// Takes a reply out of its queue.
    pub(super) fn unlink(&mut self, table: &mut Table, place: SlabIndex) {
        let Some(entry) = table.get(place) else { return };
        let Links { newer, older } = entry.links;
        let queue = self.of(entry.priority);
        queue.bytes -= entry.memory();
        match newer.and_then(|newer| table.get_mut(newer)) {
            Some(entry) => entry.links.older = older,
            None => queue.newest = older,
        }
        match older.and_then(|older| table.get_mut(older)) {
            Some(entry) => entry.links.newer = newer,
            None => queue.oldest = newer,
        }
    }

    /// The next reply that is at the end of its queue. `None` if there is no reply.
    pub(super) fn last(&self) -> Option<SlabIndex> {
        let is_long = self.short.bytes * SHORT > self.bytes();
        let (first, second) = match is_long {
            true => (&self.short, &self.main),
            false => (&self.main, &self.short),
        };
        first.oldest.or(second.oldest)
    }

    /// Decides on the reply at the end of its queue. `None` if it moves to another place and stays.
    pub(super) fn end(&mut self, table: &mut Table, place: SlabIndex, is_hurried: bool) -> Option<End> {
        let priority = table.get(place)?.priority;
        if priority.uses() == 0 || is_hurried {
            return Some(match priority.is_main() {
                true => End::Goes,
                false => End::GoesFromShort,
            });
        }
        self.unlink(table, place);
        if let Some(entry) = table.get_mut(place) {
            let uses = priority.uses() - 1;
            entry.priority = Priority::in_main(if priority.is_main() { uses } else { 0 });
        }
        self.push(table, place);
        None
    }
}
