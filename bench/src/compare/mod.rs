//! Side by side: every proxy that is found, interleaved, against the bars that Proxima is to keep.
//!
//! ```text
//!  rows (data: who, what shape, which bar)
//!    └▶ for each round: `lockstep` in a process of its own, all contenders in turn, burst by burst
//!  free: real memcached servers, real load, pinned and not
//!    └▶ results: written anew after each row, so that a run that is cut short leaves what it found
//! ```

mod free;
mod lockstep;
mod machine;
mod markdown;
mod options;
mod results;
mod rows;
mod table;

pub(crate) use options::Options;

use anyhow::{Context, Result, ensure};

use machine::Machine;
use results::Results;

/// Runs `proxima-bench compare`.
pub(crate) fn run(options: &Options) -> Result<()> {
    let field = options.field();
    let rows = options.rows()?;
    ensure!(
        rows.iter().any(|row| row.runs_with(&field)) || options.free(),
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
    write(&results)?;
    println!("{}", markdown::render(&results));
    eprintln!("written to {}.md and .json", results.file.display());
    Ok(())
}

/// Writes both files anew.
fn write(results: &Results) -> Result<()> {
    crate::output::write_json(&results.file.with_extension("json"), results)?;
    let file = results.file.with_extension("md");
    std::fs::write(&file, markdown::render(results))
        .with_context(|| format!("cannot write {}", file.display()))
}
