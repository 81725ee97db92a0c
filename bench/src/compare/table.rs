//! Tables in Markdown.

use std::fmt::Write;

use crate::figures::Spread;

/// A heading and the first two lines of a table.
pub(super) fn table(page: &mut String, title: &str, header: &[&str]) {
    line(page, &format!("\n## {title}\n"));
    cells(page, header);
    line(page, &format!("|{}", " --- |".repeat(header.len())));
}

/// A line of a table.
pub(super) fn cells(page: &mut String, cells: &[impl AsRef<str>]) {
    let cells: Vec<String> = cells
        .iter()
        .map(|cell| cell.as_ref().replace('|', "\\|").replace('\n', " "))
        .collect();
    line(page, &format!("| {} |", cells.join(" | ")));
}

/// A line of text.
pub(super) fn line(page: &mut String, text: &str) {
    // Writing to a String cannot fail.
    let _ = writeln!(page, "{text}");
}

/// Median, least and greatest.
pub(super) fn spread(spread: Option<Spread>, digits: usize) -> String {
    spread.map_or_else(
        || "–".into(),
        |Spread { median, min, max, .. }| format!("{median:.digits$} ({min:.digits$}–{max:.digits$})"),
    )
}

/// The median alone.
pub(super) fn middle(spread: Option<Spread>, digits: usize) -> String {
    spread.map_or_else(|| "–".into(), |spread| format!("{:.digits$}", spread.median))
}

/// Megabytes (10⁶), one digit after the point.
pub(super) fn megabytes(bytes: u64) -> String {
    format!("{:.1}", bytes as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_process_printed_cannot_break_a_table() {
        let mut page = String::new();
        cells(&mut page, &["haproxy", "it printed: a | b\nc"]);
        assert_eq!(page, "| haproxy | it printed: a \\| b c |\n");
    }

    #[test]
    fn spreads_show_their_ends() {
        let three = Spread::of([1.0, 2.0, 4.0]);
        assert_eq!(
            (spread(three, 1), middle(three, 2), spread(None, 1)),
            ("2.0 (1.0–4.0)".into(), "2.00".into(), "–".into())
        );
    }
}
