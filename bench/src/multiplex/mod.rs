//! Many clients of MySQL and few connections of a server: what a proxy that shares connections saves, and
//! what it costs itself.
//!
//! ```text
//!  tables ─▶ rounds ─▶ ways in turn ─▶ a crowd of clients ─▶ [ directly | HAProxy | Proxima ] ─▶ MariaDB
//!                                        closed: one request behind the other     /proc: CPU, memory
//!                                        paced: each client once a second         its status: connections
//! ```

mod client;
mod closed;
mod crowd;
mod driver;
mod figure;
mod options;
mod paced;
mod report;
mod round;
mod server;
mod step;
mod table;
mod visitors;
mod way;

pub(crate) use options::Options;

use std::path::Path;

use anyhow::Result;
use rand::{SeedableRng, rngs::SmallRng};

use crate::process::raise_descriptor_limit;
use figure::Figures;
use report::{Entry, Finding, Report};
use server::Server;
use table::Table;
use way::Way;

/// Runs `proxima-bench multiplex`.
pub(crate) fn run(options: &Options) -> Result<()> {
    options.check()?;
    raise_descriptor_limit();
    let ways = options.ways()?;
    let directory = tempfile::Builder::new().prefix("proxima-bench-").tempdir()?;
    let mut server = Server::start(directory.path())?;
    let mut report = Report {
        options,
        tables: Vec::new(),
    };
    for table in &options.tables {
        let finding = measure(*table, &ways, &mut server, options, directory.path())?;
        // A run that is cut short leaves the tables that it has made.
        if options.output.is_for_people() {
            println!("{}", finding.render());
        }
        report.tables.push(finding);
    }
    options.output.write(&report, || {})
}

/// Makes all rounds of a table.
fn measure(
    table: Table,
    ways: &[Way],
    server: &mut Server,
    options: &Options,
    directory: &Path,
) -> Result<Finding> {
    let ways: Vec<&Way> = ways.iter().filter(|way| table.has(way.name())).collect();
    let rounds = options.rounds_of(table);
    let mut finding = Finding {
        table,
        title: table.title(options),
        rounds,
        figures: table.figures(),
        ways: ways.iter().map(|way| Entry::new(way)).collect(),
    };
    for round in 0..rounds {
        for (way, entry) in ways.iter().zip(&mut finding.ways) {
            server.wait_until_alone()?;
            // All ways have the same rows and times in a round.
            let random = SmallRng::seed_from_u64(options.seed.wrapping_add(round as u64));
            let made = go(table, way, server, options, directory, random);
            let figures = made
                .map(|(figures, error)| {
                    entry.first_error = entry.first_error.take().or(error);
                    figures
                })
                .map_err(|error| _ = entry.failure.get_or_insert(format!("{error:#}")));
            entry.rounds.push(figures.ok());
        }
        if !options.output.quiet {
            eprintln!("{}", progress(&finding, round + 1));
        }
    }
    Ok(finding)
}

/// Makes one round of one way.
fn go(
    table: Table,
    way: &Way,
    server: &mut Server,
    options: &Options,
    directory: &Path,
    mut random: SmallRng,
) -> Result<(Figures, Option<String>)> {
    let mut open = way.open(server.port, table.clients(options), directory)?;
    let made = table.round(server, &open, options, &mut random);
    open.check_running()?;
    made
}

/// The figures of the last round in a line.
fn progress(finding: &Finding, round: usize) -> String {
    let ways = finding.ways.iter().map(|entry| {
        let last = entry.rounds.last().and_then(Option::as_ref);
        let words = last.map_or_else(
            || "failed".to_owned(),
            |figures| {
                let words = figures.iter().zip(&finding.figures);
                let words = words.map(|(value, figure)| {
                    value.map_or_else(|| "–".to_owned(), |value| format!("{value:.*}", figure.digits))
                });
                words.collect::<Vec<_>>().join(" ")
            },
        );
        format!("{}: {words}", entry.way)
    });
    let ways: Vec<String> = ways.collect();
    format!(
        "{:?} {round}/{}  {}",
        finding.table,
        finding.rounds,
        ways.join("   ")
    )
}
