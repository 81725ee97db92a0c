//! The report of a lockstep run.

use serde::{Deserialize, Serialize};

use super::Shape;
use crate::figures::Spread;

/// The result of one case of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Report {
    /// The contender's name, or the process that was attached to.
    pub(crate) target: String,
    /// The requests.
    pub(crate) shape: Shape,
    /// The processor of the run.
    pub(crate) cpu: usize,
    /// The measurements.
    pub(crate) figures: Option<Figures>,
    /// Why there are none.
    pub(crate) failure: Option<String>,
}

/// The figures of one case.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Figures {
    /// Requests in each burst.
    pub(crate) requests_a_burst: usize,
    /// Processor time per request over the bursts, microseconds.
    pub(crate) cpu_us: Spread,
    /// The same, burst by burst: the n-th of every case of a run was taken at nearly the same time.
    pub(crate) samples_us: Vec<f64>,
    /// How often the target's busiest thread went to sleep and was woken, for each round: 2 for a proxy, 1
    /// for a server.
    pub(crate) wakeups_a_round: f64,
    /// How often that thread was preempted, for each round.
    pub(crate) preemptions_a_round: f64,
    /// How often this process was preempted, for each round. Each time may have shown the target a part of a
    /// batch.
    pub(crate) own_preemptions_a_round: f64,
    /// Resident memory of the target after the bursts.
    pub(crate) resident_bytes: u64,
    /// System calls of the target per request, where they were counted.
    pub(crate) syscalls_per_request: Option<f64>,
    /// Memory with idle clients, where it was asked for.
    pub(crate) idle: Option<Idle>,
}

/// Resident memory of the target with idle clients.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Idle {
    /// The number of idle clients.
    pub(crate) clients: usize,
    /// Bytes before they connected.
    pub(crate) before_bytes: u64,
    /// Bytes when all were connected and none had sent a byte.
    pub(crate) connected_bytes: u64,
    /// Bytes when each had made one request.
    pub(crate) used_bytes: u64,
}

impl Report {
    /// Prints the report for people.
    pub(crate) fn print(&self) {
        let Shape {
            clients,
            pipeline,
            value_size,
            mix,
            servers,
            ..
        } = &self.shape;
        let asked = format!(
            "{clients} × {pipeline}, {value_size} B, sets:gets {mix}, {servers} servers behind, CPU {}",
            self.cpu
        );
        let Some(figures) = &self.figures else {
            println!(
                "{} ({asked}): FAILED: {}",
                self.target,
                self.failure.as_deref().unwrap_or("for no reason")
            );
            return;
        };
        let Spread {
            min,
            p10,
            median,
            max,
        } = figures.cpu_us;
        println!(
            "{} ({asked}): {p10:.2} µs of CPU per request (median {median:.2}, min {min:.2}, max {max:.2})",
            self.target
        );
        println!(
            "  {} bursts of {} requests; per round {:.2} wake-ups, {:.2} preemptions, {:.2} of the bench; {:.1} MB resident",
            figures.samples_us.len(),
            figures.requests_a_burst,
            figures.wakeups_a_round,
            figures.preemptions_a_round,
            figures.own_preemptions_a_round,
            megabytes(figures.resident_bytes)
        );
        if let Some(calls) = figures.syscalls_per_request {
            println!("  {calls:.3} system calls per request");
        }
        if let Some(idle) = &figures.idle {
            println!(
                "  {} idle clients: {:.1} MB → {:.1} MB connected → {:.1} MB after a request each",
                idle.clients,
                megabytes(idle.before_bytes),
                megabytes(idle.connected_bytes),
                megabytes(idle.used_bytes)
            );
        }
    }
}

fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}
