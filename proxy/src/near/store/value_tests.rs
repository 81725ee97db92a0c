//! Values of origins in the store: their own times, confirmations, failures beside them, and drops.

use std::{sync::Arc, time::Duration};

use hyper::header::HeaderMap;
use proxima_wire::message::Outcome;

use super::{Bytes, Fill, Lookup, Passes, Question, Refusal, SMALL};
use crate::{
    micros::Micros,
    near::{Near, Rule, RuleSettings, Terms, VALUE, freshness},
};

const SETTINGS: RuleSettings = RuleSettings {
    ttl: Micros::secs(10),
    jitter: 0,
    stale: Micros::secs(20),
    stale_on_error: Micros::secs(30),
    negative: Micros::secs(5),
    largest: 1 << 20,
};

struct World {
    near: Arc<Near>,
    rule: Arc<Rule>,
    now: Micros,
}

impl World {
    fn new() -> Self {
        Self {
            near: Arc::new(Near::new(1 << 24, [1, 2, 3, 4])),
            rule: Arc::new(Rule::new("rule", 0, &SETTINGS)),
            now: Micros::secs(100),
        }
    }

    fn question(&self) -> Question<'_> {
        Question {
            rule: &self.rule,
            key: b"a",
            form: VALUE,
        }
    }

    fn look(&self) -> (Lookup, Vec<u8>) {
        let mut out = Vec::new();
        (
            self.near
                .look(&self.question(), self.now, &mut out, Passes::Never),
            out,
        )
    }

    fn fill(&self) -> Fill {
        match self.look().0 {
            Lookup::Miss(fill) => fill,
            Lookup::Hit(_, Some(fill)) => *fill,
            _ => panic!("nothing is to be fetched"),
        }
    }

    /// The value that a reader gets, and whether it is old.
    fn read(&self) -> Option<(Vec<u8>, bool)> {
        match self.look() {
            (Lookup::Hit(answer, _), out) => {
                let bytes = answer.bytes.as_deref().unwrap_or(&out);
                Some((bytes.to_vec(), answer.is_stale))
            }
            _ => None,
        }
    }

    fn keep(&self, value: Option<&[u8]>, terms: Terms) -> Result<(), Refusal> {
        self.fill().keep_value(value.map(Bytes::from), terms, self.now, 0)
    }

    fn drop_value(&self) -> bool {
        self.near.drop_value([&self.rule].into_iter(), b"a", self.now)
    }
}

fn terms(fields: &[(&'static str, &'static str)]) -> Terms {
    let mut map = HeaderMap::new();
    for (name, value) in fields {
        map.append(*name, value.parse().unwrap());
    }
    freshness(&map, None, Duration::from_secs(1000), Duration::ZERO).unwrap()
}

#[test]
fn an_origin_shortens_the_time_of_its_value_and_never_lengthens_it() {
    for (control, fresh, stale) in [
        ("public", 10, 30),
        ("max-age=3", 3, 23),
        ("max-age=3600", 10, 30),
        ("max-age=3, must-revalidate", 3, 3),
        ("must-revalidate", 10, 10),
        ("max-age=0", 0, 20),
        ("no-cache", 0, 0),
    ] {
        let mut world = World::new();
        world
            .keep(Some(b"v"), terms(&[("cache-control", control)]))
            .unwrap();
        let begin = world.now;
        for secs in 0..40 {
            world.now = begin + Micros::secs(secs);
            let expected = match secs {
                _ if secs < fresh => Some((b"v".to_vec(), false)),
                _ if secs < stale => Some((b"v".to_vec(), true)),
                _ => None,
            };
            assert_eq!(world.read(), expected, "{control} after {secs} s");
        }
    }
}

#[test]
fn a_value_that_can_be_confirmed_is_renewed_without_moving_its_bytes() {
    for size in [1, 2 * SMALL] {
        confirm_a_value_of(size);
    }
}

