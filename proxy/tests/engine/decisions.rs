//! Values that one copy decides: which copy it is, which requests wait for it, and what happens when it is
//! lost.

use std::time::Duration;

use proxima::{
    copies::{CopyState, Event},
    engine::WorkerEvent,
};

use crate::{
    copies::{copies, greet, id},
    world::World,
};

const ALL: [&str; 3] = ["a", "b", "c"];
/// The bytes that a home is sent: the command, and behind it the question for the result.
const COUNT: &str = "incr k 1\r\nmg k v f t\r\n";

/// Sends `incr k`, and returns the client's seat and the copy that decides.
fn asked(world: &mut World) -> (usize, &'static str) {
    let client = world.client();
    world.say(client, b"incr k 1\r\n");
    let lanes: Vec<&str> = ALL
        .into_iter()
        .filter(|name| !world.lanes(name).is_empty())
        .collect();
    let [home] = lanes[..] else {
        panic!("one copy decides, not {lanes:?}");
    };
    greet(world, &[home]);
    assert_eq!(world.sent(home), COUNT);
    (client, home)
}

fn follows(world: &World, epoch: u64) -> bool {
    let is_it = |event: &WorkerEvent| matches!(event, WorkerEvent::Copy(Event::Acknowledged { epoch: found, .. }) if *found == epoch);
    world.engine.actions.events.iter().any(is_it)
}

#[test]
fn requests_behind_a_decided_change_wait_until_every_copy_has_it() {
    let mut world = copies();
    let client = world.client();
    world.say(client, b"incr k 1\r\nget k\r\n");
    let lanes: Vec<&str> = ["a", "b", "c"]
        .into_iter()
        .filter(|name| !world.lanes(name).is_empty())
        .collect();
    let [home] = lanes[..] else {
        panic!("one copy decides, not {lanes:?}");
    };
    greet(&mut world, &[home]);
    assert_eq!(world.sent(home), COUNT);
    world.reply(home, "5\r\n");
    let others: Vec<&str> = ["a", "b", "c"].into_iter().filter(|name| *name != home).collect();
    assert!(
        others.iter().all(|other| world.lanes(other).is_empty()),
        "it is not known what to tell"
    );
    world.reply(home, "VA 2 f7 t60\r\n5 \r\n");
    assert_eq!(world.heard(client), "", "the others have not heard of it");
    greet(&mut world, &others);
    for other in &others {
        assert_eq!(world.sent(other), "ms k 2 F7 T60\r\n5 \r\n");
        world.reply(other, "HD\r\n");
    }
    assert_eq!(world.heard(client), "5\r\n");
    let asked: Vec<&str> = ["a", "b", "c"]
        .into_iter()
        .filter(|name| world.sent(name) == "get k\r\n")
        .collect();
    assert_eq!(asked.len(), 1, "{asked:?}");
}

#[test]
fn a_decision_waits_for_a_changing_home_and_fails_in_time() {
    let mut world = copies();
    let (first, home) = asked(&mut world);
    world.reply(home, "NOT_FOUND\r\nEN\r\n");
    assert_eq!(world.heard(first), "NOT_FOUND\r\n");
    world.engine.follow(id(&world, home), 1, CopyState::Leaving);
    let client = world.client();
    world.say(client, b"incr k 1\r\n");
    world.pass(Duration::from_millis(500));
    assert_eq!(world.heard(client), "");
    world.pass(Duration::from_secs(3));
    let answer = world.heard(client);
    assert!(
        answer.starts_with("SERVER_ERROR no copy may decide"),
        "{answer:?}"
    );
}

#[test]
fn the_next_copy_decides_when_a_home_is_lost() {
    let mut world = copies();
    let (client, home) = asked(&mut world);
    let lane = world.lane(home);
    world.leave(lane);
    world.pass(Duration::from_millis(10));
    assert_eq!(world.heard(client), "", "somebody may still read the lost one");
    let lost = id(&world, home);
    world.engine.follow(lost, 1, CopyState::Leaving);
    world.engine.follow(lost, 2, CopyState::Out);
    world.pass(Duration::from_millis(10));
    let left: Vec<&str> = ALL.into_iter().filter(|name| *name != home).collect();
    let next: Vec<&str> = left
        .iter()
        .copied()
        .filter(|name| !world.lanes(name).is_empty())
        .collect();
    let [next] = next[..] else {
        panic!("one copy decides, not {next:?}");
    };
    greet(&mut world, &[next]);
    assert_eq!(world.sent(next), COUNT);
    world.reply(next, "8\r\nVA 1 f0 t-1\r\n8\r\n");
    let last: Vec<&str> = left.into_iter().filter(|name| *name != next).collect();
    greet(&mut world, &last);
    assert_eq!(world.sent(last[0]), "ms k 1 F0\r\n8\r\n");
    world.reply(last[0], "HD\r\n");
    assert_eq!(world.heard(client), "8\r\n");
}

