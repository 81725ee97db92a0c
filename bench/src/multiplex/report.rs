//! The results, for machines and for people.

use serde::Serialize;

use super::{
    figure::{Figure, Figures},
    options::Options,
    table::Table,
    way::Way,
};
use crate::figures::Spread;

/// Width of the names of figures.
const NAME: usize = 34;
/// Width of a way's column.
const COLUMN: usize = 28;

/// All tables of a run.
#[derive(Serialize)]
pub(super) struct Report<'a> {
    pub(super) options: &'a Options,
    pub(super) tables: Vec<Finding>,
}

/// A table with its figures.
#[derive(Serialize)]
pub(super) struct Finding {
    pub(super) table: Table,
    pub(super) title: String,
    pub(super) rounds: usize,
    pub(super) figures: Vec<Figure>,
    pub(super) ways: Vec<Entry>,
}

/// The rounds of one way.
#[derive(Serialize)]
pub(super) struct Entry {
    pub(super) way: &'static str,
    /// Whether the bars are for it.
    #[serde(skip)]
    has_bars: bool,
    /// The figures of each round. `None`: it failed.
    pub(super) rounds: Vec<Option<Figures>>,
    /// The first error of a client.
    pub(super) first_error: Option<String>,
    /// The reason for which a round failed.
    pub(super) failure: Option<String>,
}

impl Entry {
    pub(super) fn new(way: &Way) -> Self {
        Self {
            way: way.name(),
            has_bars: way.is_proxima(),
            rounds: Vec::new(),
            first_error: None,
            failure: None,
        }
    }

    fn spread(&self, figure: usize) -> Option<Spread> {
        Spread::of(self.rounds.iter().flatten().filter_map(|figures| figures[figure]))
    }

    /// The figure as a multiple of what another way has in the same round.
    fn multiple(&self, figure: usize, other: &Self) -> Option<Spread> {
        let rounds = self.rounds.iter().zip(&other.rounds);
        Spread::of(rounds.filter_map(|(own, other)| {
            let (own, other) = (own.as_ref()?[figure]?, other.as_ref()?[figure]?);
            (other != 0.0).then_some(own / other)
        }))
    }
}

impl Finding {
    /// The table as text.
    pub(super) fn render(&self) -> String {
        let mut page = format!(
            "{}: median (least, greatest) of {} rounds\n\n{:NAME$}",
            self.title, self.rounds, ""
        );
        for entry in &self.ways {
            page.push_str(&format!("{:COLUMN$}", entry.way));
        }
        for (number, figure) in self.figures.iter().enumerate() {
            let bar = figure.bar.filter(|_| figure.beside.is_none());
            self.line(&mut page, figure.name, bar, figure.digits, |entry| {
                entry.spread(number)
            });
            if let Some(other) = self.ways.iter().find(|entry| Some(entry.way) == figure.beside) {
                let name = format!("  as a multiple of {}", other.way);
                self.line(&mut page, &name, figure.bar, 2, |entry| {
                    entry.multiple(number, other)
                });
            }
        }
        page.truncate(page.trim_end().len());
        page.push('\n');
        for entry in &self.ways {
            for (what, words) in [("first error", &entry.first_error), ("failed", &entry.failure)] {
                if let Some(words) = words {
                    page.push_str(&format!("{}: {what}: {words}\n", entry.way));
                }
            }
        }
        page
    }

    fn line(
        &self,
        page: &mut String,
        name: &str,
        bar: Option<f64>,
        digits: usize,
        figure: impl Fn(&Entry) -> Option<Spread>,
    ) {
        page.truncate(page.trim_end().len());
        page.push_str(&format!("\n{name:NAME$}"));
        for entry in &self.ways {
            let cell = figure(entry).map_or_else(
                || "–".to_owned(),
                |Spread { median, min, max, .. }| {
                    let missed = bar.is_some_and(|bar| median > bar) && entry.has_bars;
                    let mark = if missed { " missed" } else { "" };
                    format!("{median:.digits$} ({min:.digits$}, {max:.digits$}){mark}")
                },
            );
            page.push_str(&format!("{cell:COLUMN$}"));
        }
        if let Some(bar) = bar {
            page.push_str(&format!("at most {bar}"));
        }
    }
}
