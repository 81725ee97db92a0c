//! Sizes in bytes: a number, and a unit or none.

use super::{Form, Shape};
use crate::config::{Diagnostic, document::Node, reading::Reading};

/// Units by their names in lower case. Units without an `i` are powers of 1,000.
const UNITS: [(&str, u64); 10] = [
    ("gib", 1 << 30),
    ("mib", 1 << 20),
    ("kib", 1 << 10),
    ("gb", 1_000_000_000),
    ("mb", 1_000_000),
    ("kb", 1_000),
    ("g", 1_000_000_000),
    ("m", 1_000_000),
    ("k", 1_000),
    ("b", 1),
];

/// A size above 0; at most 1 TiB (1,024 GiB).
#[derive(Debug)]
pub(in crate::config) struct Size;

impl Form for Size {
    type Value = usize;

    fn shape() -> Shape {
        Shape::TextOrCount {
            what: "size",
            pattern: r"^[0-9]+(\.[0-9]+)?([kKmMgG]i?)?[bB]?$",
        }
    }

    fn read(node: &Node, cx: &mut Reading) -> Result<usize, Diagnostic> {
        parse(node.scalar().unwrap_or_default()).ok_or_else(|| {
            cx.expected(node, "a size above 0").with_remedy(
                "write bytes, or a number and a unit: `65536`, `64KiB`, `1MiB`, `10k`, at most `1024GiB`",
            )
        })
    }

    fn show(value: &usize) -> Option<String> {
        let bytes = *value as u64;
        let unit = UNITS.iter().take(3).find(|(_, unit)| bytes.is_multiple_of(*unit));
        Some(match unit {
            Some((name, unit)) => format!("{}{}iB", bytes / unit, name[..1].to_uppercase()),
            None => bytes.to_string(),
        })
    }
}

fn parse(text: &str) -> Option<usize> {
    let split = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let unit = unit.to_ascii_lowercase();
    let scale = match UNITS.iter().find(|(name, _)| *name == unit) {
        Some((_, scale)) => *scale,
        None if unit.is_empty() => 1,
        // Units as Kubernetes writes them: `Ki`, `Mi`, `Gi`.
        None => {
            UNITS
                .iter()
                .find(|(name, _)| unit.len() == 2 && name.strip_suffix('b') == Some(&unit))?
                .1
        }
    };
    if !number.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let bytes = number.parse::<f64>().ok()? * scale as f64;
    (bytes >= 1.0 && bytes.fract() == 0.0 && bytes <= (1_u64 << 40) as f64).then_some(bytes as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        let good = [
            ("1", 1),
            ("64KiB", 65_536),
            ("64Ki", 65_536),
            ("1MiB", 1 << 20),
            ("1.5MiB", 3 << 19),
            ("10k", 10_000),
            ("10kB", 10_000),
            ("2G", 2_000_000_000),
            ("512b", 512),
        ];
        for (text, bytes) in good {
            assert_eq!(parse(text), Some(bytes), "{text}");
        }
        for text in [
            "", "0", "-1", "k", "1.5", "1 MiB", "1TiB", "2000GiB", "1e3", "nan", "1ib", "1i",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn what_is_shown_is_what_is_read() {
        for bytes in [1, 1_000, 1_024, 65_536, 1 << 30, (1 << 30) + 1] {
            let shown = Size::show(&bytes).unwrap();
            assert_eq!(parse(&shown), Some(bytes), "{shown}");
        }
    }
}
