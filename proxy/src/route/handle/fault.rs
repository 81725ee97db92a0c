//! fault: holds requests, then fails some of them, so that users can test their clients.

use std::time::Duration;

use proxima_wire::message::{Outcome, Request};

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
        tree::{NodeId, Query, Watched, Wrap, Wrapped},
    },
};

/// Holds each request this long.
#[derive(Debug)]
pub(in crate::route) struct Delay(pub(in crate::route) Duration);

impl Wrap for Delay {
    fn name(&self) -> &'static str {
        routes::Fault::NAME
    }

    fn request(&self, _: &Request, _: &[u8], _: &Query<'_>, _: &mut Random) -> Wrapped {
        Wrapped::Delay(self.0.into())
    }

    fn may_hold(&self) -> bool {
        true
    }

    fn why(&self) -> String {
        format!("delay {:?}", self.0)
    }
}

/// Holds each reply this long.
#[derive(Debug)]
pub(in crate::route) struct After(pub(in crate::route) Duration);

impl Wrap for After {
    fn name(&self) -> &'static str {
        routes::Fault::NAME
    }

    fn request(&self, _: &Request, _: &[u8], _: &Query<'_>, _: &mut Random) -> Wrapped {
        Wrapped::Watch
    }

    fn reply(&self, _: &Watched<'_>, _: &Answer<'_>) -> Micros {
        self.0.into()
    }

    fn why(&self) -> String {
        format!("delay {:?} behind the reply", self.0)
    }
}

/// Holds each reply until so much time has passed since the request.
#[derive(Debug)]
pub(in crate::route) struct Total {
    /// Shares of the requests, ascending, each with its time. Requests beyond the last share have the last
    /// time.
    pub(in crate::route) shares: Vec<(f64, Duration)>,
}

impl Total {
    fn span(&self, drawn: f64) -> Duration {
        let found = self.shares.iter().find(|(share, _)| drawn < *share);
        found
            .or(self.shares.last())
            .map_or(Duration::ZERO, |(_, span)| *span)
    }
}

impl Wrap for Total {
    fn name(&self) -> &'static str {
        routes::Fault::NAME
    }

    fn request(&self, _: &Request, _: &[u8], _: &Query<'_>, random: &mut Random) -> Wrapped {
        Wrapped::Pace(self.span(random.fraction()).into())
    }

    fn why(&self) -> String {
        let shares = self.shares.iter();
        let shares: Vec<String> = shares
            .map(|(share, span)| format!("{span:?} up to {} %", share * 100.0))
            .collect();
        format!("in all {}", shares.join(", "))
    }
}

/// Fails this share of requests.
#[derive(Debug)]
pub(in crate::route) struct Fail(pub(in crate::route) f64);

impl Wrap for Fail {
    fn name(&self) -> &'static str {
        routes::Fault::NAME
    }

    fn request(&self, _: &Request, _: &[u8], _: &Query<'_>, random: &mut Random) -> Wrapped {
        if random.fraction() < self.0 {
            Wrapped::Fail(Outcome::LocalError, "fault injected by the route".into())
        } else {
            Wrapped::Pass
        }
    }

    fn why(&self) -> String {
        format!("errors {} %", self.0 * 100.0)
    }
}

impl<'a> Build<'a, &'a Route> for routes::Fault {
    fn build(&'a self, child: &'a Route, maker: &mut Maker<'_, 'a>) -> Result<NodeId, CompileError> {
        let mut node = maker.node(child)?;
        if self.error_rate > 0.0 {
            node = maker.wrap(Fail(self.error_rate), node);
        }
        // The delays are around the errors, so that requests that will fail are held as well.
        if !self.delay.is_zero() {
            node = maker.wrap(Delay(self.delay), node);
        }
        if !self.delay_after.is_zero() {
            node = maker.wrap(After(self.delay_after), node);
        }
        if !self.total.is_empty() {
            let shares = self.total.clone();
            node = maker.wrap(Total { shares }, node);
        }
        Ok(node)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_share_of_requests_takes_its_time() {
        let millis = Duration::from_millis;
        let total = Total {
            shares: vec![(0.5, millis(10)), (0.99, millis(100))],
        };
        for (drawn, span) in [(0.0, 10), (0.49, 10), (0.5, 100), (0.98, 100), (0.995, 100)] {
            assert_eq!(total.span(drawn), millis(span), "{drawn}");
        }
        assert_eq!(Total { shares: Vec::new() }.span(0.5), Duration::ZERO);
    }
}
