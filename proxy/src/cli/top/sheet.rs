//! A table of a view: what its rows show, how they are sorted, and which of them are wanted.

use std::cmp::Ordering;

use serde_json::Value;

use super::values::{NOTHING, number, text};

/// What a cell shows, and what it is sorted by: the number, or else the text.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Cell {
    pub(super) text: String,
    order: Option<f64>,
}

impl Cell {
    pub(super) fn text(value: &Value) -> Self {
        Self::from(text(value))
    }

    pub(super) fn number(value: &Value, show: impl Fn(f64) -> String) -> Self {
        Self {
            text: number(value, show),
            order: value.as_f64(),
        }
    }

    /// A word whose place among others is not that of its letters.
    pub(super) fn ranked(text: String, order: f64) -> Self {
        Self {
            text,
            order: Some(order),
        }
    }

    pub(super) fn is_missing(&self) -> bool {
        self.text.is_empty() || self.text == NOTHING
    }

    fn compare(&self, other: &Self) -> Ordering {
        match (self.order, other.order) {
            (Some(one), Some(other)) => one.total_cmp(&other),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => self.text.cmp(&other.text),
        }
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self { text, order: None }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row {
    pub(super) cells: Vec<Cell>,
    /// Something that an operator should see is said in it.
    pub(super) is_bad: bool,
    /// What does not fit into the row.
    pub(super) detail: String,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sheet {
    /// A head that begins with `>` is that of numbers, which stand at the right.
    pub(super) heads: &'static [&'static str],
    pub(super) rows: Vec<Row>,
    /// Why there may be no rows.
    pub(super) if_empty: &'static str,
}

impl Sheet {
    /// Sorts by a column. What is missing comes last either way, and equal rows stay as they are.
    pub(super) fn sort(&mut self, column: usize, descends: bool) {
        self.rows.sort_by(|one, other| {
            let (Some(one), Some(other)) = (one.cells.get(column), other.cells.get(column)) else {
                return Ordering::Equal;
            };
            let order = one.compare(other);
            let order = if descends { order.reverse() } else { order };
            one.is_missing().cmp(&other.is_missing()).then(order)
        });
    }

    /// Leaves the rows that have this text anywhere, in letters of either case.
    pub(super) fn filter(&mut self, wanted: &str) {
        self.if_empty = "no row has this text";
        let wanted = wanted.to_lowercase();
        let has_it = |text: &str| text.to_lowercase().contains(&wanted);
        self.rows
            .retain(|row| row.cells.iter().any(|cell| has_it(&cell.text)) || has_it(&row.detail));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::cli::table::count;

    fn sheet() -> Sheet {
        let row = |name: &str, rate: Value| Row {
            cells: vec![Cell::text(&json!(name)), Cell::number(&rate, count)],
            is_bad: false,
            detail: format!("of {name}"),
        };
        Sheet {
            heads: &["name", ">rate"],
            rows: vec![
                row("b", json!(9.0)),
                row("a", Value::Null),
                row("C", json!(123_400.0)),
                row("d", json!(9.0)),
            ],
            if_empty: "",
        }
    }

    fn names(sheet: &Sheet) -> String {
        sheet.rows.iter().map(|row| &*row.cells[0].text).collect()
    }

    #[test]
    fn numbers_are_sorted_as_such_and_what_is_missing_comes_last() {
        let sorted = |column, descends| {
            let mut sheet = sheet();
            sheet.sort(column, descends);
            names(&sheet)
        };
        assert_eq!(sorted(1, false), "bdCa");
        assert_eq!(sorted(1, true), "Cbda");
        assert_eq!(sorted(0, true), "dbaC");
        assert_eq!(sorted(7, true), "baCd", "there is no such column");
    }

    #[test]
    fn a_filter_looks_at_all_cells_and_details() {
        let filtered = |wanted| {
            let mut sheet = sheet();
            sheet.filter(wanted);
            names(&sheet)
        };
        assert_eq!(filtered("c"), "C");
        assert_eq!(filtered("123.4 K"), "C");
        assert_eq!(filtered("of A"), "a");
        assert_eq!(filtered(""), "baCd");
    }
}
