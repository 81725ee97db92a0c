//! The results of a run, for machines and for people.

use std::{collections::BTreeMap, net::SocketAddr, time::Duration};

use serde::Serialize;

use super::{
    audit::Audit,
    options::Options,
    tally::{Counts, StaleRead, Tally},
};
use crate::output::as_seconds;

/// The report of a whole run, with what was asked for.
#[derive(Serialize)]
pub(super) struct Report<'a> {
    options: &'a Options,
    #[serde(rename = "seconds", serialize_with = "as_seconds")]
    took: Duration,
    #[serde(flatten)]
    counts: Counts,
    /// `None`: the protocol's servers may forget what they have.
    #[serde(flatten)]
    audit: &'a Option<Audit>,
    /// Stale reads among those that brought a value.
    stale_share: f64,
    stale_age_seconds: Option<Ages>,
    stale_by_address: &'a BTreeMap<SocketAddr, u64>,
    worst_stale_read: &'a Option<StaleRead>,
    #[serde(rename = "longest_spell_seconds", serialize_with = "as_seconds")]
    longest_spell: Duration,
    first_write_failure: &'a Option<String>,
    first_read_failure: &'a Option<String>,
    first_wrong: &'a Option<String>,
    first_foreign_reply: &'a Option<String>,
}

#[derive(Serialize)]
struct Ages {
    p50: f64,
    p99: f64,
    max: f64,
}

impl<'a> Report<'a> {
    pub(super) fn new(
        options: &'a Options,
        took: Duration,
        tally: &'a Tally,
        audit: &'a Option<Audit>,
    ) -> Self {
        let at = |share| tally.ages.value_at_quantile(share) as f64 / 1e6;
        Self {
            options,
            took,
            counts: tally.counts,
            audit,
            stale_share: tally.counts.stale_reads as f64 / tally.counts.hits.max(1) as f64,
            stale_age_seconds: tally.worst.as_ref().map(|worst| Ages {
                p50: at(0.5),
                p99: at(0.99),
                max: worst.age.as_secs_f64(),
            }),
            stale_by_address: &tally.stale_at,
            worst_stale_read: &tally.worst,
            longest_spell: tally.longest_spell,
            first_write_failure: &tally.first_write_failure,
            first_read_failure: &tally.first_read_failure,
            first_wrong: &tally.first_wrong,
            first_foreign_reply: &tally.first_foreign_reply,
        }
    }

    /// For people.
    pub(super) fn print(&self) {
        let counts = &self.counts;
        println!(
            "{} writes acknowledged, {} values read in {:.1} s",
            counts.acknowledged_writes,
            counts.hits,
            self.took.as_secs_f64()
        );
        println!(
            "  stale reads: {} ({:.4} %)",
            counts.stale_reads,
            100.0 * self.stale_share
        );
        if let (Some(ages), Some(worst)) = (&self.stale_age_seconds, self.worst_stale_read) {
            println!(
                "    age, from the acknowledgement of a newer version to the beginning of the read: p50 {}, p99 {}, \
                 worst {}",
                time(ages.p50),
                time(ages.p99),
                time(ages.max)
            );
            println!(
                "    the worst: {} at {} had version {}, and {} was acknowledged",
                worst.key, worst.address, worst.version, worst.acknowledged_version
            );
            for (address, count) in self.stale_by_address {
                println!("    at {address}: {count}");
            }
        }
        println!(
            "  reads older than what their connection had read or written before: {}",
            counts.backward_reads
        );
        if let Some(audit) = self.audit {
            println!("  replies of another client: {}", counts.foreign_replies);
            print_audit(audit);
        }
        println!("  misses: {}", counts.misses);
        println!(
            "  writes refused: {}, without an answer: {}",
            counts.refused_writes, counts.lost_writes
        );
        if !self.longest_spell.is_zero() {
            let spell = time(self.longest_spell.as_secs_f64());
            println!("    longest spell in which no write to a key was acknowledged: {spell}");
        }
        println!(
            "  reads refused: {}, without an answer: {}",
            counts.refused_reads, counts.lost_reads
        );
        println!("  wrong replies: {}", counts.wrong);
        for (what, words) in [
            ("failed write", self.first_write_failure),
            ("failed read", self.first_read_failure),
            ("wrong reply", self.first_wrong),
            ("reply of another client", self.first_foreign_reply),
        ] {
            if let Some(words) = words {
                println!("  first {what}: {words}");
            }
        }
    }
}

fn print_audit(audit: &Audit) {
    println!(
        "  acknowledged writes that are lost: {}",
        audit.lost_acknowledged_writes
    );
    match audit.writes_applied_twice {
        Some(count) => println!("  writes applied twice: {count}"),
        None => println!("  writes applied twice: not known, as tables do not count them"),
    }
    if audit.unread_keys > 0 {
        println!(
            "    keys that could not be read at the end: {}",
            audit.unread_keys
        );
    }
    if let Some(words) = &audit.first_difference {
        println!("    the first: {words}");
    }
}

/// A time in the unit that suits it.
fn time(seconds: f64) -> String {
    format!("{:.1?}", Duration::from_secs_f64(seconds))
}
