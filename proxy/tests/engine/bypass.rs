//! Copies that another route than their pool changes, as mcrouter's configurations may: writes that they miss
//! are repaired.

use std::time::Duration;

use proxima::{
    copies::{CopyState, Event, MissedKeys},
    engine::WorkerEvent,
    frontdoor::mcrouter::{Start, start},
    members::MemberId,
};

use crate::{
    copies::{greet, id, missed_by},
    world::{World, world_from},
};

const A: &str = "10.0.0.1:1";
const B: &str = "10.0.0.2:1";
const C: &str = "10.0.0.3:1";

/// A world in which the pool serves `set`, and a majority rule `add` and `delete`.
fn copies() -> World {
    let config = format!(
        r#"{{"pools": {{"P": {{"servers": ["{A}", "{B}", "{C}"]}}}}, "route": {{"type": "OperationSelectorRoute",
        "operation_policies": {{"set": "AllSyncRoute|Pool|P", "get": "AllFastestRoute|Pool|P",
        "add": "AllMajorityRoute|Pool|P", "delete": "AllMajorityRoute|Pool|P"}}}}}}"#
    );
    let arguments = ["-p1", "--keep-writing", &format!("--config={config}")].map(str::to_owned);
    match start(arguments) {
        Ok(Start::Run(mcrouter)) => world_from(&mcrouter.loaded.config),
        other => panic!("{other:?}"),
    }
}

fn is_told(world: &World, copy: MemberId) -> bool {
    let missed = |event: &WorkerEvent| matches!(event, WorkerEvent::Copy(Event::Stale { member, .. }) if member.id == copy);
    world.engine.actions.events.iter().any(missed)
}

#[test]
fn copy_that_never_answers_after_the_client_has_its_reply_is_stale() {
    let mut world = copies();
    let client = world.client();
    world.say(client, b"delete k\r\n");
    greet(&mut world, &[A, B, C]);
    world.reply(A, "DELETED\r\n");
    world.reply(B, "DELETED\r\n");
    assert_eq!(world.heard(client), "DELETED\r\n");
    let c = id(&world, C);
    assert!(!is_told(&world, c), "it may still answer");
    world.pass(Duration::from_secs(2));
    assert!(is_told(&world, c));
    assert_eq!(world.engine.copies.snapshot().state(c), CopyState::Leaving);
    assert_eq!(
        missed_by(&mut world, C, CopyState::Leaving),
        MissedKeys::everything()
    );
}

#[test]
fn copy_that_is_out_misses_a_bypass_write() {
    let mut world = copies();
    let c = id(&world, C);
    for state in [CopyState::Leaving, CopyState::Out] {
        world.engine.follow(c, 1, state);
    }
    let client = world.client();
    world.say(client, b"delete k\r\n");
    greet(&mut world, &[A, B]);
    world.reply(A, "DELETED\r\n");
    world.reply(B, "DELETED\r\n");
    assert_eq!(world.heard(client), "DELETED\r\n");
    let mut key = MissedKeys::default();
    key.add(b"k");
    assert_eq!(missed_by(&mut world, C, CopyState::Joining), key);
}

#[test]
fn copy_that_cannot_be_reached_misses_a_bypass_write() {
    let mut world = copies();
    let c = id(&world, C);
    world.engine.tree.members()[2]
        .health
        .failed(proxima::members::Failure::Connection);
    let client = world.client();
    world.say(client, b"delete k\r\n");
    assert!(is_told(&world, c));
    let mut key = MissedKeys::default();
    key.add(b"k");
    assert_eq!(missed_by(&mut world, C, CopyState::Leaving), key);
}

#[test]
fn unanswered_read_makes_no_copy_stale() {
    let mut world = copies();
    let client = world.client();
    world.say(client, b"get k\r\n");
    greet(&mut world, &[A, B, C]);
    world.reply(A, "END\r\n");
    assert_eq!(world.heard(client), "END\r\n");
    world.pass(Duration::from_secs(2));
    let c = id(&world, C);
    assert!(!is_told(&world, c));
    assert_eq!(world.engine.copies.snapshot().state(c), CopyState::Current);
}

#[test]
fn change_on_another_lane_of_a_leaving_copy_is_missed() {
    let mut world = copies();
    let (uploader, client) = (world.client(), world.client());
    world.say(uploader, b"add large 0 0 100000\r\n");
    greet(&mut world, &[A, B, C]);
    world.say(uploader, &[b'x'; 100_000]);
    world.say(uploader, b"\r\n");
    let c = id(&world, C);
    world.say(client, b"set small 0 0 1\r\nx\r\n");
    let shared = world.lane(C);
    world.leave(shared);
    assert_eq!(world.engine.copies.snapshot().state(c), CopyState::Leaving);
    assert_eq!(
        missed_by(&mut world, C, CopyState::Leaving),
        MissedKeys::everything()
    );
}

#[test]
fn client_that_leaves_in_mid_upload_makes_no_copy_stale() {
    let mut world = copies();
    let client = world.client();
    world.say(client, b"add large 0 0 100000\r\nxxx");
    greet(&mut world, &[A, B, C]);
    world.leave(client);
    for name in [A, B, C] {
        assert!(!is_told(&world, id(&world, name)), "{name}");
    }
}
