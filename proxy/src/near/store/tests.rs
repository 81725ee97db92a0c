//! Which replies are kept, for how long, and what ends them.

use std::sync::Arc;

use proxima_wire::message::{Outcome, Reply};

use super::{Entries, Fill, Lookup, Passes, Question, Refusal};
use crate::{
    micros::Micros,
    near::{Changes, Near, RemovalReason, Rule, RuleSettings},
};

const SETTINGS: RuleSettings = RuleSettings {
    ttl: Micros::secs(10),
    jitter: 0,
    stale: Micros::ZERO,
    stale_on_error: Micros::ZERO,
    negative: Micros::secs(1),
    largest: 1 << 20,
};

struct World {
    near: Arc<Near>,
    rule: Arc<Rule>,
    changes: Changes,
    now: Micros,
}

impl World {
    fn new(settings: RuleSettings, memory: usize) -> Self {
        let near = Arc::new(Near::new(memory, [1, 2, 3, 4]));
        Self {
            changes: Changes::new(Arc::clone(&near)),
            near,
            rule: Arc::new(Rule::new("rule", 0, &settings)),
            now: Micros::secs(100),
        }
    }

    fn look(&self, key: &str, form: &str) -> (Lookup, Vec<u8>) {
        let question = Question {
            rule: &self.rule,
            key: key.as_bytes(),
            form: form.as_bytes(),
        };
        let mut out = Vec::new();
        (self.near.look(&question, self.now, &mut out, Passes::Never), out)
    }

    /// The kept reply to this question.
    fn hit(&self, key: &str, form: &str) -> Option<String> {
        match self.look(key, form) {
            (Lookup::Hit(answer, _), out) => {
                let bytes = answer.bytes.as_deref().unwrap_or(&out);
                Some(String::from_utf8(bytes.to_vec()).unwrap())
            }
            _ => None,
        }
    }

    /// The fill of the first request that misses.
    fn fill(&self, key: &str, form: &str) -> Fill {
        match self.look(key, form).0 {
            Lookup::Miss(fill) => fill,
            _ => panic!("{key} is no miss"),
        }
    }

    fn keep(&self, mut fill: Fill, value: &str) -> Result<(), Refusal> {
        let reply = Reply::new(Outcome::Found, value.len());
        fill.keep(&reply, value.as_bytes().into(), false, self.now, 0)
    }

    fn put(&self, key: &str, form: &str, value: &str) {
        self.keep(self.fill(key, form), value).unwrap();
    }
}

#[test]
fn a_reply_is_found_by_rule_key_and_form_until_its_time_is_over() {
    let mut world = World::new(SETTINGS, 1 << 20);
    world.put("a", "g", "one");
    world.put("a", "m", "two");
    assert_eq!(world.hit("a", "g").as_deref(), Some("one"));
    assert_eq!(world.hit("a", "m").as_deref(), Some("two"));
    assert_eq!(world.hit("a", "x"), None);
    assert_eq!(world.hit("b", "g"), None);
    let other = Arc::new(Rule::new("other", 1, &SETTINGS));
    let mine = std::mem::replace(&mut world.rule, other);
    assert_eq!(world.hit("a", "g"), None, "of another rule");
    world.rule = mine;
    world.now += Micros::secs(10);
    assert_eq!(world.hit("a", "g"), None, "its time is over");
}

#[test]
fn a_change_removes_its_key_in_all_forms_and_refuses_fills_that_began_before_it() {
    let world = World::new(SETTINGS, 1 << 20);
    world.put("a", "g", "one");
    world.put("a", "m", "two");
    world.put("b", "g", "other");
    let fill = world.fill("c", "g");
    let change = world.changes.of_key(b"a");
    assert!(world.hit("a", "g").is_none() && world.hit("a", "m").is_none());
    assert!(matches!(world.look("a", "g").0, Lookup::Changing));
    drop(change);
    let begun_before = world.fill("a", "g");
    drop(world.changes.of_key(b"a"));
    assert_eq!(world.keep(begun_before, "old"), Err(Refusal::Changed));
    world.put("a", "g", "new");
    assert_eq!(world.hit("a", "g").as_deref(), Some("new"));
    assert_eq!(world.hit("b", "g").as_deref(), Some("other"), "another key");
    assert_eq!(world.keep(fill, "kept"), Ok(()));
    assert_eq!(world.near.words.open(), 0);
}

