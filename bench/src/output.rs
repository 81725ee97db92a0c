//! Writing results.

use std::{fs, path::Path, time::Duration};

use anyhow::{Context, Result};
use serde::{Serialize, Serializer};

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
