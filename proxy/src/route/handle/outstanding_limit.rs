//! outstanding_limit: at most so many requests are under way to the child at a time. The others wait, and
//! clients take turns, so that one with many requests does not hold up the rest. Shadows do not wait: what is
//! too much for them is dropped.

use std::{
    cell::RefCell,
    collections::{HashMap, VecDeque},
};

use proxima_wire::message::Request;

use super::Random;
use crate::{
    config::{
        routes::{self, Spec},
        schema::{Queue, Route},
    },
    engine::{ClientId, FlightId},
    route::{
        compile::{Build, CompileError, Maker},
        tree::{NodeId, Query, Wrap, Wrapped},
    },
};

/// The route `outstanding_limit`.
#[derive(Debug)]
pub(in crate::route) struct OutstandingLimit {
    /// The most requests that are under way.
    pub(in crate::route) most: usize,
    /// How many further ones wait. `None`: any number.
    pub(in crate::route) queue: Option<Queue>,
    /// What is under way, and what waits.
    pub(in crate::route) state: RefCell<State>,
}

/// The requests of one route.
#[derive(Debug, Default)]
pub(in crate::route) struct State {
    under_way: usize,
    queued: usize,
    /// The requests that wait, by client; those that no client waits for have no client.
    waiting: HashMap<Option<u64>, VecDeque<FlightId>>,
    /// The clients whose requests wait, in the order of their turns.
    turns: VecDeque<Option<u64>>,
}

impl State {
    fn add(&mut self, flight: FlightId, client: Option<u64>) {
        self.queued += 1;
        let queue = self.waiting.entry(client).or_default();
        if queue.is_empty() {
            self.turns.push_back(client);
        }
        queue.push_back(flight);
    }

    /// The next request, whose client takes its next turn behind the others.
    fn next(&mut self) -> Option<FlightId> {
        let client = self.turns.pop_front()?;
        let queue = self.waiting.get_mut(&client)?;
        let next = queue.pop_front();
        self.queued -= 1;
        match queue.is_empty() {
            true => drop(self.waiting.remove(&client)),
            false => self.turns.push_back(client),
        }
        next
    }
}

impl Wrap for OutstandingLimit {
    fn name(&self) -> &'static str {
        match self.queue {
            Some(Queue { most: 0, .. }) => "shadow_limit",
            _ => routes::OutstandingLimit::NAME,
        }
    }

    fn request(&self, request: &Request, message: &[u8], _: &Query<'_>, _: &mut Random) -> Wrapped {
        let mut state = self.state.borrow_mut();
        // The body of a streamed request is already coming.
        let is_streamed = (message.len() as u64) < request.len();
        let full = self.queue.as_ref().filter(|queue| state.queued >= queue.most);
        if state.under_way < self.most || (is_streamed && full.is_none()) {
            state.under_way += 1;
            return Wrapped::Watch;
        }
        match full {
            None => Wrapped::Queue,
            Some(Queue { full, .. }) => Wrapped::Fail(full.outcome, full.text.clone()),
        }
    }

    fn enqueue(&self, flight: FlightId, client: Option<ClientId>) {
        let client = client.map(ClientId::to_bits);
        self.state.borrow_mut().add(flight, client);
    }

    fn left(&self) -> Option<FlightId> {
        let mut state = self.state.borrow_mut();
        let next = state.next();
        if next.is_none() {
            state.under_way = state.under_way.saturating_sub(1);
        }
        next
    }

    fn may_hold(&self) -> bool {
        true
    }

    fn why(&self) -> String {
        format!("at most {} requests under way", self.most)
    }
}

impl OutstandingLimit {
    /// A limit around this child.
    pub(super) fn around(
        child: NodeId,
        most: usize,
        queue: Option<Queue>,
        maker: &mut Maker<'_, '_>,
    ) -> NodeId {
        let state = RefCell::default();
        maker.wrap(Self { most, queue, state }, child)
    }
}

impl<'a> Build<'a, &'a Route> for routes::OutstandingLimit {
    fn build(&'a self, child: &'a Route, maker: &mut Maker<'_, 'a>) -> Result<NodeId, CompileError> {
        let child = maker.node(child)?;
        Ok(OutstandingLimit::around(
            child,
            self.most,
            self.queue.clone(),
            maker,
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_take_turns() {
        let flight = FlightId::from_bits;
        let mut state = State::default();
        for (number, client) in [1, 1, 1, 2, 3, 2].into_iter().enumerate() {
            state.add(flight(number as u64), Some(client));
        }
        let order: Vec<u64> = std::iter::from_fn(|| state.next())
            .map(FlightId::to_bits)
            .collect();
        assert_eq!(order, [0, 3, 4, 1, 5, 2]);
        assert_eq!(state.queued, 0);
        assert!(state.waiting.is_empty() && state.turns.is_empty());
    }
}
