//! Servers that are too old for meta commands, or do not say their version.

use std::time::Duration;

use proxima::{copies::Event, engine::WorkerEvent};

use crate::{
    copies::{copies, id},
    world::{World, world},
};

const OLD: &str = "SERVER_ERROR 10.0.0.4:1: memcached 1.5.22: meta commands need 1.6.10 or later\r\n";

fn old(route: &str, version: &str) -> World {
    let mut world = world(route);
    world.versions.insert("d".into(), format!("{version}\r\n"));
    world
}

#[test]
fn an_old_server_gets_text_commands_only() {
    let mut world = old("q", "VERSION 1.5.22");
    let client = world.client();
    // These requests waited for the login, or come after it.
    for _ in 0..2 {
        world.say(
            client,
            b"get k\r\nms k 9 T0\r\nflush_all\r\nmg k v\r\nset k 0 0 1\r\nx\r\n",
        );
        assert_eq!(world.sent("d"), "get k\r\nset k 0 0 1\r\nx\r\n");
        world.reply("d", "END\r\nSTORED\r\n");
        assert_eq!(world.heard(client), format!("END\r\n{OLD}{OLD}STORED\r\n"));
    }
    assert_eq!(world.lanes("d").len(), 1);
}

#[test]
fn a_server_without_a_version_gets_text_commands_only() {
    let mut world = old("q", "ERROR");
    let client = world.client();
    world.say(client, b"mg k v\r\nget k\r\n");
    assert_eq!(world.sent("d"), "get k\r\n");
    world.reply("d", "END\r\n");
    let text = "SERVER_ERROR 10.0.0.4:1: it does not say its version (`ERROR`): meta commands need 1.6.10 or later\r\n";
    assert_eq!(world.heard(client), format!("{text}END\r\n"));
}

#[test]
fn a_server_without_free_connections_is_not_used() {
    let mut world = old("q", "ERROR Too many open connections");
    let client = world.client();
    world.say(client, b"get k\r\n");
    assert_eq!(
        world.heard(client),
        "SERVER_ERROR 10.0.0.4:1: ERROR Too many open connections\r\n"
    );
    assert!(world.engine.servers.lanes().count() == 0);
}

#[test]
fn a_large_meta_value_for_an_old_server_is_swallowed() {
    let mut world = old("q", "VERSION 1.5.22");
    let client = world.client();
    const SIZE: usize = 300_000;
    for _ in 0..2 {
        world.say(
            client,
            format!("ms k {SIZE}\r\n{}\r\nget k\r\n", "v".repeat(SIZE)).as_bytes(),
        );
        let lane = world
            .lanes("d")
            .into_iter()
            .find(|&lane| !world.seats[lane].heard.is_empty())
            .unwrap();
        assert_eq!(world.sent("d"), "get k\r\n");
        world.say(lane, b"END\r\n");
        assert_eq!(world.heard(client), format!("{OLD}END\r\n"));
    }
    let busy = world
        .engine
        .servers
        .lanes()
        .filter(|(_, lane)| lane.is_uploading());
    assert_eq!(busy.count(), 0);
    assert!(world.lanes("d").len() <= 3, "idle lanes are used again");
}

#[test]
fn failover_goes_on_from_an_old_server_to_one_that_knows_the_command() {
    let mut world = old("{failover: [q, p]}", "VERSION 1.5.22");
    let client = world.client();
    world.say(client, b"mg k v\r\n");
    assert_eq!(world.sent("d"), "");
    let other = ["a", "b", "c"]
        .into_iter()
        .find(|name| !world.lanes(name).is_empty())
        .unwrap();
    assert_eq!(world.sent(other), "mg k v\r\n");
    world.reply(other, "EN\r\n");
    assert_eq!(world.heard(client), "EN\r\n");
}

#[test]
fn an_old_server_is_never_a_current_copy() {
    let mut world = copies();
    let client = world.client();
    world.say(client, b"set k 0 0 1\r\nx\r\n");
    for name in ["a", "b"] {
        assert_eq!(world.sent(name), "version\r\n");
        world.reply(name, "VERSION 1.6.18\r\n");
    }
    assert_eq!(world.sent("c"), "version\r\n");
    world.reply("c", "VERSION 1.5.22\r\n");
    assert_eq!(world.sent("c"), "", "it is given nothing");
    let c = id(&world, "c");
    let told = world.engine.actions.events.iter().any(|event| {
        matches!(event, WorkerEvent::Copy(Event::Stale { member, why }) if member.id == c && why.contains("memcached 1.5.22"))
    });
    assert!(told, "{:?}", world.engine.actions.events);
    world.pass(Duration::from_millis(100));
    assert_eq!(world.sent("c"), "");
}

#[test]
fn clients_of_other_protocols_are_logged_once_a_second() {
    let mut world = world("q");
    for first in [
        &b"\x80\x0a\0\0"[..],
        b"\x16\x03\x01",
        b"GET / HTTP/1.1\r\n",
        b"\x80",
    ] {
        let client = world.client();
        world.say(client, first);
        assert_eq!(world.heard(client), "");
        assert!(world.seats[client].closed.is_some(), "{first:?}");
    }
    let told = |world: &World| {
        let events = world.engine.actions.events.iter();
        events
            .filter(|event| matches!(event, WorkerEvent::ForeignProtocol(_)))
            .count()
    };
    assert_eq!((told(&world), world.engine.metrics.clients.refused), (1, 4));
    world.pass(Duration::from_secs(2));
    let client = world.client();
    world.say(client, b"POST / HTTP/1.0\r\nset k 0 0 1\r\n");
    assert!(world.seats[client].closed.is_some());
    assert_eq!(told(&world), 2);
    assert_eq!(world.sent("a"), "");
}
