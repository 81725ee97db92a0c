//! Writing results.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result};
use clap::Args;
use serde::{Serialize, Serializer};

/// The output of a run, and its place.
#[derive(Args, Clone, Debug)]
#[group(skip)]
pub(crate) struct Output {
    /// No line of progress each second
    #[arg(long, short = 'q')]
    pub(crate) quiet: bool,
    /// Write the report to this file; '-' is standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

impl Output {
    /// Writes `value` to the file, if there is one, and prints the report, unless the file is standard
    /// output.
    pub(crate) fn write<T: Serialize>(&self, value: &T, print: impl FnOnce()) -> Result<()> {
        if let Some(file) = &self.json {
            write_json(file, value)?;
        }
        if self.is_for_people() {
            print();
        }
        Ok(())
    }

    /// Whether standard output has the report, and not the file.
    pub(crate) fn is_for_people(&self) -> bool {
        self.json.as_deref() != Some(Path::new("-"))
    }
}

/// Writes `value` as JSON to `file`; `-` is standard output.
pub(crate) fn write_json<T: Serialize>(file: &Path, value: &T) -> Result<()> {
    let text = serde_json::to_string_pretty(value)?;
    if file == Path::new("-") {
        println!("{text}");
        return Ok(());
    }
    fs::write(file, text + "\n").with_context(|| format!("cannot write {}", file.display()))
}

/// A duration in JSON.
pub(crate) fn as_seconds<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(duration.as_secs_f64())
}

/// A duration in JSON, if there is one.
pub(crate) fn as_optional_seconds<S: Serializer>(
    duration: &Option<Duration>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    duration
        .map(|duration| duration.as_secs_f64())
        .serialize(serializer)
}