#[test]
fn a_change_of_everything_ends_what_is_kept_and_fills_that_are_under_way() {
    let world = World::new(SETTINGS, 1 << 20);
    world.put("a", "g", "one");
    let fill = world.fill("b", "g");
    let change = world.changes.of_everything();
    assert_eq!(world.hit("a", "g"), None);
    assert!(matches!(world.look("a", "g").0, Lookup::Changing));
    assert_eq!(world.keep(fill, "old"), Err(Refusal::Changed));
    drop(change);
    assert_eq!(world.hit("a", "g"), None, "it is older than the change");
    world.put("a", "g", "two");
    assert_eq!(world.hit("a", "g").as_deref(), Some("two"));
    assert_eq!(world.near.words.open(), 0);
}

#[test]
fn one_of_many_fetches_and_after_a_change_somebody_fetches_anew() {
    let world = World::new(SETTINGS, 1 << 20);
    let first = world.fill("a", "g");
    assert!(matches!(world.look("a", "g").0, Lookup::Filling));
    assert!(first.may_be_joined());
    let change = world.changes.of_key(b"a");
    assert!(!first.may_be_joined());
    drop(change);
    assert!(!first.may_be_joined(), "it may bring what was there before");
    let second = world.fill("a", "g");
    drop(first);
    assert!(
        matches!(world.look("a", "g").0, Lookup::Filling),
        "the second one goes on"
    );
    drop(second);
    assert!(
        matches!(world.look("a", "g").0, Lookup::Miss(_)),
        "nobody fetches"
    );
}

#[test]
fn an_old_reply_is_given_while_one_renews_it() {
    let settings = RuleSettings {
        stale: Micros::secs(5),
        ..SETTINGS
    };
    let mut world = World::new(settings, 1 << 20);
    world.put("a", "g", "one");
    world.now += Micros::secs(12);
    let (Lookup::Hit(answer, Some(fill)), _) = world.look("a", "g") else {
        panic!("nobody renews it");
    };
    assert!(answer.is_stale && answer.age == Micros::secs(12));
    assert!(
        matches!(world.look("a", "g").0, Lookup::Hit(_, None)),
        "one is enough"
    );
    world.keep(*fill, "two").unwrap();
    assert_eq!(world.hit("a", "g").as_deref(), Some("two"));
    world.now += Micros::secs(15);
    assert_eq!(world.hit("a", "g"), None);
}

#[test]
fn settings_hold_at_once_for_what_is_kept_already() {
    let mut world = World::new(SETTINGS, 1 << 20);
    world.put("a", "g", "one");
    world.now += Micros::secs(5);
    let set = |ttl| {
        world.rule.set(&RuleSettings {
            ttl: Micros::secs(ttl),
            ..SETTINGS
        });
    };
    set(60);
    world.now += Micros::secs(20);
    assert_eq!(world.hit("a", "g").as_deref(), Some("one"));
    set(4);
    assert_eq!(world.hit("a", "g"), None);
    set(0);
    let entries = Entries(&world.near);
    entries.sweep(world.now);
    assert_eq!(world.near.store.usage().keys, 0, "off frees");
}

#[test]
fn a_reply_stands_for_an_error_for_as_long_as_the_rule_says() {
    let settings = RuleSettings {
        stale_on_error: Micros::secs(100),
        ..SETTINGS
    };
    let mut world = World::new(settings, 1 << 20);
    world.put("a", "g", "one");
    world.now += Micros::secs(50);
    assert_eq!(world.hit("a", "g"), None);
    let rule = Arc::clone(&world.rule);
    let question = Question {
        rule: &rule,
        key: b"a",
        form: b"g",
    };
    let stands = |now| {
        world
            .near
            .look_on_error(&question, now)
            .map(|(_, bytes)| bytes.to_vec())
    };
    assert_eq!(stands(world.now).as_deref(), Some(&b"one"[..]));
    assert_eq!(stands(world.now + Micros::secs(70)), None);
    drop(world.changes.of_key(b"a"));
    assert_eq!(stands(world.now), None, "a change ends it all the same");
}

