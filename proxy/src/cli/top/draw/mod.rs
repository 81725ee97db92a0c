//! The screen on a terminal. Colours underline only what is said in words as well.

use ratatui::{
    Frame,
    layout::{Constraint, Layout, Rect},
    style::{Color, Modifier, Style},
    text::{Line, Span},
    widgets::{Paragraph, Sparkline, SparklineBar},
};
use serde_json::Value;

use super::{
    layout::{cut, table, wrapped},
    overview::{facts, title},
    screen::{Screen, View},
    sheets,
    values::elements,
};
use crate::cli::{
    plain::plain,
    table::{count, time},
};

/// Places for the names of facts.
const NAMES: usize = 15;
/// Lines of a fact, and of the details of a row, at most.
const LINES: usize = 3;

const HELP: &str = "\
1 to 5, Tab     overview, servers, pools, hot keys, events
Up, Down        another row, whose details stand at the bottom
PgUp, PgDn      ten rows further; Home, End: the first, the last
Left, Right     the column by which rows are sorted
r               the other way round
/               show only rows with a text; Esc or another view clears it
Space           pause: nothing moves until the next one
?               this help
q               the end

Times are in UTC, rates those of the last second, quantiles of the last 10 s.
! marks what to look at. conns are connections to a server, waits are requests
that it has not answered. held: p99 of the time for which requests
wait for the state of their pool; queued: for a connection of their own.";

/// Draws all.
pub(super) fn draw(frame: &mut Frame<'_>, screen: &Screen) {
    let rows = [1, 1, 0, 1].map(|rows| match rows {
        0 => Constraint::Min(0),
        rows => Constraint::Length(rows),
    });
    let [head, views, body, foot] = Layout::vertical(rows).areas(frame.area());
    let width = usize::from(frame.area().width);
    let title = cut(&title(&screen.known().document, &screen.address), width);
    frame.render_widget(Line::styled(title, bold()), head);
    frame.render_widget(self::views(screen), views);
    match screen.view {
        _ if screen.has_help => frame.render_widget(Paragraph::new(HELP), body),
        View::Overview => overview(frame, screen, body),
        _ => sheet(frame, screen, body),
    }
    frame.render_widget(self::foot(screen, width), foot);
}

fn bold() -> Style {
    Style::new().add_modifier(Modifier::BOLD)
}

/// What an operator should see.
fn bad(screen: &Screen) -> Style {
    match screen.has_colours {
        true => bold().fg(Color::Red),
        false => bold(),
    }
}

fn views(screen: &Screen) -> Line<'static> {
    let view = |(at, view): (usize, &View)| {
        let name = format!("{} {}", at + 1, view.name());
        match *view == screen.view {
            true => Span::styled(format!("[{name}]"), Style::new().add_modifier(Modifier::REVERSED)),
            false => Span::raw(format!(" {name} ")),
        }
    };
    View::ALL.iter().enumerate().map(view).collect()
}

fn foot(screen: &Screen, width: usize) -> Line<'static> {
    let mut said = Vec::new();
    if screen.is_typing {
        return Line::from(cut(
            &format!("show only rows with: {}_", plain(&screen.filter)),
            width,
        ));
    }
    if let Some(why) = &screen.lost {
        said.push(format!("LOST, and asked again: {why}"));
    }
    if screen.is_paused() {
        said.push("PAUSED".to_owned());
    }
    if !screen.filter.is_empty() {
        said.push(format!("only rows with: {}", plain(&screen.filter)));
    }
    let style = match screen.lost {
        Some(_) => bad(screen),
        None => Style::new(),
    };
    said.push("? help  / filter  Space pause  q end".to_owned());
    Line::styled(cut(&said.join("  |  "), width), style)
}

