//! Durations: a number and a unit.

use std::time::Duration;

use super::{Form, Shape};
use crate::config::{Diagnostic, document::Node, reading::Reading};

/// Units, largest first, in nanoseconds.
const UNITS: [(&str, u64); 6] = [
    ("d", 86_400_000_000_000),
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
];

/// Longest duration that may be configured, so that sums with a clock never overflow: 1,000 days.
const LONGEST: Duration = Duration::from_secs(1_000 * 86_400);

const PATTERN: &str = r"^[0-9]+(\.[0-9]+)?(us|ms|s|m|h|d)$";
const REMEDY: &str = "write a number and a unit: `250ms`, `1s`, `5m`, `1h`, at most `1000d`";

/// A duration. The key says what 0 means.
#[derive(Debug)]
pub(in crate::config) struct Time;

impl Form for Time {
    type Value = Duration;

    fn shape() -> Shape {
        Shape::Text {
            what: "duration",
            pattern: Some(PATTERN),
        }
    }

    fn read(node: &Node, cx: &mut Reading) -> Result<Duration, Diagnostic> {
        parse(node.scalar().unwrap_or_default())
            .ok_or_else(|| cx.expected(node, "a duration").with_remedy(REMEDY))
    }

    fn show(value: &Duration) -> Option<String> {
        Some(show(*value))
    }
}

/// A duration above 0.
#[derive(Debug)]
pub(in crate::config) struct PositiveTime;

impl Form for PositiveTime {
    type Value = Duration;

    fn shape() -> Shape {
        Shape::Text {
            what: "duration above 0",
            pattern: Some(PATTERN),
        }
    }

    fn read(node: &Node, cx: &mut Reading) -> Result<Duration, Diagnostic> {
        let time = Time::read(node, cx)?;
        match time.is_zero() {
            true => Err(cx.expected(node, "a duration above 0").with_remedy(REMEDY)),
            false => Ok(time),
        }
    }

    fn show(value: &Duration) -> Option<String> {
        Some(show(*value))
    }
}

/// Parses a number, with a fraction or without, and a unit.
pub(crate) fn parse(text: &str) -> Option<Duration> {
    let split = text.find(|c: char| c.is_ascii_alphabetic())?;
    let (number, unit) = text.split_at(split);
    let (_, nanos) = UNITS.iter().find(|(name, _)| *name == unit)?;
    if !number.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let seconds = number.parse::<f64>().ok()? * (*nanos as f64) / 1e9;
    Duration::try_from_secs_f64(seconds)
        .ok()
        .filter(|time| *time <= LONGEST)
}

fn show(time: Duration) -> String {
    let nanos = time.as_nanos();
    let unit = UNITS
        .iter()
        .find(|(_, unit)| nanos.is_multiple_of(u128::from(*unit)));
    match unit {
        _ if nanos == 0 => "0s".to_owned(),
        Some((name, unit)) => format!("{}{name}", nanos / u128::from(*unit)),
        None => format!("{}us", time.as_micros()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        for (text, millis) in [
            ("250ms", 250),
            ("1s", 1_000),
            ("1.5s", 1_500),
            ("2m", 120_000),
            ("0s", 0),
            ("1d", 86_400_000),
        ] {
            assert_eq!(parse(text), Some(Duration::from_millis(millis)), "{text}");
        }
        for text in [
            "", "1", "s", "-1s", "+1s", "1 s", "1S", "1e3s", "1001d", "1sec", "infs", ".5s", "1s ",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn what_is_shown_is_what_is_read() {
        for text in ["250ms", "1s", "90s", "5m", "1h", "0s", "1000d", "7us"] {
            let time = parse(text).unwrap();
            assert_eq!(parse(&show(time)), Some(time), "{text}");
        }
        assert_eq!(show(Duration::from_secs(30)), "30s");
        assert_eq!(show(Duration::from_secs(300)), "5m");
    }
}
