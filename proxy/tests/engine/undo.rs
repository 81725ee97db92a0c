//! A change that some copies took and one could not be sent: no two copies keep different values.

use std::time::Duration;

use proxima::{
    copies::{CopyState, Event, LockMode, MissedKeys},
    engine::WorkerEvent,
};

use crate::{
    copies::{copies, greet, id, missed_by},
    rows::each_row,
    world::World,
};

const SET: &str = "set k 0 0 1\r\nx\r\n";
const REFUSED: &str = "SERVER_ERROR 10.0.0.3:1: cannot connect: Too many open files in this proxy\r\n";
const REMOVAL: &str = "md k\r\n";

/// Sends a set that `a` and `b` store and `c` cannot be sent, and returns the client's seat.
fn unsent_at_c() -> (World, usize) {
    let mut world = copies();
    world.short.insert("c".to_owned());
    let client = world.client();
    world.say(client, SET.as_bytes());
    greet(&mut world, &["a", "b"]);
    for name in ["a", "b"] {
        assert_eq!(world.sent(name), SET);
        world.reply(name, "STORED\r\n");
    }
    (world, client)
}

fn is_missed(world: &World, name: &str) -> bool {
    let copy = id(world, name);
    let missed = |event: &WorkerEvent| matches!(event, WorkerEvent::Copy(Event::Stale { member, .. }) if member.id == copy);
    world.engine.actions.events.iter().any(missed)
}

#[test]
fn refused_change_is_removed_where_it_landed_before_it_is_answered() {
    let (mut world, client) = unsent_at_c();
    for name in ["a", "b"] {
        assert_eq!(world.sent(name), REMOVAL);
    }
    assert_eq!(world.heard(client), "", "two copies may still hold it");
    world.reply("a", "HD\r\n");
    assert_eq!(world.heard(client), "");
    assert!(
        !world.rival.lock(b"k", LockMode::AtOnce).try_lock(),
        "no other worker changes the key meanwhile"
    );
    world.reply("b", "HD\r\n");
    assert_eq!(world.heard(client), REFUSED);
    assert!(world.rival.lock(b"k", LockMode::AtOnce).try_lock());
    assert!(world.is_idle());
    for name in ["a", "b", "c"] {
        assert!(!is_missed(&world, name), "{name}");
    }
}

#[test]
fn copy_that_fails_to_remove_a_refused_change_has_missed_a_write() {
    type Failure = fn(&mut World);
    let failures: [Failure; 3] = [
        |world| world.leave(world.lane("b")),
        |world| world.pass(Duration::from_millis(1_200)),
        |world| world.reply("b", "SERVER_ERROR out of memory\r\n"),
    ];
    for fail in failures {
        let (mut world, client) = unsent_at_c();
        world.reply("a", "HD\r\n");
        fail(&mut world);
        assert!(is_missed(&world, "b"));
        assert_eq!(world.heard(client), "", "somebody may still read it there");
        let mut key = MissedKeys::default();
        key.add(b"k");
        assert_eq!(missed_by(&mut world, "b", CopyState::Leaving), key);
        assert!(!world.rival.lock(b"k", LockMode::AtOnce).try_lock());
        world.engine.follow(id(&world, "b"), 2, CopyState::Out);
        world.turn();
        assert_eq!(world.heard(client), REFUSED);
    }
}

#[test]
fn copy_that_cannot_be_sent_the_removal_has_missed_a_write() {
    let mut world = copies();
    world.short.insert("c".to_owned());
    let client = world.client();
    world.say(client, SET.as_bytes());
    greet(&mut world, &["a", "b"]);
    world.reply("a", "STORED\r\n");
    let lane = world.lane("a");
    world.short.insert("a".to_owned());
    world.leave(lane);
    world.sent("a");
    world.reply("b", "STORED\r\n");
    assert_eq!(world.sent("b"), [SET, REMOVAL].concat());
    world.reply("b", "HD\r\n");
    assert!(is_missed(&world, "a"));
    assert_eq!(world.heard(client), "");
    for state in [CopyState::Leaving, CopyState::Out] {
        world.engine.follow(id(&world, "a"), 1, state);
    }
    world.turn();
    assert_eq!(world.heard(client), REFUSED);
}

