//! A pool of copies in one worker: the requests that wait for the agreement, and for how long.

use std::time::Duration;

use proxima::{
    copies::{CopyState, Event, LockMode, MissedKeys},
    engine::WorkerEvent,
    members::MemberId,
};

use crate::world::{World, world_of};

const SET: &[u8] = b"set k 0 0 1\r\nx\r\n";

pub(crate) const COPIES: &str = "pools:\n  p:\n    replicated: true\n    eject: {failures: 0}\n    servers: [{address: 10.0.0.1:1, name: a}, \
     {address: 10.0.0.2:1, name: b}, {address: 10.0.0.3:1, name: c}]\nlisteners: [{address: \"127.0.0.1:1\", route: p}]\n";

pub(crate) fn copies() -> World {
    world_of(COPIES)
}

pub(crate) fn id(world: &World, name: &str) -> MemberId {
    let members = world.engine.tree.members();
    members.iter().find(|member| member.name == name).unwrap().id
}

/// The keys that the worker says the copy missed when it follows this step.
pub(crate) fn missed_by(world: &mut World, name: &str, state: CopyState) -> MissedKeys {
    let copy = id(world, name);
    world.engine.actions.events.clear();
    world.engine.follow(copy, 1, state);
    let found = world
        .engine
        .actions
        .events
        .drain(..)
        .find_map(|event| match event {
            WorkerEvent::Copy(Event::Acknowledged { missed, .. }) => Some(missed),
            _ => None,
        });
    found.unwrap()
}

/// Answers the first question on each new lane. Held requests then leave.
pub(crate) fn greet(world: &mut World, names: &[&str]) {
    for name in names {
        assert_eq!(
            world.sent(name),
            "version\r\n",
            "{name} is asked before it is given a write"
        );
        world.reply(name, "VERSION 1.6.18\r\n");
    }
}

/// Sends a set that `a` and `b` store and `c` misses, and returns the client's seat.
fn missed_at_c(world: &mut World) -> usize {
    let client = world.client();
    world.say(client, SET);
    greet(world, &["a", "b", "c"]);
    for name in ["a", "b"] {
        assert_eq!(world.sent(name).as_bytes(), SET);
        world.reply(name, "STORED\r\n");
    }
    let lane = world.lane("c");
    world.leave(lane);
    client
}

#[test]
fn a_missed_write_is_answered_when_its_copy_is_out() {
    let mut world = copies();
    let client = missed_at_c(&mut world);
    let c = id(&world, "c");
    let missed = |event: &WorkerEvent| matches!(event, WorkerEvent::Copy(Event::Stale { member, .. }) if member.id == c);
    assert!(world.engine.actions.events.iter().any(missed));
    assert_eq!(world.heard(client), "", "somebody may still read the copy");
    world.engine.follow(c, 1, CopyState::Leaving);
    world.turn();
    assert_eq!(world.heard(client), "");
    world.engine.follow(c, 2, CopyState::Out);
    world.turn();
    assert_eq!(world.heard(client), "STORED\r\n");
}

#[test]
fn write_that_cannot_be_sent_for_want_of_descriptors_is_missed_by_no_copy() {
    let mut world = copies();
    world.short.insert("c".to_owned());
    let client = world.client();
    world.say(client, SET);
    greet(&mut world, &["a", "b"]);
    for reply in ["STORED\r\n", "HD\r\n"] {
        for name in ["a", "b"] {
            world.reply(name, reply);
        }
    }
    let refused = "SERVER_ERROR 10.0.0.3:1: cannot connect: Too many open files in this proxy\r\n";
    assert_eq!(world.heard(client), refused);
    let mut events = world.engine.actions.events.iter();
    assert!(events.all(|event| matches!(event, WorkerEvent::Short(_))));
    assert!(
        world
            .engine
            .tree
            .members()
            .iter()
            .all(|member| member.health.failures() == 0)
    );
    world.short.clear();
    world.say(client, SET);
    greet(&mut world, &["c"]);
    for name in ["a", "b", "c"] {
        world.reply(name, "STORED\r\n");
    }
    assert_eq!(world.heard(client), "STORED\r\n");
}

#[test]
fn a_worker_cuts_its_pending_changes_before_it_acknowledges_a_copy_is_out() {
    let mut world = copies();
    let client = world.client();
    world.say(client, SET);
    greet(&mut world, &["a", "b", "c"]);
    for name in ["a", "b"] {
        world.reply(name, "STORED\r\n");
    }
    let c = id(&world, "c");
    // Another worker has seen the copy miss a write. In this worker a write is still under way.
    world.engine.follow(c, 1, CopyState::Leaving);
    let events: Vec<&WorkerEvent> = world.engine.actions.events.iter().collect();
    let broken = events
        .iter()
        .position(|event| matches!(event, WorkerEvent::Copy(Event::Broken { member, .. }) if member.id == c));
    let follows = events.iter().position(
        |event| matches!(event, WorkerEvent::Copy(Event::Acknowledged { member, missed, .. }) if *member == c && *missed != MissedKeys::default()),
    );
    assert!(
        broken.is_some() && broken < follows,
        "the connection first, then what it missed: {events:?}"
    );
    world.engine.follow(c, 2, CopyState::Out);
    world.turn();
    assert_eq!(world.heard(client), "STORED\r\n");
}

#[test]
fn a_write_is_answered_when_its_copy_is_back_before_the_last_reply() {
    let mut world = copies();
    let client = world.client();
    world.say(client, SET);
    greet(&mut world, &["a", "b", "c"]);
    world.reply("a", "STORED\r\n");
    let lane = world.lane("c");
    world.leave(lane);
    let c = id(&world, "c");
    let back = [
        CopyState::Leaving,
        CopyState::Out,
        CopyState::Joining,
        CopyState::Opening,
        CopyState::Current,
    ];
    for (epoch, state) in back.into_iter().enumerate() {
        world.engine.follow(c, epoch as u64, state);
    }
    world.reply("b", "STORED\r\n");
    assert_eq!(world.heard(client), "STORED\r\n");
}