fn overview(frame: &mut Frame<'_>, screen: &Screen, area: Rect) {
    let known = screen.known();
    let width = usize::from(area.width);
    let mut lines = Vec::new();
    for fact in facts(&known.document) {
        let style = if fact.is_bad { bad(screen) } else { Style::new() };
        let mark = if fact.is_bad { '!' } else { ' ' };
        let mut name = format!("{mark}{:<rest$}", fact.name, rest = NAMES - 1);
        let parts = wrapped(&fact.text, width.saturating_sub(NAMES));
        for part in parts.into_iter().take(LINES) {
            lines.push(Line::styled(cut(&(name + &part), width), style));
            name = " ".repeat(NAMES);
        }
    }
    let height = u16::try_from(lines.len()).unwrap_or(u16::MAX);
    let left = area.height.saturating_sub(height);
    let history = if left < 8 { 3 } else { 4 };
    let parts = [height, history, 0].map(|rows| match rows {
        0 => Constraint::Min(0),
        rows => Constraint::Length(rows),
    });
    let [top, middle, bottom] = Layout::vertical(parts).areas(area);
    frame.render_widget(Paragraph::new(lines), top);
    let [left, right] = Layout::horizontal([Constraint::Fill(1); 2])
        .spacing(2)
        .areas(middle);
    let history = &known.document["history"];
    spark(frame, left, "requests/s", &history["requests"], count);
    spark(frame, right, "p99", &history["p99_us"], |us| time(us / 1e6));
    let mut latest = sheets::events(known.events.iter());
    latest.sort(0, true);
    let size = (width, usize::from(bottom.height));
    frame.render_widget(
        Paragraph::new(table(&latest, None, None, size, bad(screen))),
        bottom,
    );
}

/// The history of a value, the newest at the right.
fn spark(frame: &mut Frame<'_>, area: Rect, name: &str, values: &Value, show: impl Fn(f64) -> String) {
    let values: Vec<Option<f64>> = elements(values).map(Value::as_f64).collect();
    let shown = &values[values.len().saturating_sub(usize::from(area.width))..];
    let most = shown.iter().flatten().copied().reduce(f64::max);
    let caption = match most {
        Some(most) => format!("{name}, at most {}", show(most)),
        None => format!("{name}: nothing yet"),
    };
    let [head, body] = Layout::vertical([Constraint::Length(1), Constraint::Min(0)]).areas(area);
    frame.render_widget(Line::styled(cut(&caption, usize::from(area.width)), bold()), head);
    // Whole numbers are drawn, and rates below one are to be seen as well.
    let scaled = |value: &Option<f64>| SparklineBar::from(value.map(|value| (value * 1000.0) as u64));
    let bars: Vec<SparklineBar> = shown.iter().map(scaled).collect();
    frame.render_widget(Sparkline::default().data(bars), body);
}

fn sheet(frame: &mut Frame<'_>, screen: &Screen, area: Rect) {
    let sheets = screen.sheets();
    let Some((main, above)) = sheets.split_last() else {
        return;
    };
    let width = usize::from(area.width);
    let selected = main
        .rows
        .get(screen.selected.min(main.rows.len().saturating_sub(1)));
    let mut details = selected
        .map(|row| wrapped(&row.detail, width))
        .unwrap_or_default();
    details.truncate(if area.height > 8 { LINES } else { 1 });
    let mut lines = Vec::new();
    for sheet in above {
        let height = (sheet.rows.len() + 1).min(usize::from(area.height) / 3);
        lines.extend(table(sheet, None, None, (width, height), bad(screen)));
        lines.push(Line::default());
    }
    let height = usize::from(area.height).saturating_sub(lines.len() + details.len());
    let size = (width, height);
    lines.extend(table(
        main,
        Some(screen.sort()),
        Some(screen.selected),
        size,
        bad(screen),
    ));
    let details_height = u16::try_from(details.len()).unwrap_or_default();
    let parts = [Constraint::Min(0), Constraint::Length(details_height)];
    let [top, bottom] = Layout::vertical(parts).areas(area);
    frame.render_widget(Paragraph::new(lines), top);
    let details: Vec<Line<'_>> = details.into_iter().map(Line::from).collect();
    frame.render_widget(Paragraph::new(details).style(bold()), bottom);
}

#[cfg(test)]
mod tests;
