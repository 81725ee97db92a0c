//! Which replies one shard keeps, and the order in which they go.

use std::sync::Arc;

use proxima_wire::message::{Outcome, Reply};

use super::{Shard, ShardLookup};
use crate::{
    micros::Micros,
    near::{
        KeyHash, Note, Rule, RuleSettings, Words,
        store::{
            Bytes, Question, Refusal, RemovalReason, Total, blocks::FreeBlockBudget, candidate::Candidate,
            entry::EntryKind,
        },
    },
};

const NOW: Micros = Micros::secs(100);

struct World {
    shard: Shard,
    words: Arc<Words>,
    rule: Arc<Rule>,
}

/// The hash of a test's key.
fn hash(number: u64) -> KeyHash {
    KeyHash(number.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

fn question<'a>(rule: &'a Arc<Rule>, key: &'a str, form: &'a str) -> Question<'a> {
    Question {
        rule,
        key: key.as_bytes(),
        form: form.as_bytes(),
    }
}

impl World {
    fn new() -> Self {
        let settings = RuleSettings {
            ttl: Micros::secs(10),
            jitter: 0,
            stale: Micros::ZERO,
            stale_on_error: Micros::ZERO,
            negative: Micros::ZERO,
            largest: 1 << 20,
        };
        let (words, share) = (Arc::<Words>::default(), Arc::<FreeBlockBudget>::default());
        share.take(1 << 20);
        Self {
            shard: Shard::new(Arc::clone(&words), share, Arc::<Total>::default()),
            words,
            rule: Arc::new(Rule::new("rule", 0, &settings)),
        }
    }

    /// Keeps a reply of a hundred of these bytes, with this note.
    fn keep(
        &mut self,
        hash: KeyHash,
        (key, form): (&str, &str),
        byte: u8,
        note: Note,
    ) -> Result<(), Refusal> {
        let (rule, bytes) = (Arc::clone(&self.rule), [byte; 100]);
        let candidate = Candidate::new(
            (question(&rule, key, form), rule.number()),
            Reply::new(Outcome::Found, 100),
            EntryKind::Reply,
            (Bytes::Alone(&bytes), None),
            (NOW, 0),
        );
        self.shard.insert(hash, candidate, note)
    }

    fn put_with(&mut self, hash: KeyHash, key: &str, form: &str) {
        let note = self.words.note(hash).unwrap();
        self.keep(hash, (key, form), b'v', note).unwrap();
    }

    fn has_with(&mut self, hash: KeyHash, key: &str, form: &str) -> bool {
        let rule = Arc::clone(&self.rule);
        let question = question(&rule, key, form);
        let found = self.shard.look(hash, &question, NOW, &mut Vec::new());
        matches!(found, ShardLookup::Answer(_))
    }

    fn put(&mut self, number: u64) {
        self.put_with(hash(number), &number.to_string(), "g");
    }

    fn has(&mut self, number: u64) -> bool {
        self.has_with(hash(number), &number.to_string(), "g")
    }

    fn evict(&mut self) {
        self.shard.evict(NOW);
        self.shard.tell();
    }

    fn keys(&self) -> usize {
        self.shard.keys()
    }
}

#[test]
fn what_nobody_asks_for_again_goes_in_the_order_in_which_it_came() {
    let mut world = World::new();
    (0..20).for_each(|number| world.put(number));
    (0..15).for_each(|_| world.evict());
    let left: Vec<_> = (0..20).filter(|&number| world.has(number)).collect();
    assert_eq!(left, [15, 16, 17, 18, 19]);
}

#[test]
fn what_is_asked_for_again_outlives_any_number_of_keys_that_are_asked_for_once() {
    let mut world = World::new();
    (0..100).for_each(|number| world.put(number));
    (0..20).for_each(|hot| assert!(world.has(hot)));
    for scanned in 1000..11_000 {
        // Each of twenty hot keys is asked for once in twenty others, which are not asked for again.
        let hot = scanned % 20;
        assert!(world.has(hot), "{hot} went before {scanned}");
        world.put(scanned);
        world.evict();
    }
    assert_eq!((world.keys(), world.words.kept()), (100, 100));
}

