//! A page of metrics in the scraper's format.

use std::fmt::{Display, Write};

use super::format::Format;
use crate::metrics::{BUCKETS, Latency};

/// Metric families with their rows. Names are given without the prefix `proxima_`, and rows of counters end
/// with `_total`.
pub(super) struct Page {
    text: String,
    format: Format,
}

impl Page {
    pub(super) fn new(format: Format) -> Self {
        Self {
            text: String::with_capacity(16 * 1024),
            format,
        }
    }

    /// Begins a family of ours. Its rows follow before the next family begins.
    pub(super) fn family(&mut self, name: &str, kind: &str, help: &str) {
        self.foreign_family(&format!("proxima_{name}"), kind, help);
    }

    /// Adds a row to the family that was begun last.
    pub(super) fn row(&mut self, name: &str, labels: &str, value: impl Display) {
        self.foreign_row(&format!("proxima_{name}"), labels, value);
    }

    /// Begins a family under its whole name, as `process_open_fds`, which means the same for every program.
    pub(super) fn foreign_family(&mut self, name: &str, kind: &str, help: &str) {
        // The classic format knows a counter by the name of its rows, and has no type `info`.
        let (ending, kind) = match (self.format, kind) {
            (Format::Classic, "counter") => ("_total", kind),
            (Format::Classic, "info") => ("_info", "gauge"),
            _ => ("", kind),
        };
        let _ = write!(
            self.text,
            "# HELP {name}{ending} {help}\n# TYPE {name}{ending} {kind}\n"
        );
    }

    pub(super) fn foreign_row(&mut self, name: &str, labels: &str, value: impl Display) {
        let _ = match labels {
            "" => writeln!(self.text, "{name} {value}"),
            _ => writeln!(self.text, "{name}{{{labels}}} {value}"),
        };
    }

    pub(super) fn counter(&mut self, name: &str, help: &str, value: u64) {
        self.family(name, "counter", help);
        self.row(&format!("{name}_total"), "", value);
    }

    pub(super) fn gauge(&mut self, name: &str, help: &str, value: impl Display) {
        self.family(name, "gauge", help);
        self.row(name, "", value);
    }

    pub(super) fn histogram(&mut self, name: &str, labels: &str, latency: &Latency) {
        let (mut below, comma) = (0, if labels.is_empty() { "" } else { "," });
        for (bucket, count) in latency.buckets.iter().enumerate() {
            below += count;
            let bound = if bucket + 1 == BUCKETS {
                "+Inf".into()
            } else {
                ((1u64 << bucket) as f64 / 1e6).to_string()
            };
            self.row(
                &format!("{name}_bucket"),
                &format!("{labels}{comma}le=\"{bound}\""),
                below,
            );
        }
        self.summary(name, labels, latency.count(), latency.sum);
    }

    /// Adds a count and a sum of durations in seconds.
    pub(super) fn summary(&mut self, name: &str, labels: &str, count: u64, micros: u64) {
        self.row(&format!("{name}_count"), labels, count);
        self.row(&format!("{name}_sum"), labels, micros as f64 / 1e6);
    }

    /// The whole page.
    pub(super) fn finish(mut self) -> String {
        if self.format == Format::OpenMetrics {
            self.text.push_str("# EOF\n");
        }
        self.text
    }
}

/// A label's value, escaped.
pub(super) fn quoted(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}
