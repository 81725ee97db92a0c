//! Throughput, processor time and latency over the number of clients and of members, free-running, with
//! stand-in servers: a thousand real ones do not fit a machine.

use std::{
    env,
    fs::File,
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use super::{
    free::{Arena, Figure, FreeEntry, ProcessorSets, processor_sets},
    options::{Entrant, Options},
    plot,
};
use crate::{
    contender::Distribution,
    process::{Child, Launch},
};

/// The variable that grows from point to point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Axis {
    /// Clients, of four members.
    Clients,
    /// Members, for a hundred clients.
    Members,
}

/// The figures at one point.
#[derive(Serialize, Deserialize)]
pub(super) struct Point {
    pub(super) axis: Axis,
    /// The number of clients or members.
    pub(super) at: usize,
    pub(super) entries: Vec<FreeEntry>,
}

const CLIENTS: [usize; 4] = [10, 100, 1_000, 10_000];
const MEMBERS: [usize; 4] = [1, 10, 100, 1_000];

/// Time in which stand-in servers listen after their start.
const START: Duration = Duration::from_secs(30);

/// Measures all contenders at all points, the proxy alone on one processor where there are several. `found`
/// gets each point as it is made.
pub(super) fn measure(
    field: &[Entrant],
    options: &Options,
    directory: &Path,
    mut found: impl FnMut(Point) -> Result<()>,
) -> Result<()> {
    let place = directory.join("sweep");
    std::fs::create_dir_all(&place)?;
    let Some(processor_sets) = processor_sets(true, options)?
        .map_or_else(|| processor_sets(false, options), |found| Ok(Some(found)))?
    else {
        return Ok(());
    };
    let clients = CLIENTS.map(|at| (Axis::Clients, at, at, 4));
    let members = MEMBERS.map(|at| (Axis::Members, at, 100, at));
    for (axis, at, connections, servers) in clients.into_iter().chain(members) {
        eprintln!("sweep: {connections} clients, {servers} members");
        let (_servers, ports) = stand_in(servers, options, &processor_sets, &place)?;
        let arena = Arena {
            field,
            options,
            processor_sets: &processor_sets,
            ports: &ports,
            directory: &place,
            connections,
            distribution: Distribution::default(),
            words: &[],
        };
        found(Point {
            axis,
            at,
            entries: arena.run(None)?,
        })?;
    }
    Ok(())
}

/// Starts stand-in servers. Returns their process and their ports.
fn stand_in(
    count: usize,
    options: &Options,
    processor_sets: &ProcessorSets,
    directory: &Path,
) -> Result<(Child, Vec<u16>)> {
    let file = directory.join("ports.json");
    let _ = std::fs::remove_file(&file);
    let count = count.to_string();
    let words = [
        "servers",
        "--count",
        &count,
        "--protocol",
        options.protocol.name(),
    ];
    let mut launch = Launch::new(&env::current_exe()?, words);
    launch.arguments.extend(["--ports".into(), file.clone().into()]);
    let mut servers = Child::start(&launch, &processor_sets.others, directory)?;
    let deadline = Instant::now() + START;
    loop {
        servers.check_running()?;
        // A file that is still being written is no JSON.
        let ports = File::open(&file)
            .ok()
            .and_then(|file| serde_json::from_reader(file).ok());
        if let Some(ports) = ports {
            return Ok((servers, ports));
        }
        ensure!(Instant::now() < deadline, "the stand-in servers did not start");
        std::thread::sleep(Duration::from_millis(20));
    }
}

impl Axis {
    /// Its name in file names.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Clients => "clients",
            Self::Members => "members",
        }
    }

    /// Its line in a plot.
    const fn line(self) -> plot::Axis {
        plot::Axis {
            title: self.name(),
            is_logarithmic: true,
        }
    }
}

/// Writes the plots of the points into the folder.
pub(super) fn draw(points: &[Point], protocol: &str, folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    for axis in [Axis::Clients, Axis::Members] {
        let points: Vec<&Point> = points.iter().filter(|point| point.axis == axis).collect();
        if points.is_empty() {
            continue;
        }
        let file = folder.join(format!("{protocol}-{}.svg", axis.name()));
        std::fs::write(&file, plot::page(axis.line(), &panels(&points)))
            .with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(())
}

/// The panels of a plot: throughput, processor time, latency.
fn panels(points: &[&Point]) -> [plot::Panel; 3] {
    let figures: [(&str, bool, Figure); 3] = [
        ("replies per second", false, |run| Some(run.report.ops_per_second)),
        ("CPU µs of the proxy per reply", false, |run| run.cpu_us),
        ("p99, µs", true, |run| Some(run.report.latency_us.all.p99)),
    ];
    figures.map(|(title, is_logarithmic, figure)| plot::Panel {
        title: title.to_owned(),
        is_logarithmic,
        lines: plot::lines(points.iter().map(|point| (point.at, &point.entries[..])), figure),
    })
}
