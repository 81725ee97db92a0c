//! Tables and times for people.

use std::fmt::Write;

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
            cells.map(|cell| cell.chars().count()).max().unwrap_or_default()
        };
        let widths: Vec<usize> = (0..self.right.len()).map(width).collect();
        // Writing to a String cannot fail.
        let mut out = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for ((cell, &width), &right) in row.iter().zip(&widths).zip(&self.right) {
                let _ = match right {
                    true => write!(line, "{cell:>width$}  "),
                    false => write!(line, "{cell:<width$}  "),
                };
            }
            let _ = writeln!(out, "{}", line.trim_end());
        }
        out
    }
}