/// A home whose connection breaks behind its answer and before the value is read back has counted. The others
/// remove the key.
#[test]
fn a_counter_that_cannot_be_read_back_is_removed_at_other_copies() {
    let mut world = copies();
    let (client, home) = asked(&mut world);
    world.reply(home, "5\r\n");
    let lane = world.lane(home);
    world.leave(lane);
    let others: Vec<&str> = ALL.into_iter().filter(|name| *name != home).collect();
    greet(&mut world, &others);
    for other in &others {
        assert_eq!(world.sent(other), "md k\r\n");
        world.reply(other, "HD\r\n");
    }
    assert_eq!(world.heard(client), "5\r\n");
}

/// The first reader of a stale value has to refill it. The proxy reads it, and gives that right back before a
/// client hears of it.
#[test]
fn reading_back_returns_the_right_to_refill_a_stale_value() {
    let mut world = copies();
    let (client, home) = asked(&mut world);
    world.reply(home, "5\r\nVA 1 f0 t9 X W\r\n5\r\n");
    assert_eq!(world.sent(home), "md k I\r\n");
    let others: Vec<&str> = ALL.into_iter().filter(|name| *name != home).collect();
    assert!(others.iter().all(|other| world.lanes(other).is_empty()));
    world.reply(home, "HD\r\n");
    greet(&mut world, &others);
    for other in &others {
        assert_eq!(world.sent(other), "md k\r\n");
        world.reply(other, "NF\r\n");
    }
    assert_eq!(world.heard(client), "5\r\n");
}

/// Begins `request` of `k` while its home is out, where another decides; then the home is about to be opened
/// again. The client's seat and who decides.
fn decided_elsewhere(world: &mut World, request: &[u8]) -> (usize, &'static str) {
    let (first, home) = asked(world);
    world.reply(home, "NOT_FOUND\r\nEN\r\n");
    assert_eq!(world.heard(first), "NOT_FOUND\r\n");
    let back = id(world, home);
    world.engine.follow(back, 1, CopyState::Leaving);
    world.engine.follow(back, 2, CopyState::Out);
    let client = world.client();
    world.say(client, request);
    let mut others = ALL.into_iter().filter(|name| *name != home);
    let substitute = others.find(|name| !world.lanes(name).is_empty()).unwrap();
    greet(world, &[substitute]);
    world.engine.follow(back, 3, CopyState::Joining);
    world.engine.follow(back, 4, CopyState::Opening);
    world.turn();
    assert!(follows(world, 3));
    (client, substitute)
}

#[test]
fn a_returned_copy_decides_only_after_decisions_in_its_place_ended() {
    let mut world = copies();
    let (client, substitute) = decided_elsewhere(&mut world, b"incr k 1\r\n");
    assert!(!follows(&world, 4));
    world.reply(substitute, "NOT_FOUND\r\nEN\r\n");
    world.turn();
    assert_eq!(world.heard(client), "NOT_FOUND\r\n");
    assert!(follows(&world, 4));
}

#[test]
fn a_returning_copy_does_not_wait_for_a_slow_upload() {
    let mut world = copies();
    let request = format!("append k 0 0 100000\r\n{}\r\n", "v".repeat(100_000));
    let (begin, end) = request.as_bytes().split_at(50_000);
    let (client, substitute) = decided_elsewhere(&mut world, begin);
    assert!(follows(&world, 4), "nothing is decided before the last byte");
    for piece in end.chunks(16 << 10) {
        world.say(client, piece);
    }
    let answer = world.heard(client);
    assert!(
        answer.starts_with("SERVER_ERROR no copy may decide"),
        "{answer:?}"
    );
    let taken = world.sent(substitute);
    assert!(request.starts_with(&taken) && taken.len() < request.len());
    world.say(client, b"version\r\n");
    assert!(
        world.heard(client).starts_with("VERSION"),
        "the connection stays of use"
    );
}
