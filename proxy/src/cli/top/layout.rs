//! Texts in the room that there is. Widths are those of a terminal, where some characters take two places.

use ratatui::{
    style::{Modifier, Style},
    text::Line,
};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::{
    screen::Sort,
    sheet::{Cell, Row, Sheet},
};

/// The text, cut where it is too wide.
pub(super) fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut left = width.saturating_sub(1);
    for c in text.chars() {
        let Some(rest) = left.checked_sub(c.width().unwrap_or_default()) else {
            break;
        };
        left = rest;
        out.push(c);
    }
    if width > 0 {
        out.push('…');
    }
    out
}

/// The text as lines of at most this width, divided between words if they are not wider themselves.
pub(super) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let Some(line) = lines.last_mut() else { break };
        match line.is_empty() {
            true => line.push_str(word),
            false if line.width() + 1 + word.width() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            false => lines.push(word.to_owned()),
        }
    }
    lines.iter().map(|line| cut(line, width)).collect()
}

/// The widths of columns that leave this much for all. The widest ones give most, and a column of which
/// nothing is known has none.
fn widths(sheet: &Sheet, sorted: Option<usize>, room: usize) -> Vec<usize> {
    let column = |(at, head): (usize, &&str)| {
        let mark = usize::from(sorted == Some(at));
        let cells = || sheet.rows.iter().filter_map(|row| row.cells.get(at));
        let widest = cells().map(|cell| cell.text.width()).max().unwrap_or_default();
        match mark == 0 && cells().all(Cell::is_missing) {
            true => 0,
            false => widest.max(head.trim_start_matches('>').width() + mark),
        }
    };
    let mut widths: Vec<usize> = sheet.heads.iter().enumerate().map(column).collect();
    let gaps = widths.iter().filter(|&&width| width > 0).count();
    let mut over = (widths.iter().sum::<usize>() + gaps).saturating_sub(room);
    while let Some(widest) = widths.iter_mut().max().filter(|widest| over > 0 && **widest > 4) {
        *widest -= 1;
        over -= 1;
    }
    widths
}

/// A table of this size, with the selected row in it.
pub(super) fn table(
    sheet: &Sheet,
    sort: Option<Sort>,
    selected: Option<usize>,
    (width, height): (usize, usize),
    bad: Style,
) -> Vec<Line<'static>> {
    if sheet.rows.is_empty() {
        return vec![Line::from(cut(sheet.if_empty, width))];
    }
    let sorted = sort.map(|sort| sort.column);
    let widths = widths(sheet, sorted, width.saturating_sub(1));
    let joined = |mark: &str, cells: Vec<String>| -> String {
        let mut line = mark.to_owned();
        let columns = cells.iter().zip(&widths).zip(sheet.heads);
        for ((cell, &width), head) in columns.filter(|((_, width), _)| **width > 0) {
            let cell = cut(cell, width);
            let gap = " ".repeat(width - cell.width());
            let (left, right) = if head.starts_with('>') {
                (&*gap, "")
            } else {
                ("", &*gap)
            };
            line += &format!("{left}{cell}{right} ");
        }
        line
    };
    let head = |(at, head): (usize, &&str)| {
        let mark = match sort.filter(|sort| sort.column == at) {
            Some(sort) if sort.descends => "▼",
            Some(_) => "▲",
            None => "",
        };
        format!("{}{mark}", head.trim_start_matches('>'))
    };
    let heads = sheet.heads.iter().enumerate().map(head).collect();
    let mut lines = vec![Line::styled(
        joined(" ", heads),
        Style::new().add_modifier(Modifier::BOLD),
    )];
    let fitting = height.saturating_sub(1).max(1);
    let selected = selected.map(|selected| selected.min(sheet.rows.len() - 1));
    let first = selected.map_or(0, |selected| (selected + 1).saturating_sub(fitting));
    let line = |(at, row): (usize, &Row)| {
        let is_selected = selected == Some(at);
        let mark = if is_selected {
            ">"
        } else if row.is_bad {
            "!"
        } else {
            " "
        };
        let style = if row.is_bad { bad } else { Style::new() };
        let reversed = if is_selected {
            Modifier::REVERSED
        } else {
            Modifier::empty()
        };
        let cells = row.cells.iter().map(|cell| cell.text.clone()).collect();
        Line::styled(joined(mark, cells), style.add_modifier(reversed))
    };
    let rows = sheet.rows.iter().enumerate().skip(first).take(fitting);
    lines.extend(rows.map(line));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_by_the_places_that_it_takes() {
        let cases = [
            ("abc", 3),
            ("abcd", 3),
            ("鍵鍵鍵", 5),
            ("鍵鍵鍵", 6),
            ("abc", 1),
            ("abc", 0),
        ];
        let cut: Vec<_> = cases.iter().map(|(text, width)| cut(text, *width)).collect();
        assert_eq!(cut, ["abc", "ab…", "鍵鍵…", "鍵鍵鍵", "…", ""]);
    }

    #[test]
    fn lines_end_between_words() {
        assert_eq!(wrapped("one two three", 8), ["one two", "three"]);
        assert_eq!(wrapped("immeasurable a", 6), ["immea…", "a"]);
        assert_eq!(wrapped("", 6), [""]);
    }
}
