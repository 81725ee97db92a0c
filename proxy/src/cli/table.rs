//! Tables and times for people.

use std::fmt::Write;

use time::OffsetDateTime;
use unicode_width::UnicodeWidthStr;

/// A time, in the unit that suits it.
pub(super) fn time(seconds: f64) -> String {
    match seconds {
        s if s >= 7200.0 => format!("{:.1} h", s / 3600.0),
        s if s >= 120.0 => format!("{:.1} min", s / 60.0),
        s if s >= 1.0 => format!("{s:.1} s"),
        s if s >= 0.001 => format!("{:.1} ms", s * 1e3),
        s => format!("{:.0} us", s * 1e6),
    }
}

/// A number of bytes, in the unit that suits it.
pub(super) fn size(bytes: u64) -> String {
    let units = [("GiB", 30), ("MiB", 20), ("KiB", 10)];
    let unit = units.into_iter().find(|(_, bits)| bytes >= 1 << bits);
    match unit {
        Some((name, bits)) => format!("{:.1} {name}", bytes as f64 / f64::from(1 << bits)),
        None => format!("{bytes} B"),
    }
}

/// A count or a rate, with as many digits as say something.
pub(super) fn count(number: f64) -> String {
    match number {
        n if n >= 1e9 => format!("{:.1} G", n / 1e9),
        n if n >= 1e6 => format!("{:.1} M", n / 1e6),
        n if n >= 1e5 => format!("{:.1} k", n / 1e3),
        n if n >= 10.0 || n.fract() == 0.0 => format!("{n:.0}"),
        n => format!("{n:.1}"),
    }
}

/// A moment in UTC. `ms`: milliseconds since 1970.
pub(super) fn moment(ms: u64) -> String {
    let at = OffsetDateTime::from_unix_timestamp_nanos(i128::from(ms) * 1_000_000);
    let Ok(at) = at else {
        return format!("{ms} ms");
    };
    format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z",
        at.year(),
        u8::from(at.month()),
        at.day(),
        at.hour(),
        at.minute(),
        at.second(),
        at.millisecond()
    )
}

/// Rows of cells, below each other. A head that begins with `>` is that of numbers, which stand at the right.
pub(super) struct Table {
    rows: Vec<Vec<String>>,
    right: Vec<bool>,
}

impl Table {
    pub(super) fn new(heads: &[&str]) -> Self {
        let names = heads.iter().map(|head| head.trim_start_matches('>').to_owned());
        Self {
            rows: vec![names.collect()],
            right: heads.iter().map(|head| head.starts_with('>')).collect(),
        }
    }

    pub(super) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    pub(super) fn text(&self) -> String {
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.width()).max().unwrap_or_default()
        };
        let widths: Vec<usize> = (0..self.right.len()).map(width).collect();
        // Writing to a String cannot fail.
        let mut out = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for ((cell, &width), &right) in row.iter().zip(&widths).zip(&self.right) {
                // `format!` counts characters, some of which take two places.
                let gap = " ".repeat(width.saturating_sub(cell.width()));
                let _ = match right {
                    true => write!(line, "{gap}{cell}  "),
                    false => write!(line, "{cell}{gap}  "),
                };
            }
            let _ = writeln!(out, "{}", line.trim_end());
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_below_each_other_whatever_their_characters_take() {
        let mut table = Table::new(&["key", ">hits"]);
        for (key, hits) in [("user:1", "7"), ("鍵😀", "123")] {
            table.row(vec![key.to_owned(), hits.to_owned()]);
        }
        assert_eq!(table.text(), "key     hits\nuser:1     7\n鍵😀     123\n");
    }

    #[test]
    fn numbers_and_moments_are_short() {
        let numbers = [0.0, 0.04, 9.96, 12.4, 10_000.0, 123_456.0, 7.1e6, 2.5e9].map(count);
        assert_eq!(
            numbers,
            ["0", "0.0", "10.0", "12", "10000", "123.5 k", "7.1 M", "2.5 G"]
        );
        assert_eq!(moment(1_795_000_000_123), "2026-11-18T11:06:40.123Z");
        assert_eq!(moment(u64::MAX), "18446744073709551615 ms");
    }
}
