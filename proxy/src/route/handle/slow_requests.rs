//! slow_requests: passes requests through, and has them timed. No route of the configuration has this name: it
//! stands before the first route of each listener where the configuration has slow requests kept.

use std::cell::Cell;

use proxima_wire::message::Request;

use super::Random;
use crate::{
    micros::Micros,
    route::{
        timing::Timing,
        tree::{Query, Wrap, Wrapped},
    },
};

/// Time in which requests are counted.
const WINDOW: Micros = Micros::millis(100);
/// Requests of a window that are timed. Of more, that many are chosen by chance: each costs a flight.
const TIMED: u32 = 1000;

/// What stands before the routes of one listener.
#[derive(Debug)]
pub(in crate::route) struct TimedRequests {
    timing: Timing,
    /// When this window has begun, since 1970, and requests in it.
    window: Cell<(Micros, u32)>,
}

impl TimedRequests {
    pub(in crate::route) fn new(timing: Timing) -> Self {
        Self {
            timing,
            window: Cell::default(),
        }
    }
}

impl Wrap for TimedRequests {
    fn name(&self) -> &'static str {
        "slow_requests"
    }

    fn request(&self, _: &Request, _: &[u8], query: &Query<'_>, random: &mut Random) -> Wrapped {
        let (begun, seen) = self.window.get();
        if query.unix - begun < WINDOW {
            self.window.set((begun, seen.saturating_add(1)));
        } else {
            self.timing.every.set(seen.div_ceil(TIMED).max(1));
            self.window.set((query.unix, 1));
        }
        let every = self.timing.every.get();
        match every == 1 || random.below(every as usize) == 0 {
            true => Wrapped::Watch,
            false => Wrapped::Pass,
        }
    }

    fn times(&self) -> Option<&Timing> {
        Some(&self.timing)
    }

    fn names_client(&self) -> bool {
        true
    }

    fn why(&self) -> String {
        "requests are timed".into()
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use proxima_wire::message::{Class, Request};

    use super::{TIMED, TimedRequests, Timing, WINDOW};
    use crate::{
        config::schema::{self, ShownKeys},
        members::Locality,
        micros::Micros,
        protocols::Memcache,
        random::Random,
        route::tree::{Of, Query, Wrap, Wrapped},
    };

    #[test]
    fn few_requests_are_all_timed_and_of_many_some() {
        let terms = schema::SlowRequests {
            over: Duration::from_millis(50),
            keep: 10,
            keys: ShownKeys::Hidden,
        };
        let timed = TimedRequests::new(Timing::new(3, terms, &Arc::default()));
        let mut random = Random(7);
        let mut taken = |unix: Micros, count: u32| {
            let query = Query {
                command: 0,
                class: Class::Read,
                key: b"k",
                protocol: &Memcache::PLAIN,
                locality: Locality::NONE,
                unix,
                of: Of::Nobody,
            };
            let request = Request::new(0, Class::Read, 0);
            let takes = |_: &u32| timed.request(&request, b"", &query, &mut random) == Wrapped::Watch;
            (0..count).filter(takes).count() as u32
        };
        let mut now = Micros::secs(1);
        assert_eq!(taken(now, TIMED), TIMED);
        now += WINDOW;
        assert_eq!(
            taken(now, 64 * TIMED),
            64 * TIMED,
            "it is not known yet that there are so many"
        );
        now += WINDOW;
        let many = taken(now, 64 * TIMED);
        assert!((TIMED / 2..2 * TIMED).contains(&many), "{many}");
        now += WINDOW;
        assert!(taken(now, 10) < 10);
        now += WINDOW;
        assert_eq!(taken(now, TIMED), TIMED);
    }
}
