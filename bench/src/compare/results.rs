//! The results of a comparison, and where they are kept.

use std::path::PathBuf;

use anyhow::{Context, Result};
use serde::Serialize;

use super::{free::FreeFinding, lockstep::Finding, machine::Machine, options::Options};

/// All results so far.
#[derive(Serialize)]
pub(super) struct Results {
    pub(super) machine: Machine,
    /// Rounds behind the medians.
    pub(super) rounds: usize,
    /// Whether it was made with `--quick`.
    pub(super) quick: bool,
    pub(super) lockstep: Vec<Finding>,
    pub(super) free: Vec<FreeFinding>,
    /// The path without its extension.
    #[serde(skip)]
    pub(super) file: PathBuf,
}

impl Results {
    pub(super) fn new(machine: Machine, options: &Options) -> Result<Self> {
        let folder = &options.results;
        std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let name = machine.date.replace(' ', "-").replace(':', "");
        let file = folder.join(if options.quick {
            format!("{name}-quick")
        } else {
            name
        });
        let (rounds, quick) = (options.rounds(), options.quick);
        Ok(Self {
            machine,
            rounds,
            quick,
            lockstep: Vec::new(),
            free: Vec::new(),
            file,
        })
    }
}
