//! Writing results.

use std::{fs, path::Path};

use anyhow::{Context, Result};
use serde::Serialize;

/// Writes `value` as JSON to `file`; `-` is standard output.
pub(crate) fn write_json<T: Serialize>(file: &Path, value: &T) -> Result<()> {
    let text = serde_json::to_string_pretty(value)?;
    if file == Path::new("-") {
        println!("{text}");
        return Ok(());
    }
    fs::write(file, text + "\n").with_context(|| format!("cannot write {}", file.display()))
}
