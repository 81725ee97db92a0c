//! A known set-up, free-running: an application that asks its servers itself, through one proxy, and through a
//! TCP balancer before two proxies; over one to five servers, with connections that are kept and with one for
//! every request.

use std::{fmt, path::Path};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::{
    free::{Arena, FreeEntry, processor_sets, servers},
    options::{Entrant, Options},
    plot,
};
use crate::contender::Distribution;

/// The greatest number of servers.
const SERVERS: usize = 5;

/// The requests of a run, and its connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct BalancedLoad {
    /// Sets only, or gets only.
    pub(super) sets: bool,
    /// A connection for every request.
    pub(super) reconnect: bool,
    /// The distribution in twemproxy's file.
    pub(super) distribution: Distribution,
}

/// Everything that is asked, in the order of the tables.
fn asked(distributions: &[Distribution]) -> Vec<BalancedLoad> {
    let mut all = Vec::new();
    for (sets, reconnect) in [(false, false), (false, true), (true, false), (true, true)] {
        all.extend(distributions.iter().map(|&distribution| BalancedLoad {
            sets,
            reconnect,
            distribution,
        }));
    }
    all
}

/// The figures over a number of servers.
#[derive(Serialize, Deserialize)]
pub(super) struct BalancedPoint {
    pub(super) asked: BalancedLoad,
    /// The number of servers.
    pub(super) servers: usize,
    pub(super) entries: Vec<FreeEntry>,
}

/// Measures all contenders over all numbers of servers. `found` gets each point as it is made.
pub(super) fn measure(
    field: &[Entrant],
    options: &Options,
    directory: &Path,
    mut found: impl FnMut(BalancedPoint) -> Result<()>,
) -> Result<()> {
    let place = directory.join("balanced");
    std::fs::create_dir_all(&place)?;
    let Some(processor_sets) = processor_sets(false, options)? else {
        return Ok(());
    };
    let Some((_servers, ports)) = servers(SERVERS, options, &processor_sets, &place)? else {
        return Ok(());
    };
    for asked in asked(&options.distribution) {
        let counts = if options.quick {
            SERVERS..=SERVERS
        } else {
            1..=SERVERS
        };
        for count in counts {
            eprintln!("balanced: {asked}, {count} servers");
            let arena = Arena {
                field,
                options,
                processor_sets: &processor_sets,
                ports: &ports[..count],
                directory: &place,
                connections: 100,
                distribution: asked.distribution,
                words: &asked.words(options.quick),
            };
            found(BalancedPoint {
                asked,
                servers: count,
                entries: arena.run_balanced()?,
            })?;
        }
    }
    Ok(())
}

impl BalancedLoad {
    /// The words of the load's command line.
    fn words(self, quick: bool) -> Vec<&'static str> {
        let mix = if self.sets { "1:0" } else { "0:1" };
        let mut words = vec!["--duration", if quick { "200ms" } else { "2s" }, "--mix", mix];
        if self.reconnect {
            words.push("--reconnect");
        }
        words
    }
}

impl fmt::Display for BalancedLoad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = match (self.sets, self.reconnect) {
            (false, false) => "get, connections kept",
            (false, true) => "get, one connection each",
            (true, false) => "set, connections kept",
            (true, true) => "set, one connection each",
        };
        match self.distribution {
            Distribution::Ketama => f.write_str(words),
            other => write!(f, "{words}, {}", other.name()),
        }
    }
}

/// Writes the plot of the points into the folder.
pub(super) fn draw(points: &[BalancedPoint], protocol: &str, folder: &Path) -> Result<()> {
    if points.is_empty() {
        return Ok(());
    }
    let mut asked: Vec<BalancedLoad> = points.iter().map(|point| point.asked).collect();
    asked.dedup();
    let panels: Vec<plot::Panel> = asked
        .into_iter()
        .map(|asked| {
            let points = points.iter().filter(|point| point.asked == asked);
            let points = points.map(|point| (point.servers, &point.entries[..]));
            plot::Panel {
                title: format!("replies per second: {asked}"),
                is_logarithmic: false,
                lines: plot::lines(points, |run| Some(run.report.ops_per_second)),
            }
        })
        .collect();
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let file = folder.join(format!("{protocol}-balanced.svg"));
    let axis = plot::Axis {
        title: "servers",
        is_logarithmic: false,
    };
    std::fs::write(&file, plot::page(axis, &panels))
        .with_context(|| format!("cannot write {}", file.display()))
}
