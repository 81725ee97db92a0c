//! Plots as SVG: panels in rows. A line joins medians, and a bar shows the least and the greatest.

use std::fmt::Write;

use super::free::{Figure, FreeEntry};
use crate::figures::Spread;

/// The horizontal axis.
#[derive(Clone, Copy)]
pub(super) struct Axis {
    pub(super) title: &'static str,
    pub(super) is_logarithmic: bool,
}

/// One panel of a plot.
pub(super) struct Panel {
    pub(super) title: String,
    /// Its values are on a logarithmic axis, and not on a linear one from 0.
    pub(super) is_logarithmic: bool,
    pub(super) lines: Vec<Line>,
}

/// The figures of one contender.
pub(super) struct Line {
    pub(super) label: String,
    pub(super) points: Vec<(f64, Spread)>,
}

/// A panel's drawing area, its distance from the margins, and from the next panel; in pixels.
const WIDTH: f64 = 230.0;
const HEIGHT: f64 = 200.0;
const LEFT: f64 = 70.0;
const TOP: f64 = 40.0;
const STEP: f64 = 320.0;
/// The distance of a row of panels from the next one.
const ROW: f64 = TOP + HEIGHT + 45.0;

/// Colours that people with any colour vision tell apart (Okabe and Ito).
const COLOURS: [&str; 7] = [
    "#0072b2", "#56b4e9", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#000000",
];

/// The scale of an axis: its ends, and whether it is logarithmic.
#[derive(Clone, Copy)]
struct Scale {
    from: f64,
    to: f64,
    is_logarithmic: bool,
}

impl Scale {
    /// A scale for these values.
    fn of(values: impl Iterator<Item = f64> + Clone, is_logarithmic: bool) -> Self {
        let greatest = values.clone().fold(f64::MIN_POSITIVE, f64::max);
        let least = values.fold(f64::INFINITY, f64::min).min(greatest);
        let (from, to) = match is_logarithmic {
            true => (
                10_f64.powf(least.log10().floor()),
                10_f64.powf(greatest.log10().ceil()),
            ),
            false => (0.0, greatest * 1.1),
        };
        Self {
            from,
            to: if to > from { to } else { from * 10.0 },
            is_logarithmic,
        }
    }

    /// The place of a value on the axis, from 0 to 1.
    fn place(self, value: f64) -> f64 {
        match self.is_logarithmic {
            true => (value / self.from).log10() / (self.to / self.from).log10(),
            false => (value - self.from) / (self.to - self.from),
        }
    }

    /// The values that are written beside the axis.
    fn ticks(self) -> Vec<f64> {
        if self.is_logarithmic {
            let (first, last) = (self.from.log10().round() as i32, self.to.log10().round() as i32);
            return (first..=last).map(|power| 10_f64.powi(power)).collect();
        }
        let rough = self.to / 5.0;
        let power = 10_f64.powf(rough.log10().floor());
        let steps = [1.0, 2.0, 5.0, 10.0].map(|step| step * power);
        let step = steps.into_iter().find(|&step| step >= rough).unwrap_or(rough);
        (0..)
            .map(|count| f64::from(count) * step)
            .take_while(|&value| value <= self.to)
            .collect()
    }
}

/// The lines of a figure over points that grow from left to right, one for each contender that has it.
pub(super) fn lines<'a>(
    points: impl Iterator<Item = (usize, &'a [FreeEntry])> + Clone,
    figure: Figure,
) -> Vec<Line> {
    let mut labels: Vec<&str> = Vec::new();
    for entry in points.clone().flat_map(|(_, entries)| entries) {
        if entry.spread(figure).is_some() && !labels.contains(&entry.label.as_str()) {
            labels.push(&entry.label);
        }
    }
    let line = |label: &str| Line {
        label: label.to_owned(),
        points: points
            .clone()
            .filter_map(|(at, entries)| {
                let entry = entries.iter().find(|entry| entry.label == label)?;
                Some((at as f64, entry.spread(figure)?))
            })
            .collect(),
    };
    labels.into_iter().map(line).collect()
}

/// The whole file.
pub(super) fn page(axis: Axis, panels: &[Panel]) -> String {
    let labels = panels.first().map_or(&[][..], |panel| &panel.lines);
    // No more than four in a row can be read on a page. Three are one of each kind.
    let across = if panels.len().is_multiple_of(3) { 3 } else { 4 };
    let width = STEP * across.min(panels.len()) as f64;
    let height = ROW * panels.len().div_ceil(across) as f64 + 25.0;
    let mut page = String::new();
    put(
        &mut page,
        format_args!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" \
             font-size=\"11\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>"
        ),
    );
    for (row, panels) in panels.chunks(across).enumerate() {
        let down = ROW * row as f64;
        put(&mut page, format_args!("<g transform=\"translate(0 {down})\">"));
        for (number, panel) in panels.iter().enumerate() {
            draw(&mut page, panel, axis, LEFT + STEP * number as f64, labels);
        }
        put(&mut page, format_args!("</g>"));
    }
    for (number, line) in labels.iter().enumerate() {
        let (x, y) = (LEFT + 180.0 * number as f64, height - 12.0);
        let colour = colour(labels, &line.label);
        put(
            &mut page,
            format_args!(
                "<path d=\"M{x} {y}h20\" stroke=\"{colour}\" stroke-width=\"2\"/><text x=\"{}\" y=\"{}\">{}</text>",
                x + 25.0,
                y + 4.0,
                escaped(&line.label)
            ),
        );
    }
    page.push_str("</svg>\n");
    page
}

