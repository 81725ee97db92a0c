//! One state as lines of text, for scripts and for those who have no screen.

use std::fmt::Write;

use serde_json::Value;

use super::{
    overview::{facts, title},
    sheet::Sheet,
    sheets,
};
use crate::cli::table::Table;

/// The most events of a report.
const EVENTS: usize = 10;

/// The whole state: facts, and a table of each kind of thing that there is.
pub(super) fn report(document: &Value, events: &[Value], address: &str) -> String {
    let mut out = title(document, address) + "\n\n";
    for fact in facts(document) {
        // Writing to a String cannot fail, here and below.
        let _ = writeln!(out, "{:<14} {}", fact.name, fact.text);
    }
    let latest = &events[events.len().saturating_sub(EVENTS)..];
    for sheet in [
        sheets::listeners(document),
        sheets::pools(document),
        sheets::servers(document),
        sheets::hot_keys(document),
        sheets::events(latest.iter()),
    ] {
        if !sheet.rows.is_empty() {
            let _ = write!(out, "\n{}", table(sheet));
        }
    }
    out
}

fn table(sheet: Sheet) -> String {
    let mut table = Table::new(sheet.heads);
    for row in sheet.rows {
        table.row(row.cells.into_iter().map(|cell| cell.text).collect());
    }
    table.text()
}
