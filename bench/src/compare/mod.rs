//! Side by side: every proxy that is found, interleaved, against the bars that Proxima is to keep.
//!
//! ```text
//!  rows (data: who, what shape, which bar)
//!    └▶ for each round: `lockstep` in a process of its own, all contenders in turn, burst by burst
//!  free: real servers, real load, pinned and not; witness: the same, by redis-benchmark or sysbench
//!  sweep: stand-in servers, real load, over clients and members, and plots of it
//!  balanced: real servers, one to five, asked directly, through a proxy, and through a balancer before two
//!    └▶ results: written anew after each row, so that a run that is cut short leaves what it found
//! ```

mod balanced;
mod free;
mod lockstep;
mod machine;
mod markdown;
mod options;
mod plot;
mod results;
mod rows;
mod sweep;
mod table;
mod witness;

pub(crate) use options::Options;

use anyhow::{Context, Result, ensure};

use machine::Machine;
use results::Results;

use crate::{
    contender::{Contender, Distribution},
    process::raise_descriptor_limit,
    protocol::Protocol,
};

/// Runs `proxima-bench compare`.
pub(crate) fn run(options: &Options) -> Result<()> {
    let field = options.field();
    let rows = options.rows()?;
    raise_descriptor_limit();
    ensure!(
        rows.iter().any(|row| row.runs_with(&field))
            || options.free()
            || options.witness()
            || options.sweep()
            || options.balanced(),
        "no contender of these rows was found"
    );
    let directory = tempfile::Builder::new().prefix("proxima-bench-").tempdir()?;
    let mut results = Results::new(Machine::look(&field), options)?;
    for row in &rows {
        eprintln!("{}: {}", row.name, row.title);
        if let Some(finding) = lockstep::measure(row, &field, options, directory.path())? {
            results.lockstep.push(finding);
            write(&results)?;
        }
    }
    if options.free() {
        free::measure(&field, options, directory.path(), |finding| {
            results.free.push(finding);
            write(&results)
        })?;
    }
    if options.witness() {
        witness(&field, options, directory.path(), &mut results)?;
    }
    if options.sweep() {
        sweep::measure(&field, options, directory.path(), |point| {
            results.sweep.push(point);
            write(&results)
        })?;
        sweep::draw(&results.sweep, options.protocol.name(), &options.plots)?;
    }
    if options.balanced() {
        balanced::measure(&field, options, directory.path(), |point| {
            results.balanced.push(point);
            write(&results)
        })?;
        balanced::draw(&results.balanced, options.protocol.name(), &options.plots)?;
    }
    write(&results)?;
    println!("{}", markdown::render(&results));
    eprintln!("written to {}.md and .json", results.file.display());
    Ok(())
}

/// The contender whose figures those of the others are compared with.
fn reference(protocol: Protocol) -> Contender {
    match protocol {
        Protocol::Memcached | Protocol::Redis => Contender::Twemproxy,
        Protocol::Mysql | Protocol::MysqlPrepared => Contender::Haproxy,
    }
}

/// Lets the outside witness ask real servers through every proxy, which has a processor for itself where
/// there are several.
fn witness(
    field: &[options::Entrant],
    options: &Options,
    directory: &std::path::Path,
    results: &mut Results,
) -> Result<()> {
    let place = directory.join("witness");
    std::fs::create_dir_all(&place)?;
    let pinned = free::processor_sets(true, options)?;
    let Some(processor_sets) =
        pinned.map_or_else(|| free::processor_sets(false, options), |found| Ok(Some(found)))?
    else {
        return Ok(());
    };
    let count = free::server_count(options.protocol);
    let Some((_servers, ports)) = free::servers(count, options, &processor_sets, &place)? else {
        return Ok(());
    };
    let arena = free::Arena {
        field,
        options,
        processor_sets: &processor_sets,
        ports: &ports,
        directory: &place,
        connections: 50,
        distribution: Distribution::default(),
        words: &[],
    };
    witness::measure(&arena, field, options, |heard| {
        results.witness.push(heard);
        write(results)
    })
}

/// Writes both files anew.
fn write(results: &Results) -> Result<()> {
    crate::output::write_json(&results.file.with_extension("json"), results)?;
    let file = results.file.with_extension("md");
    std::fs::write(&file, markdown::render(results))
        .with_context(|| format!("cannot write {}", file.display()))
}
