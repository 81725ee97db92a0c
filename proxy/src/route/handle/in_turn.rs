//! The servers of a pool whose requests have no keys: reads go to each in its turn, by weight, and all else
//! to one, as it would not be the same at another. Each worker counts by itself.

use std::cell::Cell;

use proxima_wire::message::Class;

use super::{HashRoute, Random};
use crate::{
    micros::Micros,
    route::tree::{Children, Choose, Query},
};

/// The route to such a pool.
#[derive(Debug)]
pub(in crate::route) struct InTurn {
    /// What the turn is hashed by, so that weights and ejections count as they do for keys.
    hash: HashRoute,
    /// All servers have the same weight.
    is_even: bool,
    turn: Cell<u32>,
}

impl InTurn {
    /// The first turn is next.
    pub(in crate::route) const fn new(hash: HashRoute, is_even: bool) -> Self {
        Self {
            hash,
            is_even,
            turn: Cell::new(0),
        }
    }
}

impl Choose for InTurn {
    fn name(&self) -> &'static str {
        "in_turn"
    }

    fn choose(&self, query: &Query<'_>, children: &Children<'_>, random: &mut Random) -> usize {
        if query.class != Class::Read {
            return self.hash.choose(query, children, random);
        }
        // Turns of the golden ratio are shared out evenly, however few there were.
        let turn = self.turn.get().wrapping_add(0x9e37_79b9);
        self.turn.set(turn);
        let even = ((u64::from(turn) * children.len() as u64) >> 32) as usize;
        if self.is_even && children.is_up(even) {
            return even;
        }
        let key = &turn.to_le_bytes();
        self.hash.choose(&Query { key, ..*query }, children, random)
    }

    fn varies(&self, query: &Query<'_>) -> bool {
        query.class == Class::Read
    }

    fn looks_at_key(&self, _: Micros) -> bool {
        false
    }

    fn why(&self, query: &Query<'_>, children: &Children<'_>, chosen: usize) -> String {
        let which = match query.class {
            Class::Read => "a read, in turn",
            _ => "no read, always the same",
        };
        format!("{which}: number {chosen} of {}", children.len())
    }
}