#[test]
fn key_that_comes_back_soon_after_it_went_stays_longer_than_those_that_came_with_it() {
    let mut world = World::new();
    (0..32).for_each(|number| world.put(number));
    world.evict();
    assert!(!world.has(0));
    world.put(0);
    (40..60).for_each(|number| world.put(number));
    (0..40).for_each(|_| world.evict());
    assert!(world.has(0) && !world.has(40));
}

#[test]
fn keys_with_one_hash_displace_each_other_and_neither_gets_the_others_reply() {
    let mut world = World::new();
    let (one, same) = (KeyHash(7), KeyHash(7));
    let similar = KeyHash(7 | 1 << 60);
    world.put_with(one, "one", "g");
    world.put_with(one, "one", "m");
    assert!(!world.has_with(same, "two", "g") && world.has_with(one, "one", "m"));
    for (hash, key) in [(same, "two"), (similar, "three"), (one, "one")] {
        world.put_with(hash, key, "g");
        assert!(world.has_with(hash, key, "g"));
        assert_eq!((world.keys(), world.words.kept()), (1, 1), "{key}");
    }
    assert!(!world.has_with(similar, "three", "g") && !world.has_with(one, "one", "m"));
    world.shard.remove_changed(similar, b"three");
    assert!(world.has_with(one, "one", "g"), "another key was changed");
    assert_eq!(world.shard.usage_of(0).gone(RemovalReason::Evicted), 4);
}

#[test]
fn a_changed_key_leaves_its_place_to_its_next_reply_and_is_found_by_nobody_meanwhile() {
    let mut world = World::new();
    (0..3).for_each(|number| world.put(number));
    let memory = world.shard.told();
    world.shard.remove_changed(hash(1), b"1");
    world.shard.remove_changed(hash(1), b"1");
    assert!(!world.has(1) && world.has(2));
    assert_eq!((world.keys(), world.words.kept()), (2, 2));
    let usage = world.shard.usage_of(0);
    assert_eq!((usage.entries, usage.gone(RemovalReason::Changed)), (2, 1));
    world.put(1);
    assert!(world.has(1));
    assert_eq!(
        (world.keys(), world.words.kept(), world.shard.told()),
        (3, 3, memory)
    );
    world.shard.remove_changed(hash(1), b"1");
    world.put_with(hash(1), "1", "another form");
    assert!(!world.has(1) && world.has_with(hash(1), "1", "another form"));
    assert_eq!((world.keys(), world.words.kept()), (3, 3));
}

#[test]
fn the_place_of_a_changed_key_goes_when_its_turn_comes() {
    let mut world = World::new();
    (0..3).for_each(|number| world.put(number));
    world.shard.remove_changed(hash(0), b"0");
    world.evict();
    assert!(world.keys() == 2 && world.has(1) && world.has(2), "it went first");
    world.shard.remove_changed(hash(2), b"2");
    let others = World::new();
    for index in 0..world.shard.table().end() {
        world.shard.bury(index, NOW);
    }
    assert_eq!(world.keys(), 1);
    world.evict();
    assert_eq!(
        (world.keys(), world.shard.table().keys(), world.shard.told()),
        (0, 0, others.shard.told())
    );
    assert_eq!(world.shard.usage_of(0).gone(RemovalReason::Evicted), 1);
}

#[test]
fn a_fill_that_began_before_a_change_does_not_come_into_the_place_of_what_was_changed() {
    let mut world = World::new();
    world.put(1);
    let note = world.words.note(hash(1)).unwrap();
    world.words.begin(hash(1));
    world.shard.remove_changed(hash(1), b"1");
    world.words.end(hash(1).word() as u16);
    let late = world.keep(hash(1), ("1", "g"), b'o', note);
    assert_eq!(late, Err(Refusal::Changed));
    assert!(!world.has(1));
    assert_eq!((world.keys(), world.words.kept()), (0, 0));
    world.put(1);
    assert!(world.has(1));
}