#[test]
fn a_write_that_waits_for_an_agreement_ends_in_time() {
    let mut world = copies();
    let client = missed_at_c(&mut world);
    world.pass(Duration::from_secs(4));
    let answer = world.heard(client);
    assert!(
        answer.starts_with("SERVER_ERROR a copy missed this write"),
        "{answer:?}"
    );
    assert!(!world.engine.waits(), "nothing is left to look after");
}

/// Makes the copy's new lane ready, and answers its question.
fn ready(world: &mut World) {
    let client = world.client();
    world.say(client, SET);
    greet(world, &["a", "b", "c"]);
    for name in ["a", "b", "c"] {
        assert_eq!(world.sent(name).as_bytes(), SET);
        world.reply(name, "STORED\r\n");
    }
    assert_eq!(world.heard(client), "STORED\r\n");
}

#[test]
fn a_change_waits_for_the_key_lock_of_another_worker() {
    let mut world = copies();
    ready(&mut world);
    let mut rival = world.rival.lock(b"k", LockMode::AtOnce);
    assert!(rival.try_lock());
    let (client, other) = (world.client(), world.client());
    world.say(client, b"set k 0 0 1\r\ny\r\nget k\r\n");
    world.say(other, b"set j 0 0 1\r\nz\r\n");
    for name in ["a", "b", "c"] {
        assert_eq!(
            world.sent(name),
            "set j 0 0 1\r\nz\r\n",
            "another key waits for nobody"
        );
        world.reply(name, "STORED\r\n");
    }
    world.pass(Duration::from_millis(100));
    assert_eq!(
        world.sent("a"),
        "",
        "nor is the same client's next request let past"
    );
    drop(rival);
    world.pass(Duration::from_millis(1));
    for name in ["a", "b", "c"] {
        assert_eq!(world.sent(name), "set k 0 0 1\r\ny\r\n");
        world.reply(name, "STORED\r\n");
    }
    assert_eq!(world.heard(client), "STORED\r\n");
    let mut rival = world.rival.lock(b"k", LockMode::AtOnce);
    assert!(rival.try_lock(), "given back with the answer");
}

#[test]
fn a_key_lock_that_is_never_released_fails_the_waiting_change() {
    let mut world = copies();
    ready(&mut world);
    let mut rival = world.rival.lock(b"k", LockMode::AtOnce);
    assert!(rival.try_lock());
    let client = world.client();
    world.say(client, b"set k 0 0 1\r\ny\r\nversion\r\n");
    world.pass(Duration::from_secs(59));
    assert_eq!(world.heard(client), "");
    world.pass(Duration::from_secs(2));
    let answer = world.heard(client);
    assert!(
        answer.starts_with("SERVER_ERROR other changes of this key have not ended\r\nVERSION"),
        "{answer:?}"
    );
    drop(rival);
    assert!(
        world.rival.lock(b"k", LockMode::AtOnce).try_lock(),
        "nobody waits for it any more"
    );
}

#[test]
fn a_write_with_too_few_reachable_copies_is_sent_to_none() {
    let mut world = copies();
    ready(&mut world);
    let [b, c] = ["b", "c"].map(|name| id(&world, name));
    for member in [b, c] {
        world.engine.follow(member, 1, CopyState::Leaving);
        world.engine.follow(member, 2, CopyState::Out);
    }
    let events = world.engine.actions.events.len();
    let client = world.client();
    world.say(client, b"set k 0 0 1\r\ny\r\n");
    let answer = world.heard(client);
    assert!(
        answer.starts_with("SERVER_ERROR only 0 of the 2 copies"),
        "{answer:?}"
    );
    assert_eq!(world.sent("a"), "md k\r\n");
    let a = id(&world, "a");
    let is_stale = |event: &WorkerEvent| matches!(event, WorkerEvent::Copy(Event::Stale { member, .. }) if member.id == a);
    assert!(
        world.engine.actions.events[events..].iter().any(is_stale),
        "this side is read again as if rejoining"
    );
    assert_eq!(
        missed_by(&mut world, "a", CopyState::Leaving),
        MissedKeys::everything()
    );
    for name in ["b", "c"] {
        assert_eq!(
            missed_by(&mut world, name, CopyState::Leaving),
            MissedKeys::default()
        );
    }
}

#[test]
fn a_copy_that_joins_while_a_change_waits_misses_it() {
    let mut world = copies();
    let client = world.client();
    let mut rival = world.rival.lock(b"k", LockMode::AtOnce);
    assert!(rival.try_lock());
    world.say(client, SET);
    // The worker that holds the key lock may give the new copy another value before this one is sent to the
    // others.
    world.reload(&COPIES.replace("name: c}", "name: c}, {address: 10.0.0.4:1, name: d}"));
    drop(rival);
    world.pass(Duration::from_millis(1));
    greet(&mut world, &["a", "b", "c"]);
    for name in ["a", "b", "c"] {
        assert_eq!(world.sent(name).as_bytes(), SET);
        world.reply(name, "STORED\r\n");
    }
    assert_eq!(world.heard(client), "", "somebody may still read the new copy");
    assert_ne!(
        missed_by(&mut world, "d", CopyState::Leaving),
        MissedKeys::default()
    );
    world.engine.follow(id(&world, "d"), 2, CopyState::Out);
    world.turn();
    assert_eq!(world.heard(client), "STORED\r\n");
}