#[test]
fn misses_have_a_time_of_their_own() {
    let mut world = World::new(SETTINGS, 1 << 20);
    let mut fill = world.fill("a", "g");
    fill.keep(
        &Reply::new(Outcome::NotFound, 5),
        b"END\r\n"[..].into(),
        true,
        world.now,
        0,
    )
    .unwrap();
    assert_eq!(world.hit("a", "g").as_deref(), Some("END\r\n"));
    world.now += Micros::secs(1);
    assert_eq!(world.hit("a", "g"), None);
}

#[test]
fn a_reply_that_cannot_be_kept_is_known_and_nobody_waits_for_it() {
    let mut world = World::new(SETTINGS, 1 << 20);
    world.fill("a", "g").keep_none(world.now, 0);
    assert!(matches!(world.look("a", "g").0, Lookup::Unkept));
    world.now += Micros::secs(10);
    assert!(matches!(world.look("a", "g").0, Lookup::Miss(_)));
}

#[test]
fn the_limit_holds_for_any_keys_and_sizes_and_nothing_is_left_of_what_is_gone() {
    let world = World::new(SETTINGS, 4 << 20);
    let mut random = crate::random::Random(7);
    for round in 0..30_000 {
        let key = format!("key-{}", random.below(5_000));
        let size = match round % 20 {
            0 => random.below(60_000),
            _ => random.below(600),
        };
        if let Lookup::Miss(fill) = world.look(&key, "g").0 {
            let _ = world.keep(fill, &"x".repeat(size));
        }
        if round % 100 == 0 {
            let bytes = world.near.store.usage().bytes;
            assert!(bytes <= 4 << 20, "round {round}: {bytes}");
        }
        if round % 7 == 0 {
            drop(
                world
                    .changes
                    .of_key(format!("key-{}", random.below(5_000)).as_bytes()),
            );
        }
    }
    let (usage, of_rule) = (world.near.store.usage(), world.near.store.usage_of(&world.rule));
    let [evicted, changed] = [RemovalReason::Evicted, RemovalReason::Changed].map(|why| of_rule.gone(why));
    assert!(
        evicted > 0 && usage.keys > 0 && changed > 0,
        "{usage:?} {of_rule:?}"
    );
    world.rule.drop_all();
    Entries(&world.near).sweep(world.now);
    let usage = world.near.store.usage();
    assert_eq!((usage.keys, world.near.words.kept()), (0, 0), "{usage:?}");
}

#[test]
fn dropping_a_key_a_prefix_or_a_rule_drops_that_and_refuses_fills_under_way() {
    let world = World::new(SETTINGS, 1 << 20);
    let entries = Entries(&world.near);
    for key in ["a:1", "a:2", "b:1"] {
        world.put(key, "g", key);
    }
    let fill = world.fill("a:3", "g");
    assert_eq!(entries.drop_prefix(&world.rule, b"a:"), 2);
    assert_eq!(world.keep(fill, "x"), Err(Refusal::Changed));
    assert!(world.hit("a:1", "g").is_none() && world.hit("b:1", "g").is_some());
    let fill = world.fill("c", "g");
    assert_eq!(entries.drop_key(Some(&world.rule), b"b:1"), 1);
    assert_eq!(entries.drop_key(Some(&world.rule), b"b:1"), 0);
    world.keep(fill, "c").unwrap();
    let fill = world.fill("d", "g");
    world.rule.drop_all();
    assert_eq!(world.hit("c", "g"), None);
    assert_eq!(world.keep(fill, "d"), Err(Refusal::Off));
}

#[test]
fn a_large_reply_lives_as_long_as_somebody_sends_it() {
    let world = World::new(SETTINGS, 16 << 20);
    let value = "v".repeat(200_000);
    world.put("a", "g", &value);
    let (Lookup::Hit(answer, None), out) = world.look("a", "g") else {
        panic!("it is not kept");
    };
    assert!(out.is_empty());
    drop(world.changes.of_key(b"a"));
    assert_eq!(world.hit("a", "g"), None);
    assert_eq!(answer.bytes.unwrap().len(), 200_000);
}

#[test]
fn the_most_asked_keys_are_told_with_their_hits() {
    let world = World::new(SETTINGS, 1 << 20);
    for (key, hits) in [("a", 3), ("b", 9), ("c", 0), ("d", 5)] {
        world.put(key, "g", "x");
        (0..hits).for_each(|_| drop(world.hit(key, "g")));
    }
    let top = Entries(&world.near).top(None, 2, world.now);
    let told: Vec<_> = top.iter().map(|hot| (&*hot.key, hot.shown.hits)).collect();
    assert_eq!(told, [(&b"b"[..], 9), (b"d", 5)]);
}

