//! Rounds: all clients ask, all servers answer, all clients read.

use std::{net::SocketAddr, rc::Rc};

use anyhow::{Context, Result};

use super::{
    clients::{Check, Clients},
    options::Shape,
    target::Target,
};
use crate::{
    contender::Spread,
    workload::{Keys, Operations, Popularity},
};

/// The clients of a run and how many servers each of their requests reaches.
pub(crate) struct Rounds {
    clients: Clients,
    copies: usize,
}

impl Rounds {
    /// Connects the clients.
    pub(crate) fn connect(shape: &Shape, keys: Rc<Keys>, address: SocketAddr, seed: u64) -> Result<Self> {
        let operations = Operations::new(keys.count(), Popularity::Uniform, shape.mix, seed)?;
        let clients = Clients::connect(address, shape, keys, operations)?;
        let copies = match shape.spread {
            Spread::Hash => 1,
            Spread::All => shape.servers,
        };
        Ok(Self { clients, copies })
    }

    /// The keys that are asked for.
    pub(crate) fn keys(&self) -> Rc<Keys> {
        self.clients.keys()
    }

    /// Requests in one round.
    pub(crate) fn batch(&self) -> usize {
        self.clients.batch()
    }

    /// Makes `count` rounds.
    pub(crate) fn run(&mut self, count: usize, check: Check, target: &mut Target) -> Result<()> {
        for number in 0..count {
            self.clients
                .send()
                .and_then(|()| self.finish(self.clients.batch(), check, target))
                .with_context(|| format!("round {} of {count}", number + 1))?;
        }
        Ok(())
    }

    /// Sets every key once, in a target that keeps what it is given.
    pub(crate) fn fill(&mut self, target: &mut Target) -> Result<()> {
        let mut next = 0;
        loop {
            let sent = self.clients.send_fill(next)?;
            if sent == 0 {
                return Ok(());
            }
            self.finish(sent as usize, Check::Whole, target)
                .context("while the keys were set")?;
            next += sent;
        }
    }

    /// From requests written to replies read.
    fn finish(&mut self, requests: usize, check: Check, target: &mut Target) -> Result<()> {
        if let Some(backends) = &mut target.backends {
            backends.collect(requests * self.copies)?;
            backends.answer()?;
        }
        self.clients.receive(check)
    }
}
