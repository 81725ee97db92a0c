//! Rounds: all clients ask, all servers answer, all clients read.

use std::rc::Rc;

use anyhow::{Context, Result, ensure};

use super::{clients::Clients, options::Shape, target::Target};
use crate::{
    contender::Spread,
    form::Check,
    workload::{Keys, Operations, Popularity},
};

/// The clients of a run, and how many keys of a request reach servers.
pub(crate) struct Rounds {
    clients: Clients,
    copies: usize,
}

impl Rounds {
    /// Connects the clients.
    pub(crate) fn connect(shape: &Shape, keys: Rc<Keys>, target: &Target, seed: u64) -> Result<Self> {
        ensure!(
            shape.spread != Spread::Copies || shape.mix.is_sets_only(),
            "copies are measured with sets only: --mix 1:0"
        );
        let operations = Operations::new(keys.count(), Popularity::Uniform, shape.mix, seed)?;
        let clients = Clients::connect(target.address, shape, keys, operations, target.tls.clone())?;
        let copies = match shape.spread {
            Spread::Hash => shape.keys_a_request,
            Spread::All | Spread::Copies => shape.servers,
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
            self.round(check, target)
                .with_context(|| format!("round {} of {count}", number + 1))?;
        }
        Ok(())
    }

    fn round(&mut self, check: Check, target: &mut Target) -> Result<()> {
        self.clients.send()?;
        if let Some(backends) = &mut target.backends {
            backends.collect(self.batch() * self.copies)?;
            backends.answer()?;
        }
        self.clients.receive(check)
    }
}
