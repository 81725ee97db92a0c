//! Files that make up a configuration.

use std::{fs::File, io::Read as _, path::Path};

use super::Diagnostic;

/// Bytes of a file at most.
const LIMIT: u64 = 16 << 20;

/// Reads a file as text. A byte order mark is skipped.
pub(crate) fn read(path: &Path) -> Result<String, Diagnostic> {
    let cannot = |why: String| Diagnostic::whole(format!("cannot be read: {why}"));
    let file = File::open(path).map_err(|e| cannot(e.to_string()))?;
    let mut text = String::new();
    file.take(LIMIT + 1)
        .read_to_string(&mut text)
        .map_err(|e| cannot(e.to_string()))?;
    if text.len() as u64 > LIMIT {
        return Err(cannot(format!("it has more than {LIMIT} bytes")));
    }
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}
