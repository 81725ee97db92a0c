//! A streamed value waits for its key's turn before its last byte: until then no server has done anything.

use super::change::{AGAIN, TURN};
use crate::{
    engine::Engine,
    timer::{Sleeper, Timer},
};

/// What an upload has to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    Now,
    Later,
    /// It has waited longer than any other change takes.
    Never,
}

impl Engine {
    /// The changes that the request being dispatched has begun. In an order that is the same for all, so that no two
    /// uploads wait for each other.
    pub(crate) fn take_turns(&mut self) -> Vec<(u32, u32)> {
        let (flights, mut turns) = (&mut self.flights, std::mem::take(&mut self.turns));
        turns.sort_by_cached_key(|&(index, generation)| {
            let claim = flights.get(index, generation)?.claim.as_ref()?;
            Some(claim.place())
        });
        turns
    }

    /// May the last byte of this client's value leave, which these changes wait for since `since`? If not, the client is
    /// served again soon.
    pub(crate) fn turn(&mut self, client: (u32, u32), turns: &[(u32, u32)], since: u64) -> Turn {
        let mut place = None;
        for &(index, generation) in turns {
            let Some(claim) = self
                .flights
                .get(index, generation)
                .and_then(|flight| flight.claim.as_mut())
            else {
                continue;
            };
            if place == Some(claim.place()) {
                claim.join();
            } else if !claim.ask() {
                if self.now.saturating_sub(since) > TURN {
                    return Turn::Never;
                }
                let (index, generation) = client;
                self.timers.push(Timer {
                    due: self.now + AGAIN,
                    wakes: Sleeper::Client { generation, index },
                });
                return Turn::Later;
            }
            place = Some(claim.place());
        }
        Turn::Now
    }
}
