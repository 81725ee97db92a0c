//! slow_requests: passes requests through, and has them timed. No route of the configuration has this name: it
//! stands before the first route of each listener where the configuration has slow requests kept.

use std::{
    cell::Cell,
    hash::{BuildHasher, RandomState},
    sync::{Arc, OnceLock},
};

use proxima_wire::message::Request;

use super::Random;
use crate::{
    config::schema::{self, ShownKeys},
    micros::Micros,
    route::{
        slow_requests::{SlowRequest, SlowRequests},
        tree::{Query, Wrap, Wrapped},
    },
};

/// Time in which requests are counted.
const WINDOW: Micros = Micros::millis(100);
/// Requests of a window that are timed. Of more, that many are chosen by chance: each costs a flight.
const TIMED: u32 = 1000;

/// What stands before the routes of one listener.
#[derive(Debug)]
pub struct TimedRequests {
    listener: u16,
    terms: schema::SlowRequests,
    to: Arc<SlowRequests>,
    /// When this window has begun, since 1970, and requests in it.
    window: Cell<(Micros, u32)>,
    /// One request in so many is timed.
    every: Cell<u32>,
}

impl TimedRequests {
    pub(in crate::route) fn new(listener: u16, terms: schema::SlowRequests, to: &Arc<SlowRequests>) -> Self {
        Self {
            listener,
            terms,
            to: Arc::clone(to),
            window: Cell::default(),
            every: Cell::new(1),
        }
    }

    /// Is a request slow that has taken so long?
    pub(in crate::route) fn is_slow(&self, took: Micros) -> bool {
        took >= Micros::from(self.terms.over)
    }

    /// The key as people are told it.
    pub(in crate::route) fn shown(&self, key: &[u8]) -> Option<String> {
        if key.is_empty() {
            return None;
        }
        match self.terms.keys {
            ShownKeys::Hidden => None,
            ShownKeys::Hashed => Some(hashed(key)),
            ShownKeys::Plain => Some(key.escape_ascii().to_string()),
        }
    }

    /// Keeps a request of this listener, which stands for others that were not timed.
    pub(in crate::route) fn put(&self, request: SlowRequest) {
        let (listener, weight) = (self.listener, self.every.get());
        let request = SlowRequest {
            listener,
            weight,
            ..request
        };
        self.to.put(request, self.terms.keep);
    }
}

/// A word for a key, by a hash of which nobody knows the secret: a short key cannot be found by trying.
fn hashed(key: &[u8]) -> String {
    static SECRET: OnceLock<RandomState> = OnceLock::new();
    format!("#{:016x}", SECRET.get_or_init(RandomState::new).hash_one(key))
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
            self.every.set(seen.div_ceil(TIMED).max(1));
            self.window.set((query.unix, 1));
        }
        let every = self.every.get();
        match every == 1 || random.below(every as usize) == 0 {
            true => Wrapped::Watch,
            false => Wrapped::Pass,
        }
    }

    fn times(&self) -> Option<&TimedRequests> {
        Some(self)
    }

    fn names_client(&self) -> bool {
        true
    }

    fn why(&self) -> String {
        format!(
            "a request that takes {:?} or longer is kept for operators",
            self.terms.over
        )
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use proxima_wire::message::{Class, Request};

    use super::{TIMED, TimedRequests, WINDOW};
    use crate::{
        config::schema::{self, ShownKeys},
        members::Locality,
        micros::Micros,
        protocols::Memcache,
        random::Random,
        route::tree::{Of, Query, Wrap, Wrapped},
    };

    fn timed(keys: ShownKeys) -> TimedRequests {
        let terms = schema::SlowRequests {
            over: Duration::from_millis(50),
            keep: 10,
            keys,
        };
        TimedRequests::new(3, terms, &Arc::default())
    }

    #[test]
    fn keys_are_told_as_the_configuration_says() {
        assert_eq!(timed(ShownKeys::Hidden).shown(b"k"), None);
        assert_eq!(timed(ShownKeys::Plain).shown(b"k\n").unwrap(), "k\\n");
        let hashed = timed(ShownKeys::Hashed);
        assert_eq!(hashed.shown(b"k"), hashed.shown(b"k"));
        assert_ne!(hashed.shown(b"k"), hashed.shown(b"l"));
        assert_eq!(hashed.shown(b"k").unwrap().len(), 17);
        assert_eq!(timed(ShownKeys::Plain).shown(b""), None);
    }

    #[test]
    fn few_requests_are_all_timed_and_of_many_some() {
        let (timed, mut random) = (timed(ShownKeys::Hidden), Random(7));
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