/// Sends an increment to the home of `k`. Returns the waiting client, the home, and the other copies.
fn at_home() -> (World, usize, &'static str, Vec<&'static str>) {
    let mut world = copies();
    let client = world.client();
    world.say(client, b"incr k 1\r\n");
    let (homes, others): (Vec<&str>, Vec<&str>) = ["a", "b", "c"]
        .into_iter()
        .partition(|name| !world.lanes(name).is_empty());
    greet(&mut world, &homes);
    world.sent(homes[0]);
    (world, client, homes[0], others)
}

#[test]
fn refused_change_is_removed_at_the_home_that_decided_it() {
    let (mut world, client, home, others) = at_home();
    world.short.insert(others[1].to_owned());
    world.reply(home, "5\r\nVA 1 f0 t-1\r\n5\r\n");
    greet(&mut world, &[others[0]]);
    assert_eq!(world.sent(others[0]), "ms k 1 F0\r\n5\r\n");
    world.reply(others[0], "HD\r\n");
    for name in [home, others[0]] {
        assert_eq!(world.sent(name), REMOVAL, "{name}");
        assert_eq!(world.heard(client), "");
        world.reply(name, "HD\r\n");
    }
    let answer = world.heard(client);
    assert!(
        answer.ends_with("cannot connect: Too many open files in this proxy\r\n"),
        "{answer:?}"
    );
}

/// The home missed the command at first, was repaired, and was asked again.
#[test]
fn removal_goes_also_to_a_home_that_came_back() {
    let (mut world, _, home, others) = at_home();
    world.leave(world.lane(home));
    for state in [
        CopyState::Leaving,
        CopyState::Out,
        CopyState::Joining,
        CopyState::Opening,
        CopyState::Current,
    ] {
        world.engine.follow(id(&world, home), 1, state);
    }
    world.pass(Duration::from_millis(1));
    greet(&mut world, &[home]);
    world.sent(home);
    world.short.insert(others[1].to_owned());
    world.reply(home, "5\r\nVA 1 f0 t-1\r\n5\r\n");
    greet(&mut world, &[others[0]]);
    world.reply(others[0], "HD\r\n");
    assert_eq!(world.sent(home), REMOVAL);
}

#[test]
fn refused_streamed_value_is_removed_where_it_landed() {
    const SIZE: usize = 100_000;
    let mut world = copies();
    world.short.insert("c".to_owned());
    let client = world.client();
    world.say(client, format!("set k 0 0 {SIZE}\r\n").as_bytes());
    greet(&mut world, &["a", "b"]);
    for piece in [&[b'x'; SIZE][..], b"\r\n"].concat().chunks(16 << 10) {
        world.say(client, piece);
    }
    for name in ["a", "b"] {
        assert!(world.sent(name).ends_with("xx\r\n"));
        world.reply(name, "STORED\r\n");
    }
    // The last copy's reply was passed on before its lane was free for other requests.
    greet(&mut world, &["b"]);
    for name in ["a", "b"] {
        assert_eq!(world.sent(name), REMOVAL, "{name}");
        assert_eq!(world.heard(client), "");
        world.reply(name, "HD\r\n");
    }
    assert_eq!(world.heard(client), REFUSED);
}

#[test]
fn refused_change_that_landed_nowhere_is_removed_nowhere() {
    let rows = [
        ("flush_all\r\n", "OK\r\n"),
        (
            "set k 0 0 1\r\nx\r\n",
            "SERVER_ERROR out of memory storing object\r\n",
        ),
    ];
    each_row(rows, |&(request, reply)| {
        let mut world = copies();
        world.short.insert("c".to_owned());
        let client = world.client();
        world.say(client, request.as_bytes());
        greet(&mut world, &["a", "b"]);
        for name in ["a", "b"] {
            assert_eq!(world.sent(name), request);
            world.reply(name, reply);
        }
        assert!(world.heard(client).starts_with("SERVER_ERROR "), "{request:?}");
        for name in ["a", "b"] {
            assert_eq!(world.sent(name), "", "{request:?}");
        }
    });
}
