//! rate_limit: reads, writes and deletes up to a rate of their own go to the target, the rest to another
//! route. Child 0 is the target, and child 1 gets the rest. Each worker counts by itself.

use std::cell::Cell;

use proxima_wire::message::Class;

use super::Random;
use crate::{
    config::{
        routes::{self, Spec},
        schema::{Rate, Route},
    },
    micros::Micros,
    route::{
        compile::{Build, CompileError, Maker},
        tree::{Children, Choose, NodeId, Query},
    },
};

/// A bucket of tokens that fills with time. It is full at the start.
#[derive(Debug)]
pub(in crate::route) struct Bucket {
    rate: Rate,
    level: Cell<f64>,
    /// When the level was right; `None`: never yet.
    since: Cell<Option<Micros>>,
}

impl Bucket {
    /// A full bucket.
    pub(in crate::route) fn new(rate: Rate) -> Self {
        Self {
            level: Cell::new(rate.burst),
            since: Cell::new(None),
            rate,
        }
    }

    /// Takes a token, if there is one.
    fn take(&self, now: Micros) -> bool {
        let passed = self.since.get().map_or(0, |since| (now - since).0);
        self.since.set(Some(now));
        let earned = passed as f64 / 1_000_000.0 * self.rate.per_second;
        let level = (self.level.get() + earned).min(self.rate.burst);
        let enough = level >= 1.0;
        self.level.set(if enough { level - 1.0 } else { level });
        enough
    }
}

/// The route `rate_limit`.
#[derive(Debug)]
pub(in crate::route) struct RateLimit {
    /// The limit of reads; `None`: no limit.
    pub(in crate::route) gets: Option<Bucket>,
    /// The limit of writes.
    pub(in crate::route) sets: Option<Bucket>,
    /// The limit of deletes.
    pub(in crate::route) deletes: Option<Bucket>,
    /// The number of the command `touch`, which reads nothing, unlike the other commands of its class.
    pub(in crate::route) touch: Option<u16>,
}

impl RateLimit {
    fn bucket(&self, query: &Query<'_>) -> Option<&Bucket> {
        match query.class {
            Class::Read => self.gets.as_ref(),
            Class::Touch if self.touch != Some(query.command) => self.gets.as_ref(),
            Class::Write => self.sets.as_ref(),
            Class::Delete => self.deletes.as_ref(),
            _ => None,
        }
    }
}

impl Choose for RateLimit {
    fn name(&self) -> &'static str {
        routes::RateLimit::NAME
    }

    fn choose(&self, query: &Query<'_>, _: &Children<'_>, _: &mut Random) -> usize {
        let over = self.bucket(query).is_some_and(|bucket| !bucket.take(query.unix));
        usize::from(over)
    }

    fn varies(&self, query: &Query<'_>) -> bool {
        self.bucket(query).is_some()
    }

    fn looks_at_key(&self, _: Micros) -> bool {
        false
    }

    fn why(&self, query: &Query<'_>, _: &Children<'_>, chosen: usize) -> String {
        match (self.bucket(query), chosen) {
            (None, _) => "no limit for this command".into(),
            (Some(bucket), 0) => format!("within {} a second", bucket.rate.per_second),
            (Some(bucket), _) => format!("over {} a second", bucket.rate.per_second),
        }
    }
}

impl<'a> Build<'a, [&'a Route; 2]> for routes::RateLimit {
    fn build(
        &'a self,
        [child, fallback]: [&'a Route; 2],
        maker: &mut Maker<'_, 'a>,
    ) -> Result<NodeId, CompileError> {
        let (child, fallback) = (maker.node(child)?, maker.node(fallback)?);
        let bucket = |rate: Option<Rate>| rate.map(Bucket::new);
        let handle = RateLimit {
            gets: bucket(self.gets),
            sets: bucket(self.sets),
            deletes: bucket(self.deletes),
            touch: maker.protocol.command("touch"),
        };
        Ok(maker.choose(handle, vec![child, fallback]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_gives_its_burst_at_once_and_its_rate_from_then_on() {
        let bucket = Bucket::new(Rate {
            per_second: 10.0,
            burst: 3.0,
        });
        let mut given = |millis: u64| {
            let now = Micros::millis(millis);
            (0..10).filter(|_| bucket.take(now)).count()
        };
        assert_eq!([0, 50, 100, 1100, 61_100].map(&mut given), [3, 0, 1, 3, 3]);
    }
}
