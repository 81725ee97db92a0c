//! The results of a comparison, and where they are kept.

use std::path::PathBuf;

use anyhow::{Context, Result};
use serde::Serialize;

use super::{
    balanced::BalancedPoint, free::FreeFinding, lockstep::Finding, machine::Machine, options::Options,
    sweep::Point, witness::Witness,
};
use crate::protocol::Protocol;

/// All results so far.
#[derive(Serialize)]
pub(super) struct Results {
    pub(super) machine: Machine,
    /// Rounds behind the medians.
    pub(super) rounds: usize,
    /// Whether it was made with `--quick`.
    pub(super) quick: bool,
    /// The protocol of clients and servers.
    pub(super) protocol: Protocol,
    pub(super) lockstep: Vec<Finding>,
    pub(super) free: Vec<FreeFinding>,
    pub(super) witness: Vec<Witness>,
    pub(super) sweep: Vec<Point>,
    pub(super) balanced: Vec<BalancedPoint>,
    /// The path without its extension.
    #[serde(skip)]
    pub(super) file: PathBuf,
}

impl Results {
    pub(super) fn new(machine: Machine, options: &Options) -> Result<Self> {
        let folder = &options.results;
        std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let name = machine.date.replace(' ', "-").replace(':', "");
        let protocol = match options.protocol {
            Protocol::Memcached => "",
            Protocol::Redis => "-redis",
            Protocol::Mysql | Protocol::MysqlPrepared => "-mysql",
        };
        let quick = if options.quick { "-quick" } else { "" };
        let file = folder.join(format!("{name}{protocol}{quick}"));
        Ok(Self {
            machine,
            rounds: options.rounds(),
            quick: options.quick,
            protocol: options.protocol,
            lockstep: Vec::new(),
            free: Vec::new(),
            witness: Vec::new(),
            sweep: Vec::new(),
            balanced: Vec::new(),
            file,
        })
    }
}
