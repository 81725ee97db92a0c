//! A known set-up, free-running: an application that asks its servers itself, through one proxy, and through a
//! TCP balancer before two proxies; over one to four servers, with connections that are kept and with one for
//! every request.

use std::{fmt, path::Path};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::{
    free::{Arena, FreeEntry, places, servers},
    options::{Entrant, Options},
    plot,
};

/// The greatest number of servers.
const SERVERS: usize = 4;

/// What is asked, and on which connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Asked {
    /// Sets only, or gets only.
    pub(super) sets: bool,
    /// A connection for every request.
    pub(super) reconnect: bool,
}

/// Everything that is asked, in the order of the tables.
fn asked() -> impl Iterator<Item = Asked> {
    [(false, false), (false, true), (true, false), (true, true)]
        .into_iter()
        .map(|(sets, reconnect)| Asked { sets, reconnect })
}

/// The figures over a number of servers.
#[derive(Serialize, Deserialize)]
pub(super) struct BalancedPoint {
    pub(super) asked: Asked,
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
    let Some(places) = places(false, options)? else {
        return Ok(());
    };
    let Some((_servers, ports)) = servers(options, &places, &place)? else {
        return Ok(());
    };
    for asked in asked() {
        for count in 1..=SERVERS {
            eprintln!("balanced: {asked}, {count} servers");
            let arena = Arena {
                field,
                options,
                places: &places,
                ports: &ports[..count],
                directory: &place,
                connections: 100,
                words: asked.words(),
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

impl Asked {
    /// The words of the load's command line.
    fn words(self) -> &'static [&'static str] {
        match (self.sets, self.reconnect) {
            (false, false) => &["--duration", "2s", "--mix", "0:1"],
            (false, true) => &["--duration", "2s", "--mix", "0:1", "--reconnect"],
            (true, false) => &["--duration", "2s", "--mix", "1:0"],
            (true, true) => &["--duration", "2s", "--mix", "1:0", "--reconnect"],
        }
    }
}

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match (self.sets, self.reconnect) {
            (false, false) => "get, connections kept",
            (false, true) => "get, one connection each",
            (true, false) => "set, connections kept",
            (true, true) => "set, one connection each",
        })
    }
}

/// Writes the plot of the points into the folder.
pub(super) fn draw(points: &[BalancedPoint], protocol: &str, folder: &Path) -> Result<()> {
    if points.is_empty() {
        return Ok(());
    }
    let panels: Vec<plot::Panel> = asked()
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
