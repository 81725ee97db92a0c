//! The report of a load.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use super::{options::Options, tally::Tally};

/// The report of a whole run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Report {
    /// Seconds from the start to the last reply.
    seconds: f64,
    /// Replies of every kind.
    pub(crate) replies: u64,
    /// Replies per second.
    pub(crate) ops_per_second: f64,
    hits: u64,
    pub(crate) misses: u64,
    stored: u64,
    /// Error replies.
    pub(crate) refused: u64,
    /// Replies with a wrong byte.
    pub(crate) wrong: u64,
    /// Requests without a reply.
    pub(crate) lost: u64,
    connects: u64,
    failed_connects: u64,
    first_wrong: Option<String>,
    first_error: Option<String>,
    /// Whether latencies count from the time at which a request was due (open loop) or was sent.
    corrected_for_coordinated_omission: bool,
    pub(crate) latency_us: Latencies,
}

/// Latencies by kind of request.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Latencies {
    pub(crate) all: Percentiles,
    gets: Percentiles,
    sets: Percentiles,
}

/// Latencies in microseconds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Percentiles {
    mean: f64,
    pub(crate) p50: f64,
    p90: f64,
    pub(crate) p99: f64,
    pub(crate) p999: f64,
    p9999: f64,
    pub(crate) max: f64,
}

impl Percentiles {
    pub(super) fn of(nanoseconds: &Histogram<u64>) -> Self {
        let at = |share| nanoseconds.value_at_quantile(share) as f64 / 1_000.0;
        Self {
            mean: nanoseconds.mean() / 1_000.0,
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p999: at(0.999),
            p9999: at(0.9999),
            max: nanoseconds.max() as f64 / 1_000.0,
        }
    }
}

impl Report {
    pub(super) fn new(options: &Options, took: Duration, total: &Tally) -> Self {
        let seconds = took.as_secs_f64();
        Self {
            seconds,
            replies: total.replies(),
            ops_per_second: total.replies() as f64 / seconds,
            hits: total.hits,
            misses: total.misses,
            stored: total.stored,
            refused: total.refused,
            wrong: total.wrong,
            lost: total.lost,
            connects: total.connects,
            failed_connects: total.failed_connects,
            first_wrong: total.first_wrong.clone(),
            first_error: total.first_error.clone(),
            corrected_for_coordinated_omission: options.rate.is_some(),
            latency_us: Latencies {
                all: Percentiles::of(&total.all()),
                gets: Percentiles::of(&total.gets),
                sets: Percentiles::of(&total.sets),
            },
        }
    }

    /// Prints the report for people.
    pub(super) fn print(&self) {
        let Percentiles {
            mean,
            p50,
            p90,
            p99,
            p999,
            p9999,
            max,
        } = self.latency_us.all;
        println!(
            "{} replies in {:.1} s: {:.0}/s",
            self.replies, self.seconds, self.ops_per_second
        );
        println!(
            "  {} hits, {} misses, {} stored",
            self.hits, self.misses, self.stored
        );
        println!(
            "  {} refused, {} lost, {} wrong",
            self.refused, self.lost, self.wrong
        );
        if self.connects + self.failed_connects > 0 {
            println!(
                "  {} connections made, {} failed",
                self.connects, self.failed_connects
            );
        }
        let from = if self.corrected_for_coordinated_omission {
            "due"
        } else {
            "sent"
        };
        println!(
            "  latency, µs since the request was {from}: mean {mean:.0}, p50 {p50:.0}, p90 {p90:.0}, p99 {p99:.0}, \
             p99.9 {p999:.0}, p99.99 {p9999:.0}, max {max:.0}"
        );
        if let Some(words) = &self.first_error {
            println!("  first error: {words}");
        }
        if let Some(words) = &self.first_wrong {
            println!("  first wrong reply: {words}");
        }
    }
}
