//! Those that wait for the answers to requests of pools' own.

use std::{mem, sync::Arc};

use super::lanes::Cancel;
use crate::members::Member;

/// The receiver of the answer to a request of a pool's own.
pub(super) enum Asker {
    /// The state of this member's pool; the token of its question, and the position of the member.
    State(Arc<Member>, u64, usize),
    /// A client or an order that wants something to end. The answer is whether the server has agreed.
    Cancel(Cancel),
}

/// The questions that are under way, by number.
#[derive(Default)]
pub(super) struct Askers {
    all: Vec<Option<Asker>>,
    free: Vec<u32>,
}

impl Askers {
    /// Adds one. Returns the number of its question.
    pub(super) fn insert(&mut self, asker: Asker) -> u32 {
        match self.free.pop() {
            Some(number) => {
                if let Some(free) = self.all.get_mut(number as usize) {
                    *free = Some(asker);
                }
                number
            }
            None => {
                self.all.push(Some(asker));
                (self.all.len() - 1) as u32
            }
        }
    }

    /// Takes the asker with this number; `None` if its question was answered.
    pub(super) fn take(&mut self, number: u32) -> Option<Asker> {
        let asker = mem::take(self.all.get_mut(number as usize)?);
        if asker.is_some() {
            self.free.push(number);
        }
        asker
    }
}
