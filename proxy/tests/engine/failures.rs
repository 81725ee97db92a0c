//! The error that a client gets begins with the address of the server that failed, whatever the failure is.

use std::time::Duration;

use proxima::copies::CopyState;

use crate::{
    copies::id,
    rows::each_row,
    world::{World, world, world_of},
};

/// A route to the first copy that bypasses its pool.
const COPY: &str = "pools: {p: {replicated: true, servers: [{address: 10.0.0.1:1, name: a}, {address: 10.0.0.2:1, name: b}]}}\n\
     listeners: [{address: \"127.0.0.1:1\", route: {by_operation: {read: {member: p/a}, default: p}}}]\n";

#[derive(Debug)]
struct Case {
    what: &'static str,
    request: &'static str,
    /// The failure happens before the request comes.
    before: fn(&mut World),
    /// The failure happens after the request was sent.
    after: fn(&mut World),
}

/// A world without anything special.
fn usual(_: &mut World) {}

fn late(world: &mut World) {
    world.pass(Duration::from_millis(1_200));
}

fn refuses(world: &mut World) {
    world.down.insert("a".into());
}

fn logs_in_with(world: &mut World, line: &str) {
    world.versions.insert("a".into(), format!("{line}\r\n"));
}

const GET: &str = "get k\r\n";
const CASES: &[Case] = &[
    Case {
        what: "timeout",
        request: GET,
        before: usual,
        after: late,
    },
    Case {
        what: "connection timeout",
        request: GET,
        before: |world| _ = world.unreachable.insert("a".into()),
        after: late,
    },
    Case {
        what: "connection refused",
        request: GET,
        before: refuses,
        after: usual,
    },
    Case {
        what: "Connection closed by the server",
        request: GET,
        before: usual,
        after: |world| world.leave(world.lane("a")),
    },
    Case {
        what: "cannot connect: Too many open files in this proxy",
        request: GET,
        before: |world| _ = world.short.insert("a".into()),
        after: usual,
    },
    Case {
        what: "malformed reply",
        request: GET,
        before: usual,
        after: |world| world.reply("a", "HTTP/1.1 400 Bad Request\r\n"),
    },
    Case {
        what: "reply without an end",
        request: GET,
        before: usual,
        after: |world| world.reply("a", "VALUE k 0 1\r\nxyzEND\r\n"),
    },
    Case {
        what: "malformed reply",
        request: GET,
        before: |world| logs_in_with(world, "220 mail.example ESMTP"),
        after: usual,
    },
    Case {
        what: "ERROR Too many open connections",
        request: GET,
        before: |world| logs_in_with(world, "ERROR Too many open connections"),
        after: usual,
    },
    Case {
        what: "memcached 1.5.22: meta commands need 1.6.10 or later",
        request: "mg k v\r\n",
        before: |world| logs_in_with(world, "VERSION 1.5.22"),
        after: usual,
    },
    Case {
        what: "it does not say its version (`ERROR`): meta commands need 1.6.10 or later",
        request: "mg k v\r\n",
        before: |world| logs_in_with(world, "ERROR"),
        after: usual,
    },
    Case {
        what: "ejected",
        request: GET,
        before: |world| {
            refuses(world);
            let first = world.client();
            world.say(first, GET.as_bytes());
        },
        after: usual,
    },
];

#[test]
fn every_failure_of_a_server_names_it() {
    each_row(CASES, |case| {
        let mut world = world("{member: p/a}");
        (case.before)(&mut world);
        let client = world.client();
        world.say(client, case.request.as_bytes());
        (case.after)(&mut world);
        let expected = format!("SERVER_ERROR 10.0.0.1:1: {}\r\n", case.what);
        assert_eq!(world.heard(client), expected, "{:?}", case.request);
    });
}

#[test]
fn copy_that_missed_writes_is_named_to_a_client_of_another_route() {
    let mut world = world_of(COPY);
    let copy = id(&world, "a");
    for state in [CopyState::Leaving, CopyState::Out] {
        world.engine.follow(copy, 1, state);
    }
    let client = world.client();
    world.say(client, GET.as_bytes());
    assert_eq!(
        world.heard(client),
        "SERVER_ERROR 10.0.0.1:1: it missed writes and is not asked before it is repaired\r\n"
    );
}

#[test]
fn server_for_which_too_many_bytes_wait_is_named() {
    const VALUE: usize = 60_000;
    let mut world = world("{all_sync: [{member: p/a}, null]}");
    world.unreachable.insert("a".into());
    let set = format!("set k 0 0 {VALUE}\r\n{}\r\n", "x".repeat(VALUE));
    let heard = (0..400).find_map(|_| {
        let client = world.client();
        world.say(client, set.as_bytes());
        Some(world.heard(client)).filter(|heard| !heard.is_empty())
    });
    let expected = "SERVER_ERROR 10.0.0.1:1: too many requests wait for it\r\n";
    assert_eq!(heard.as_deref(), Some(expected));
}

/// The error is made once for all requests that wait.
#[test]
fn all_requests_that_wait_for_a_server_get_the_same_error() {
    let mut world = world("{member: p/a}");
    let clients: Vec<usize> = (0..1_000).map(|_| world.client()).collect();
    for &client in &clients {
        world.say(client, b"get k\r\nget l\r\n");
    }
    late(&mut world);
    for &client in &clients {
        let line = "SERVER_ERROR 10.0.0.1:1: timeout\r\n";
        assert_eq!(world.heard(client), [line, line].concat());
    }
}
