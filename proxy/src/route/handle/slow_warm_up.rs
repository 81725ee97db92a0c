//! slow_warm_up, with mcrouter's formula: a server that finds few of the keys, because it is fresh, gets only a
//! part of the reads. Child 0 is that server, behind a wrap that watches its replies, and child 1 gets the rest.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
};

use proxima_wire::message::{Class, Outcome, Request};

use super::Random;
use crate::{
    config::{
        routes::{self, Spec},
        schema::Route,
    },
    micros::Micros,
    route::{
        Answer,
        compile::{Build, CompileError, Maker},
        tree::{Children, Choose, NodeId, Query, Watched, Wrap, Wrapped},
    },
};

/// What is known of a server. Only one worker uses it.
#[derive(Debug, Default)]
pub(in crate::route) struct HitRate {
    hits: AtomicU64,
    misses: AtomicU64,
    is_cold: AtomicBool,
}

/// The route `slow_warm_up`.
#[derive(Debug)]
pub(in crate::route) struct SlowWarmUp {
    /// The thresholds.
    pub(in crate::route) settings: routes::SlowWarmUp,
    /// What is known of the server.
    pub(in crate::route) rate: Arc<HitRate>,
    /// The number of the command `touch`, which reads nothing, unlike the other commands of its class.
    pub(in crate::route) touch: Option<u16>,
}

/// Watches the replies of a server to reads.
#[derive(Debug)]
pub(in crate::route) struct WatchHits {
    /// What is known of the server.
    pub(in crate::route) rate: Arc<HitRate>,
    /// The number of the command `touch`.
    pub(in crate::route) touch: Option<u16>,
}

/// Does this command ask for a value? `touch`: the number of the command `touch`.
fn reads(class: Class, command: u16, touch: Option<u16>) -> bool {
    match class {
        Class::Read => true,
        Class::Touch => touch != Some(command),
        _ => false,
    }
}

impl HitRate {
    /// The share of the keys that were found; `None`: too few were asked for.
    fn hits(&self, least: u64) -> Option<f64> {
        let (hits, misses) = (self.hits.load(Relaxed), self.misses.load(Relaxed));
        let all = hits + misses;
        (all >= least).then(|| if all == 0 { 1.0 } else { hits as f64 / all as f64 })
    }

    fn note(&self, outcome: Outcome) {
        match outcome {
            outcome if outcome.is_hit() => self.hits.fetch_add(1, Relaxed),
            Outcome::NotFound => self.misses.fetch_add(1, Relaxed),
            _ => 0,
        };
    }
}

impl SlowWarmUp {
    /// The share of reads that the server gets; `None`: all, because it is warm.
    fn share(&self) -> Option<f64> {
        let hits = self.rate.hits(self.settings.min_requests).unwrap_or(1.0);
        let threshold = match self.rate.is_cold.load(Relaxed) {
            true => self.settings.disable_threshold,
            false => self.settings.enable_threshold,
        };
        let is_cold = hits < threshold;
        self.rate.is_cold.store(is_cold, Relaxed);
        is_cold.then_some(self.settings.start + self.settings.step * hits)
    }
}

impl Choose for SlowWarmUp {
    fn name(&self) -> &'static str {
        routes::SlowWarmUp::NAME
    }

    fn choose(&self, query: &Query<'_>, _: &Children<'_>, random: &mut Random) -> usize {
        let is_read = reads(query.class, query.command, self.touch);
        let goes_elsewhere = is_read && self.share().is_some_and(|share| random.fraction() > share);
        usize::from(goes_elsewhere)
    }

    fn varies(&self, query: &Query<'_>) -> bool {
        reads(query.class, query.command, self.touch)
    }

    fn looks_at_key(&self, _: Micros) -> bool {
        false
    }

    fn why(&self, _: &Query<'_>, _: &Children<'_>, _: usize) -> String {
        match self.share() {
            Some(share) => format!(
                "the server is cold and gets {:.0} % of the reads",
                share.min(1.0) * 100.0
            ),
            None => "the server is warm".into(),
        }
    }
}

impl Wrap for WatchHits {
    fn name(&self) -> &'static str {
        "watch_hits"
    }

    fn request(&self, _: &Request, _: &[u8], query: &Query<'_>, _: &mut Random) -> Wrapped {
        match reads(query.class, query.command, self.touch) {
            true => Wrapped::Watch,
            false => Wrapped::Pass,
        }
    }

    fn reply(&self, _: &Watched<'_>, answer: &Answer<'_>) -> Micros {
        self.rate.note(answer.outcome());
        Micros::ZERO
    }

    fn why(&self) -> String {
        "counts hits and misses".into()
    }
}

impl<'a> Build<'a, [&'a Route; 2]> for routes::SlowWarmUp {
    fn build(
        &'a self,
        [child, failover]: [&'a Route; 2],
        maker: &mut Maker<'_, 'a>,
    ) -> Result<NodeId, CompileError> {
        let (child, failover) = (maker.node(child)?, maker.node(failover)?);
        let rate = Arc::new(HitRate::default());
        let touch = maker.protocol.command("touch");
        let watched = WatchHits {
            rate: Arc::clone(&rate),
            touch,
        };
        let watched = maker.wrap(watched, child);
        let handle = SlowWarmUp {
            settings: *self,
            rate,
            touch,
        };
        Ok(maker.choose(handle, vec![watched, failover]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn share_of_reads_rises_with_the_hits_until_the_server_is_warm() {
        let route = SlowWarmUp {
            settings: routes::SlowWarmUp {
                min_requests: 10,
                ..routes::SlowWarmUp::default()
            },
            rate: Arc::default(),
            touch: None,
        };
        let note = |outcome, times: u32| {
            (0..times).for_each(|_| route.rate.note(outcome));
            route.share().map(|share| (share * 100.0).round())
        };
        assert_eq!(note(Outcome::NotFound, 9), None, "too few requests");
        assert_eq!(note(Outcome::NotFound, 1), Some(10.0));
        assert_eq!(note(Outcome::Timeout, 100), Some(10.0), "no misses");
        assert_eq!(note(Outcome::Found, 10), Some(60.0));
        assert_eq!(note(Outcome::Found, 60), Some(98.0), "not yet 90 %");
        assert_eq!(note(Outcome::Found, 20), None);
        assert_eq!(note(Outcome::NotFound, 10), None, "still above 70 %");
        assert_eq!(note(Outcome::NotFound, 30), Some(74.0));
    }
}
