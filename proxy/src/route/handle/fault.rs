//! fault: holds requests, then fails some of them, so that users can test their clients.

use std::time::Duration;

use proxima_wire::message::{Outcome, Request};

use super::Random;
use crate::route::tree::{Query, Wrap, Wrapped};

/// Holds each request this long.
#[derive(Debug)]
pub(in crate::route) struct Delay(pub(in crate::route) Duration);

impl Wrap for Delay {
    fn name(&self) -> &'static str {
        "fault"
    }

    fn request(&self, _: &Request, _: &[u8], _: &Query<'_>, _: &mut Random) -> Wrapped {
        Wrapped::Delay(self.0.into())
    }

    fn why(&self) -> String {
        format!("delay {:?}", self.0)
    }
}

/// Fails this share of requests.
#[derive(Debug)]
pub(in crate::route) struct Fail(pub(in crate::route) f64);

impl Wrap for Fail {
    fn name(&self) -> &'static str {
        "fault"
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