fn confirm_a_value_of(size: usize) {
    let mut world = World::new();
    let value = vec![b'v'; size];
    world.keep(Some(&value), terms(&[("etag", "\"1\"")])).unwrap();
    world.now += Micros::secs(60);
    assert_eq!(world.read(), None);
    let old = world.near.old(&world.question()).unwrap();
    assert_eq!((&*old.bytes, &*old.validator.etag), (&value[..], &b"\"1\""[..]));
    let confirmed = freshness(
        &HeaderMap::new(),
        Some(&old.validator),
        Duration::ZERO,
        Duration::ZERO,
    );
    let kept = world
        .fill()
        .keep_value(Some(Bytes::Shared(&old.bytes)), confirmed.unwrap(), world.now, 0);
    assert_eq!(kept, Ok(()));
    assert!(world.read() == Some((value, false)), "{size}");
    let again = world.near.old(&world.question()).unwrap();
    // A small value lies in a block, and each request for it gets a copy.
    assert!(size <= SMALL || Arc::ptr_eq(&old.bytes, &again.bytes));
    // Nothing confirms what was dropped.
    assert!(world.drop_value());
    assert!(world.near.old(&world.question()).is_none());
}

#[test]
fn a_failure_is_kept_for_a_second_beside_the_value_and_ends_with_the_next_one() {
    let mut world = World::new();
    world.keep(Some(b"v"), terms(&[])).unwrap();
    world.now += Micros::secs(35);
    assert_eq!(world.read(), None);
    world
        .fill()
        .keep_failure(Outcome::RemoteError, "status 500", world.now);
    let failure = world.near.failure(&world.question(), world.now).unwrap();
    assert_eq!(
        (failure.outcome, &*failure.text),
        (Outcome::RemoteError, "status 500")
    );
    let (_, old) = world.near.look_on_error(&world.question(), world.now).unwrap();
    assert_eq!(&*old, b"v");
    let later = world.now + Micros::secs(1);
    assert_eq!(world.near.failure(&world.question(), later), None);
    world.keep(Some(b"w"), terms(&[])).unwrap();
    assert_eq!(world.near.failure(&world.question(), world.now), None);
    assert_eq!(world.read(), Some((b"w".to_vec(), false)));
}

#[test]
fn a_drop_tells_what_readers_would_have_got_and_refuses_fills() {
    let mut world = World::new();
    assert!(!world.drop_value());
    world.keep(None, terms(&[])).unwrap();
    assert!(!world.drop_value(), "a miss is no value");
    world.fill().keep_failure(Outcome::Timeout, "late", world.now);
    assert!(!world.drop_value(), "a failure is no value");
    assert_eq!(world.near.failure(&world.question(), world.now), None);
    world.keep(Some(b"v"), terms(&[("etag", "\"1\"")])).unwrap();
    world.now += Micros::secs(60);
    assert!(!world.drop_value(), "nobody is given it any more");
    world.keep(Some(b"v"), terms(&[])).unwrap();
    world.now += Micros::secs(15);
    assert!(world.drop_value(), "it is old, and still given");
    let mut fill = world.fill();
    assert!(!world.drop_value());
    assert_eq!(
        fill.keep_value(Some(b"old"[..].into()), terms(&[]), world.now, 0),
        Err(Refusal::Changed)
    );
    assert_eq!((world.read(), world.near.words.open()), (None, 0));
    world.keep(Some(b"v"), terms(&[])).unwrap();
    let other = Arc::new(Rule::new("other", 1, &SETTINGS));
    assert!(
        !world.near.drop_value([&other].into_iter(), b"a", world.now),
        "another rule's"
    );
    assert_eq!(world.read(), None);
}

#[test]
fn what_the_origin_replaces_by_something_unkept_is_forgotten() {
    let world = World::new();
    world.keep(Some(b"v"), terms(&[])).unwrap();
    world.near.forget(&world.question());
    assert_eq!(world.read(), None);
    assert_eq!(world.near.store.usage().keys, 0);
}
