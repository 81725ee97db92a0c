//! A page of metrics, in the format that the scraper has asked for.

use std::fmt::{Display, Write};

use super::format::Format;
use crate::figures::{BUCKETS, Latency};

/// Families with their rows. Names are without `proxima_`, which every family of ours begins with, and rows of counters end
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

    /// Begins a family of ours. Its rows follow before the next begins.
    pub(super) fn family(&mut self, name: &str, kind: &str, help: &str) {
        self.foreign_family(&format!("proxima_{name}"), kind, help);
    }

    /// A row of the family that was begun last.
    pub(super) fn row(&mut self, name: &str, labels: &str, value: impl Display) {
        self.foreign_row(&format!("proxima_{name}"), labels, value);
    }

    /// A family under its whole name, as `process_open_fds`, which means the same for every program.
    pub(super) fn foreign_family(&mut self, name: &str, kind: &str, help: &str) {
        // The classic format knows a family by the name of its rows, and no kind that is only a hint for people.
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
        let mut below = 0;
        for (bucket, count) in latency.buckets.iter().enumerate() {
            below += count;
            let bound = if bucket + 1 == BUCKETS {
                "+Inf".into()
            } else {
                ((1u64 << bucket) as f64 / 1e6).to_string()
            };
            self.row(
                &format!("{name}_bucket"),
                &format!("{labels},le=\"{bound}\""),
                below,
            );
        }
        self.summary(name, labels, latency.count(), latency.sum);
    }

    /// How many there were and how long they took together.
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

/// A label's value.
pub(super) fn quoted(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}
