//! The list of clients' sessions, of all workers.

use std::{cmp::Reverse, sync::Arc};

use super::Proxy;
use crate::{
    client::{SessionFacts, SessionPage, SessionQuery},
    micros::Micros,
};

/// The most sessions of a list.
const MOST: usize = 10_000;

/// A list of sessions: those that have a connection come first, and the one that has it longest before all.
#[derive(Debug, Default)]
pub struct SessionList {
    /// The sessions, each with the number of its worker.
    pub sessions: Vec<(usize, SessionFacts)>,
    /// The number of those for which there was no room.
    pub left_out: usize,
}

impl Proxy {
    /// The sessions that are wanted. Clients come and go meanwhile, because workers are asked page by page.
    pub fn sessions(&self, query: SessionQuery) -> SessionList {
        let (query, mut list) = (Arc::new(query), SessionList::default());
        for worker in 0..self.workers.len() {
            let mut next = Some(0);
            while let Some(from) = next {
                let page = self.workers.list_sessions(worker, &query, from);
                next = page.next;
                list.add(worker, page, 2 * MOST);
            }
        }
        list.cut(MOST);
        list
    }
}

impl SessionList {
    /// Adds a page of this worker's. With more than `room` sessions, only the first half of that stays.
    fn add(&mut self, worker: usize, page: SessionPage, room: usize) {
        let sessions = page.sessions.into_iter();
        self.sessions.extend(sessions.map(|session| (worker, session)));
        if self.sessions.len() > room {
            self.cut(room / 2);
        }
    }

    /// Brings the sessions into their order, and leaves out those behind the first `most`.
    fn cut(&mut self, most: usize) {
        let order = |(_, session): &(usize, SessionFacts)| {
            let owned = session.lane.as_ref().map_or(Micros::ZERO, |lane| lane.owned);
            (session.lane.is_none(), Reverse(owned), session.number)
        };
        self.sessions.sort_unstable_by_key(order);
        self.left_out += self.sessions.len().saturating_sub(most);
        self.sessions.truncate(most);
    }
}

#[cfg(test)]
mod tests {
    use super::SessionList;
    use crate::client::{SessionFacts, SessionPage};

    fn page(numbers: impl Iterator<Item = u64>) -> SessionPage {
        let facts = |number| SessionFacts {
            number,
            user: String::new(),
            client: None,
            schema: String::new(),
            state: "free",
            lane: None,
        };
        SessionPage {
            sessions: numbers.map(facts).collect(),
            next: None,
        }
    }

    #[test]
    fn list_keeps_its_room_and_counts_what_it_leaves_out() {
        let mut list = SessionList::default();
        for worker in 0..10 {
            let numbers = (0..10).map(|at| 100 - at * 10 - worker as u64);
            list.add(worker, page(numbers), 20);
            assert!(list.sessions.len() <= 20);
        }
        list.cut(10);
        let numbers = list
            .sessions
            .iter()
            .map(|(worker, facts)| (*worker, facts.number));
        let first: Vec<(usize, u64)> = (1..=10).map(|number| ((10 - number as usize), number)).collect();
        assert_eq!(numbers.collect::<Vec<_>>(), first);
        assert_eq!(list.left_out, 90);
    }
}
