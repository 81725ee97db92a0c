//! `flush_all` at pools of copies, where it changes every value.

use proxima::copies::{CopyState, MissedKeys};

use crate::{
    copies::{copies, greet, id, missed_by},
    world::{World, world, world_of},
};

fn follow(world: &mut World, name: &str, states: &[CopyState]) {
    let copy = id(world, name);
    for &state in states {
        world.engine.follow(copy, 1, state);
    }
}

#[test]
fn copy_that_is_out_misses_everything_by_a_flush() {
    for request in ["flush_all\r\n", "flush_all 10\r\n", "flush_all noreply\r\nmn\r\n"] {
        let mut world = copies();
        follow(&mut world, "c", &[CopyState::Leaving, CopyState::Out]);
        let client = world.client();
        world.say(client, request.as_bytes());
        greet(&mut world, &["a", "b"]);
        let sent = request.replace(" noreply\r\nmn", "");
        for name in ["a", "b"] {
            assert_eq!(world.sent(name), sent);
            world.reply(name, "OK\r\n");
        }
        let expected = if request.contains("noreply") {
            "MN\r\n"
        } else {
            "OK\r\n"
        };
        assert_eq!(world.heard(client), expected, "{request:?}");
        assert_eq!(
            missed_by(&mut world, "c", CopyState::Joining),
            MissedKeys::everything()
        );
    }
}

#[test]
fn flush_waits_until_a_copy_that_missed_it_is_out() {
    let mut world = copies();
    let client = world.client();
    world.say(client, b"flush_all\r\n");
    greet(&mut world, &["a", "b", "c"]);
    world.reply("a", "OK\r\n");
    world.reply("b", "OK\r\n");
    assert_eq!(world.heard(client), "");
    let lane = world.lane("c");
    world.leave(lane);
    assert_eq!(world.heard(client), "", "somebody may still read the copy");
    assert_eq!(
        missed_by(&mut world, "c", CopyState::Leaving),
        MissedKeys::everything()
    );
    follow(&mut world, "c", &[CopyState::Out]);
    world.turn();
    assert_eq!(world.heard(client), "OK\r\n");
}

#[test]
fn flush_that_too_few_copies_took_is_refused_and_deletes_no_key() {
    let mut world = copies();
    let client = world.client();
    world.say(client, b"flush_all\r\n");
    greet(&mut world, &["a", "b", "c"]);
    assert_eq!(world.sent("a"), "flush_all\r\n");
    world.reply("a", "OK\r\n");
    for name in ["b", "c"] {
        let lane = world.lane(name);
        world.leave(lane);
        follow(&mut world, name, &[CopyState::Leaving, CopyState::Out]);
    }
    world.turn();
    let answer = world.heard(client);
    assert!(
        answer.starts_with("SERVER_ERROR only 1 of the 2 copies"),
        "{answer:?}"
    );
    assert_eq!(world.sent("a"), "");
}

#[test]
fn flush_refused_by_a_server_is_answered_with_its_error() {
    let mut world = copies();
    let client = world.client();
    world.say(client, b"flush_all\r\n");
    greet(&mut world, &["a", "b", "c"]);
    for (name, reply) in [
        ("a", "OK\r\n"),
        ("b", "CLIENT_ERROR flush_all not allowed\r\n"),
        ("c", "OK\r\n"),
    ] {
        world.reply(name, reply);
    }
    assert_eq!(world.heard(client), "CLIENT_ERROR flush_all not allowed\r\n");
}

#[test]
fn flush_reaches_every_copy_and_every_other_pool_once() {
    let pools = "pools:\n  p: {replicated: true, servers: [{address: 10.0.0.1:1, name: a}, {address: 10.0.0.2:1, name: b}]}\n  \
                 q: {servers: [{address: 10.0.0.4:1, name: d}]}\n";
    let routes = [
        "{by_prefix: {prefixes: {x: q}, default: p}}",
        "{by_operation: {read: {nearest: p}, write: {by_prefix: {prefixes: {x: q}, default: {all_sync: p}}}}}",
        // No route leads to the pool itself here.
        "{by_operation: {read: {failover: [{nearest: p}, q]}}}",
    ];
    for route in routes {
        let mut world = world_of(&format!(
            "{pools}listeners: [{{address: \"127.0.0.1:1\", route: {route}}}]\n"
        ));
        let client = world.client();
        world.say(client, b"flush_all\r\n");
        greet(&mut world, &["a", "b"]);
        for name in ["a", "b", "d"] {
            assert_eq!(world.sent(name), "flush_all\r\n", "{route}");
            world.reply(name, "OK\r\n");
        }
        assert_eq!(world.heard(client), "OK\r\n", "{route}");
    }
}

#[test]
fn flush_without_a_server_succeeds() {
    let mut world = world("null");
    let client = world.client();
    world.say(client, b"flush_all\r\n");
    assert_eq!(world.heard(client), "OK\r\n");
}
