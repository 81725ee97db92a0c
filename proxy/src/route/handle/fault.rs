//! fault: delays requests or answers errors, so that users can try how their clients bear it.

use proxima_wire::message::{Outcome, Request};

use super::Random;
use crate::{
    config::schema::Fault,
    route::tree::{Query, Wrap, Wrapped},
};

#[derive(Debug)]
pub(in crate::route) struct FaultRoute(pub(in crate::route) Fault);

impl Wrap for FaultRoute {
    fn name(&self) -> &'static str {
        "fault"
    }

    fn request(&self, _: &Request, _: &[u8], _: &Query<'_>, random: &mut Random) -> Wrapped {
        if self.0.error_rate > 0.0 && random.fraction() < self.0.error_rate {
            return Wrapped::Fail(Outcome::LocalError, "fault injected by the route".into());
        }
        match self.0.delay.as_micros() {
            0 => Wrapped::Pass,
            delay => Wrapped::Delay(u64::try_from(delay).unwrap_or(u64::MAX)),
        }
    }

    fn why(&self) -> String {
        format!("delay {:?}, errors {} %", self.0.delay, self.0.error_rate * 100.0)
    }
}