fn draw(page: &mut String, panel: &Panel, axis: Axis, left: f64, labels: &[Line]) {
    let points = || panel.lines.iter().flat_map(|line| &line.points);
    let across = Scale::of(points().map(|(x, _)| *x), axis.is_logarithmic);
    let ends = points().flat_map(|(_, spread)| [spread.min, spread.max]);
    let up = Scale::of(ends, panel.is_logarithmic);
    let x = |value| left + WIDTH * across.place(value);
    let y = |value| TOP + HEIGHT * (1.0 - up.place(value));
    let (bottom, right) = (TOP + HEIGHT, left + WIDTH);
    put(
        page,
        format_args!(
            "<text x=\"{left}\" y=\"{}\" font-size=\"13\">{}</text>\n\
             <text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            TOP - 14.0,
            escaped(&panel.title),
            left + WIDTH / 2.0,
            bottom + 32.0,
            axis.title
        ),
    );
    for tick in up.ticks() {
        let at = y(tick);
        put(
            page,
            format_args!(
                "<path d=\"M{left} {at:.1}H{right}\" stroke=\"#ddd\"/>\
                 <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                left - 6.0,
                at + 4.0,
                number(tick)
            ),
        );
    }
    for tick in across.ticks() {
        let at = x(tick);
        put(
            page,
            format_args!(
                "<path d=\"M{at:.1} {bottom}v4\" stroke=\"black\"/>\
                 <text x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
                bottom + 16.0,
                number(tick)
            ),
        );
    }
    put(
        page,
        format_args!("<path d=\"M{left} {TOP}V{bottom}H{right}\" fill=\"none\" stroke=\"black\"/>"),
    );
    for line in &panel.lines {
        let colour = colour(labels, &line.label);
        let mut path = String::new();
        for (at, spread) in &line.points {
            let begin = if path.is_empty() { 'M' } else { 'L' };
            let _ = write!(path, "{begin}{:.1} {:.1}", x(*at), y(spread.median));
            put(
                page,
                format_args!(
                    "<path d=\"M{:.1} {:.1}V{:.1}\" stroke=\"{colour}\"/>",
                    x(*at),
                    y(spread.min),
                    y(spread.max)
                ),
            );
        }
        put(
            page,
            format_args!("<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>"),
        );
    }
}

/// The colour of a contender, the same in all panels.
fn colour(labels: &[Line], label: &str) -> &'static str {
    let place = labels.iter().position(|line| line.label == label);
    COLOURS[place.unwrap_or(COLOURS.len() - 1) % COLOURS.len()]
}

/// A number as people write it: 10k for 10,000.
fn number(value: f64) -> String {
    match value {
        1_000_000.0.. => format!("{}M", value / 1e6),
        1_000.0.. => format!("{}k", value / 1e3),
        _ => format!("{}", (value * 100.0).round() / 100.0),
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

/// Appends a line. Writing to a String cannot fail.
fn put(page: &mut String, line: std::fmt::Arguments<'_>) {
    let _ = writeln!(page, "{line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_point_is_inside_its_panel() {
        let spread = |value: f64| Spread::of([value * 0.9, value, value * 1.2]).unwrap();
        let line = Line {
            label: "a < b".into(),
            points: vec![
                (10.0, spread(3.0)),
                (100.0, spread(1.0)),
                (10_000.0, spread(7_000.0)),
            ],
        };
        for is_logarithmic in [false, true] {
            let panel = Panel {
                title: "t".into(),
                is_logarithmic,
                lines: vec![Line {
                    label: line.label.clone(),
                    points: line.points.clone(),
                }],
            };
            let axis = Axis {
                title: "clients",
                is_logarithmic: true,
            };
            let page = page(axis, &[panel]);
            assert!(page.contains("a &lt; b") && !page.contains("NaN") && !page.contains("inf"));
            let path = page
                .lines()
                .find(|line| line.contains("stroke-width=\"2\"") && line.contains('L'));
            let path = path.unwrap().split('"').nth(1).unwrap();
            for point in path.split(['M', 'L']).skip(1) {
                let (x, y) = point.split_once(' ').unwrap();
                let (x, y): (f64, f64) = (x.parse().unwrap(), y.parse().unwrap());
                assert!(
                    (LEFT..=LEFT + WIDTH).contains(&x) && (TOP..=TOP + HEIGHT).contains(&y),
                    "{point}"
                );
            }
        }
    }

    #[test]
    fn twelve_panels_stand_in_four_rows_and_four_in_one() {
        let axis = Axis {
            title: "servers",
            is_logarithmic: false,
        };
        for (count, width, rows) in [(3, 960, 1), (4, 1280, 1), (5, 1280, 2), (12, 960, 4)] {
            let panel = || Panel {
                title: "t".into(),
                is_logarithmic: false,
                lines: vec![Line {
                    label: "a".into(),
                    points: vec![(1.0, Spread::of([1.0]).unwrap())],
                }],
            };
            let page = page(axis, &Vec::from_iter((0..count).map(|_| panel())));
            let height = 285 * rows + 25;
            assert!(
                page.contains(&format!("viewBox=\"0 0 {width} {height}\"")),
                "{page}"
            );
            assert_eq!(page.matches("<g ").count(), rows, "{count}");
        }
    }

    #[test]
    fn ticks_are_round_numbers() {
        let linear = Scale::of([0.0, 43.0].into_iter(), false);
        assert_eq!(linear.ticks(), [0.0, 10.0, 20.0, 30.0, 40.0]);
        let logarithmic = Scale::of([20.0, 4_000.0].into_iter(), true);
        assert_eq!(logarithmic.ticks(), [10.0, 100.0, 1_000.0, 10_000.0]);
    }
}
