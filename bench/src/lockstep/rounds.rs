//! Rounds: all clients ask, all servers answer, all clients read.

use std::rc::Rc;

use anyhow::{Context, Result, ensure};

use super::{clients::Clients, options::Shape, target::Target};
use crate::{
    contender::Spread,
    form::Check,
    near::Near,
    workload::{Keys, Mix, Operations, Popularity},
};

/// The clients of a run.
pub(crate) struct Rounds {
    clients: Clients,
    /// The times that a step of a request reaches servers.
    arrivals: usize,
    near: Near,
    mix: Mix,
    seed: u64,
}

impl Rounds {
    /// Connects the clients.
    pub(crate) fn connect(shape: &Shape, keys: Rc<Keys>, target: &mut Target, seed: u64) -> Result<Self> {
        ensure!(
            shape.spread != Spread::Copies || shape.mix.is_sets_only(),
            "copies are measured with sets only: --mix 1:0"
        );
        let operations = operations(&keys, shape.near, shape.mix, seed)?;
        let clients = Clients::connect(target, shape, keys, operations)?;
        let arrivals = match shape.spread {
            _ if shape.near == Near::Hits => 0,
            _ if clients.steps() > 1 => 1,
            Spread::Hash => shape.keys_a_request,
            Spread::All | Spread::Copies => shape.servers,
        };
        Ok(Self {
            clients,
            arrivals,
            near: shape.near,
            mix: shape.mix,
            seed,
        })
    }

    /// Whether a burst leaves none of the replies that are to be kept.
    pub(crate) fn writes_kept(&self) -> bool {
        self.near == Near::Written
    }

    /// Reads every key once, so that replies are kept where they are to be kept.
    pub(crate) fn keep_all(&mut self, target: &mut Target) -> Result<()> {
        if !self.near.keeps_all() {
            return Ok(());
        }
        let keys = self.keys();
        let turn = Operations::new(keys.count(), Popularity::InTurn, Mix::GETS, self.seed)?;
        self.clients.follow(turn);
        let arrivals = std::mem::replace(&mut self.arrivals, 1);
        self.run(keys.count() as usize / self.batch(), Check::Framing, target)?;
        self.arrivals = arrivals;
        self.clients
            .follow(operations(&keys, self.near, self.mix, self.seed)?);
        Ok(())
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
        for step in 0..self.clients.steps() {
            self.clients.send(step, target.backends.as_mut())?;
            if let Some(backends) = target.backends.as_mut().filter(|_| self.arrivals > 0) {
                backends.collect(self.batch() * self.arrivals)?;
                backends.answer()?;
            }
            self.clients.receive(step, check)?;
        }
        Ok(())
    }
}

fn operations(keys: &Keys, near: Near, mix: Mix, seed: u64) -> Result<Operations> {
    let popularity = match near {
        Near::Misses | Near::Scan | Near::Written => Popularity::InTurn,
        Near::None | Near::Off | Near::Hits => Popularity::Uniform,
    };
    Operations::new(keys.count(), popularity, mix, seed)
}