#[test]
fn changed_settings_hold_for_what_is_kept_already() {
    let mut world = World::new(SETTINGS, 1 << 20);
    let set = |world: &World, change: fn(&mut RuleSettings)| {
        let mut settings = world.rule.settings();
        change(&mut settings);
        world.rule.set(&settings);
    };
    world.put("a", "g", "one");
    world.put("large", "g", &"x".repeat(1000));
    world.fill("known", "g").keep_none(world.now, 0);
    set(&world, |settings| settings.ttl = Micros::secs(20));
    world.now += Micros::secs(15);
    assert!(world.hit("a", "g").is_some(), "prolonged");
    set(&world, |settings| settings.largest = 100);
    assert_eq!(Entries(&world.near).drop_unfit(&world.rule), 2);
    assert!(world.hit("a", "g").is_some() && world.hit("large", "g").is_none());
    assert!(
        matches!(world.look("known", "g").0, Lookup::Miss(_)),
        "it is asked for anew"
    );
    set(&world, |settings| settings.ttl = Micros::secs(14));
    assert_eq!(world.hit("a", "g"), None, "shortened");
}

#[test]
fn nobody_waits_for_a_fill_that_began_before_a_drop() {
    let world = World::new(SETTINGS, 1 << 20);
    let fill = world.fill("a:1", "g");
    assert!(matches!(world.look("a:1", "g").0, Lookup::Filling) && fill.may_be_joined());
    Entries(&world.near).drop_prefix(&world.rule, b"a:");
    assert!(!fill.may_be_joined());
    let next = world.fill("a:1", "g");
    assert_eq!(world.keep(fill, "old"), Err(Refusal::Changed));
    world.keep(next, "new").unwrap();
    assert_eq!(world.hit("a:1", "g").as_deref(), Some("new"));
}

#[test]
fn what_went_is_counted_by_rule_and_reason() {
    let mut world = World::new(SETTINGS, 1 << 20);
    for key in ["a", "b", "c", "d", "e"] {
        world.put(key, "g", "value");
        world.put(key, "m", "value");
    }
    let usage = |world: &World| world.near.store.usage_of(&world.rule);
    assert_eq!(usage(&world).entries, 10);
    drop(world.changes.of_key(b"a"));
    Entries(&world.near).drop_key(None, b"b");
    Entries(&world.near).drop_prefix(&world.rule, b"c");
    world.put("a", "g", "again");
    assert!(world.hit("a", "g").is_some());
    drop(world.changes.of_everything());
    Entries(&world.near).sweep(world.now);
    world.put("a", "g", "third");
    world.now += Micros::secs(10);
    Entries(&world.near).sweep(world.now);
    world.put("a", "g", "fourth");
    world.put("b", "g", "fifth");
    world.near.store.set_memory(0);
    Entries(&world.near).sweep(world.now);
    let usage = usage(&world);
    let gone = RemovalReason::ALL.map(|why| usage.gone(why));
    assert_eq!(
        (usage.entries, usage.bytes),
        (0, 0),
        "a smaller memory evicts at once"
    );
    // In the order of `RemovalReason::ALL`: changed, flushed, dropped, expired, evicted.
    assert_eq!(gone, [2, 5, 4, 1, 2]);
    assert_eq!(world.near.store.usage().bytes, 0);
}

#[test]
fn much_that_was_freed_is_told_once() {
    let world = World::new(SETTINGS, 64 << 20);
    let value = "v".repeat(1 << 19);
    for key in ["a", "b", "c"] {
        let fill = world.fill(key, "g");
        world.keep(fill, &value).unwrap();
    }
    assert!(!world.near.store.has_freed_much());
    for key in ["a", "b"] {
        drop(world.changes.of_key(key.as_bytes()));
    }
    assert!(world.near.store.has_freed_much());
    assert!(!world.near.store.has_freed_much(), "it was told");
    drop(world.changes.of_key(b"c"));
    assert!(!world.near.store.has_freed_much(), "half a MiB is little");
}