#[test]
fn forms_of_a_key_go_one_by_one_and_with_it_all_at_once() {
    let mut world = World::new();
    let forms: Vec<_> = (0..70).map(|number| number.to_string()).collect();
    forms.iter().for_each(|form| world.put_with(hash(1), "key", form));
    world.put(2);
    let left = |world: &mut World| {
        let all = forms.iter().map(|form| world.has_with(hash(1), "key", form));
        all.filter(|has| *has).count()
    };
    assert_eq!(left(&mut world), 64, "a key has no more");
    assert!(!world.has_with(hash(1), "key", "5"), "the oldest went");
    assert_eq!(world.words.kept(), 2);
    (0..10).for_each(|_| world.put_with(hash(1), "key", "69"));
    assert_eq!(left(&mut world), 64, "what is renewed takes no other's place");
    world.shard.remove_changed(hash(1), b"key");
    assert_eq!((left(&mut world), world.keys(), world.words.kept()), (0, 1, 1));
    assert_eq!(world.shard.usage_of(0).entries, 1);
}

impl World {
    /// Is the reply to a fill without other waiting requests turned away?
    fn turns_away(&mut self, number: u64) -> bool {
        self.shard.turns_away(hash(number), number)
    }

    /// Does a request pass whose reply would be turned away?
    fn passes(&mut self, number: u64, is_full: bool) -> bool {
        self.shard.turns_away_early(hash(number), || number, |_| is_full)
    }

    /// A full shard from which so many replies have gone that were not asked for again.
    fn full_of_the_unasked(gone: u64) -> Self {
        let mut world = Self::new();
        (0..gone).for_each(|number| world.put(number));
        (0..gone).for_each(|_| world.evict());
        world
    }
}

#[test]
fn a_key_is_turned_away_once_while_nobody_asks_again_for_any_other() {
    let mut world = World::full_of_the_unasked(255);
    assert!(!world.turns_away(1000), "too few have gone");
    let mut world = World::full_of_the_unasked(256);
    assert!(world.turns_away(1000));
    assert!(!world.turns_away(1000), "it is asked for again");
    world.put(1000);
    assert!(!world.turns_away(1001), "one was asked for again");
}

#[test]
fn a_request_passes_once_while_its_reply_would_be_turned_away() {
    let mut world = World::full_of_the_unasked(255);
    assert!(!world.passes(1000, true), "too few have gone");
    let mut world = World::full_of_the_unasked(256);
    assert!(!world.passes(1000, false), "there is room");
    assert!(world.passes(1000, true));
    assert!(!world.passes(1000, true), "it is asked for again");
    assert!(!world.turns_away(1000), "its reply is kept");
}

#[test]
fn a_request_does_not_pass_beside_a_fill_of_the_same() {
    let mut world = World::full_of_the_unasked(256);
    let note = world.words.note(hash(9)).unwrap();
    let first = world.shard.begin_fill(9, note).unwrap();
    assert!(!world.passes(9, true));
    world.shard.end_fill(9, first);
    assert!(world.passes(9, true));
}

#[test]
fn a_hit_and_what_is_asked_for_in_its_queue_end_turning_away() {
    let mut world = World::full_of_the_unasked(256);
    world.put(7);
    assert!(world.turns_away(1000));
    assert!(world.has(7));
    assert!(!world.turns_away(1001));
}

#[test]
fn a_newer_reply_takes_the_place_of_an_older_one_however_few_ask() {
    let mut world = World::full_of_the_unasked(256);
    world.put(7);
    assert!(!world.turns_away(7));
    assert!(world.turns_away(8));
}

#[test]
fn a_reply_that_others_wait_for_is_not_turned_away() {
    let mut world = World::full_of_the_unasked(256);
    let note = world.words.note(hash(9)).unwrap();
    let first = world.shard.begin_fill(9, note).unwrap();
    assert!(world.shard.begin_fill(9, note).is_none(), "it is under way");
    assert!(!world.turns_away(9));
    world.shard.end_fill(9, first);
    assert!(world.turns_away(9));
}
