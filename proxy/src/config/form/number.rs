//! Numbers.

use proxima_wire::memcache::LONGEST_TTL;

use super::{Form, Shape};
use crate::config::{Diagnostic, document::Node, reading::Reading};

/// A whole number from `MIN` to `MAX`.
#[derive(Debug)]
pub(in crate::config) struct Count<const MIN: u32 = 0, const MAX: u32 = { u32::MAX }>;

impl<const MIN: u32, const MAX: u32> Form for Count<MIN, MAX> {
    type Value = u32;

    fn shape() -> Shape {
        Shape::Count {
            min: MIN.into(),
            max: MAX.into(),
        }
    }

    fn read(node: &Node, cx: &mut Reading) -> Result<u32, Diagnostic> {
        let number = node.scalar().and_then(|text| text.parse().ok());
        number
            .filter(|n| (MIN..=MAX).contains(n))
            .ok_or_else(|| match MAX {
                u32::MAX => cx.expected(node, &format!("a whole number of at least {MIN}")),
                _ => cx.expected(node, &format!("a whole number from {MIN} to {MAX}")),
            })
    }

    fn show(value: &u32) -> Option<String> {
        Some(value.to_string())
    }
}

/// An expiry time as memcached counts it: seconds, or a duration of whole seconds; 0: never, negative: at
/// once.
#[derive(Debug)]
pub(in crate::config) struct Seconds;

impl Form for Seconds {
    type Value = i64;

    fn shape() -> Shape {
        Shape::TextOrCount {
            what: "seconds, or a duration",
            pattern: r"^(-?[0-9]+|[0-9]+(\.[0-9]+)?(ms|s|m|h|d))$",
        }
    }

    fn read(node: &Node, cx: &mut Reading) -> Result<i64, Diagnostic> {
        let text = node.scalar().unwrap_or_default();
        text.parse::<i32>()
            .ok()
            .map(i64::from)
            .or_else(|| {
                let time = super::time::parse(text)?;
                i32::try_from(time.as_secs())
                    .ok()
                    .filter(|_| time.subsec_nanos() == 0)
                    .map(i64::from)
            })
            .filter(|seconds| *seconds <= LONGEST_TTL)
            .ok_or_else(|| {
                cx.expected(node, "whole seconds or a duration, of 30 days at most")
                    .with_remedy("write `60` or `1m`, as servers take a longer time for a date")
            })
    }

    fn show(value: &i64) -> Option<String> {
        Some(value.to_string())
    }
}

/// A share from 0 to 1.
#[derive(Debug)]
pub(in crate::config) struct Share;

impl Form for Share {
    type Value = f64;

    fn shape() -> Shape {
        Shape::Number { min: 0.0, max: 1.0 }
    }

    fn read(node: &Node, cx: &mut Reading) -> Result<f64, Diagnostic> {
        number(node).filter(|n| (0.0..=1.0).contains(n)).ok_or_else(|| {
            cx.expected(node, "a number from 0 to 1")
                .with_remedy("a half is `0.5`")
        })
    }

    fn show(value: &f64) -> Option<String> {
        Some(value.to_string())
    }
}

/// A finite number above 0.
#[derive(Debug)]
pub(in crate::config) struct Amount;

impl Form for Amount {
    type Value = f64;

    fn shape() -> Shape {
        Shape::Number {
            min: f64::MIN_POSITIVE,
            max: f64::MAX,
        }
    }

    fn read(node: &Node, cx: &mut Reading) -> Result<f64, Diagnostic> {
        number(node)
            .filter(|n| n.is_finite() && *n > 0.0)
            .ok_or_else(|| cx.expected(node, "a number above 0"))
    }

    fn show(value: &f64) -> Option<String> {
        Some(value.to_string())
    }
}

/// A weight: a finite number of at least 0.
#[derive(Debug)]
pub(in crate::config) struct Weight;

impl Form for Weight {
    type Value = f64;

    fn shape() -> Shape {
        Shape::Number {
            min: 0.0,
            max: f64::MAX,
        }
    }

    fn read(node: &Node, cx: &mut Reading) -> Result<f64, Diagnostic> {
        number(node)
            .filter(|n| n.is_finite() && *n >= 0.0)
            .ok_or_else(|| cx.expected(node, "a weight of at least 0"))
    }
}

fn number(node: &Node) -> Option<f64> {
    node.scalar()?.parse().ok()
}
