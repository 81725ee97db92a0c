//! What the screen shows, and what keys do with it.

use std::{collections::VecDeque, ops::ControlFlow};

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use serde_json::{Map, Value};

use super::{sheet::Sheet, sheets};
use crate::cli::plain::plain;

/// The most events that are kept, as many as a proxy keeps.
const EVENTS: usize = 1000;
/// Rows of a page.
const PAGE: usize = 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum View {
    Overview,
    Servers,
    Pools,
    Keys,
    Events,
}

impl View {
    pub(super) const ALL: [Self; 5] = [
        Self::Overview,
        Self::Servers,
        Self::Pools,
        Self::Keys,
        Self::Events,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Overview => "overview",
            Self::Servers => "servers",
            Self::Pools => "pools",
            Self::Keys => "hot keys",
            Self::Events => "events",
        }
    }
}

/// How the rows of a view are sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sort {
    pub(super) column: usize,
    pub(super) descends: bool,
}

impl Sort {
    /// The order of a view until it is changed: what is wrong, or busiest, or newest, stands above.
    const fn of(view: View) -> Self {
        let (column, descends) = match view {
            View::Overview | View::Pools => (0, false),
            View::Servers => (2, false),
            View::Keys => (2, true),
            View::Events => (0, true),
        };
        Self { column, descends }
    }
}

/// What is known of a proxy at a moment.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    pub(super) document: Value,
    pub(super) events: VecDeque<Value>,
}

#[derive(Debug)]
pub(super) struct Screen {
    /// The address of the proxy's admin port.
    pub(super) address: String,
    pub(super) has_colours: bool,
    pub(super) view: View,
    pub(super) has_help: bool,
    /// Only rows with this text are shown.
    pub(super) filter: String,
    /// The filter is being typed.
    pub(super) is_typing: bool,
    /// The number of the row whose details are shown.
    pub(super) selected: usize,
    /// Why nothing new comes.
    pub(super) lost: Option<String>,
    sorts: [Sort; View::ALL.len()],
    latest: Known,
    /// What is shown while the screen is paused.
    paused: Option<Known>,
}

impl Screen {
    pub(super) fn new(address: String, has_colours: bool) -> Self {
        Self {
            address,
            has_colours,
            view: View::Overview,
            has_help: false,
            filter: String::new(),
            is_typing: false,
            selected: 0,
            lost: None,
            sorts: View::ALL.map(Sort::of),
            latest: Known::default(),
            paused: None,
        }
    }

    pub(super) fn take_state(&mut self, document: Value) {
        self.latest.document = document;
        self.lost = None;
    }

    pub(super) fn take_event(&mut self, mut event: Value) {
        // A thousand texts of any length would take much memory.
        for value in event.as_object_mut().into_iter().flat_map(Map::values_mut) {
            if let Value::String(text) = value {
                *text = plain(text);
            }
        }
        if self.latest.events.len() == EVENTS {
            self.latest.events.pop_front();
        }
        self.latest.events.push_back(event);
    }

    pub(super) fn lose(&mut self, why: &str) {
        self.lost = Some(plain(why));
    }

    pub(super) fn known(&self) -> &Known {
        self.paused.as_ref().unwrap_or(&self.latest)
    }

    pub(super) fn is_paused(&self) -> bool {
        self.paused.is_some()
    }

    pub(super) fn sort(&self) -> Sort {
        self.sorts[self.view as usize]
    }

    /// The tables of the view. The last one is sorted as its user wants it, and has the selected row.
    pub(super) fn sheets(&self) -> Vec<Sheet> {
        let Known { document, events } = self.known();
        let mut sheets = match self.view {
            View::Overview => Vec::new(),
            View::Servers => vec![sheets::servers(document)],
            View::Pools => vec![sheets::listeners(document), sheets::pools(document)],
            View::Keys => vec![sheets::hot_keys(document)],
            View::Events => vec![sheets::events(events.iter())],
        };
        if !self.filter.is_empty() {
            for sheet in &mut sheets {
                sheet.filter(&self.filter);
            }
        }
        let Sort { column, descends } = self.sort();
        if let Some(sheet) = sheets.last_mut() {
            sheet.sort(column, descends);
        }
        sheets
    }

    /// Does what the key says; breaks where that is the end.
    pub(super) fn press(&mut self, key: KeyEvent) -> ControlFlow<()> {
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        if key.kind == KeyEventKind::Release {
            return ControlFlow::Continue(());
        }
        match key.code {
            KeyCode::Char('c') if is_control => return ControlFlow::Break(()),
            code if self.is_typing => self.type_filter(code),
            KeyCode::Char('q') => return ControlFlow::Break(()),
            KeyCode::Char('?' | 'h') => self.has_help = !self.has_help,
            KeyCode::Esc if self.has_help => self.has_help = false,
            KeyCode::Esc => self.filter.clear(),
            KeyCode::Char('/') => self.is_typing = true,
            KeyCode::Char(' ' | 'p') => {
                self.paused = match self.paused {
                    None => Some(self.latest.clone()),
                    Some(_) => None,
                };
            }
            KeyCode::Char(digit @ '1'..='5') => self.show(digit as usize - '1' as usize),
            KeyCode::Tab => self.show(self.view as usize + 1),
            KeyCode::BackTab => self.show(self.view as usize + View::ALL.len() - 1),
            KeyCode::Left => self.sort_by(|column, columns| (column + columns - 1) % columns),
            KeyCode::Right => self.sort_by(|column, columns| (column + 1) % columns),
            KeyCode::Char('r') => {
                let sort = &mut self.sorts[self.view as usize];
                sort.descends = !sort.descends;
            }
            KeyCode::Up | KeyCode::Char('k') => self.select(|row| row.saturating_sub(1)),
            KeyCode::Down | KeyCode::Char('j') => self.select(|row| row + 1),
            KeyCode::PageUp => self.select(|row| row.saturating_sub(PAGE)),
            KeyCode::PageDown => self.select(|row| row + PAGE),
            KeyCode::Home => self.select(|_| 0),
            KeyCode::End => self.select(|_| usize::MAX),
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn type_filter(&mut self, code: KeyCode) {
        match code {
            KeyCode::Enter => self.is_typing = false,
            KeyCode::Esc => {
                self.is_typing = false;
                self.filter.clear();
            }
            KeyCode::Backspace => drop(self.filter.pop()),
            KeyCode::Char(c) => {
                self.filter.push(c);
                self.selected = 0;
            }
            _ => {}
        }
    }

    fn show(&mut self, view: usize) {
        self.view = View::ALL[view % View::ALL.len()];
        self.has_help = false;
        self.filter.clear();
        self.selected = 0;
    }

    fn sort_by(&mut self, next: impl Fn(usize, usize) -> usize) {
        let columns = self.sheets().last().map_or(1, |sheet| sheet.heads.len());
        let sort = &mut self.sorts[self.view as usize];
        sort.column = next(sort.column, columns);
    }

    fn select(&mut self, next: impl Fn(usize) -> usize) {
        let rows = self.sheets().last().map_or(0, |sheet| sheet.rows.len());
        self.selected = next(self.selected).min(rows.saturating_sub(1));
    }
}
