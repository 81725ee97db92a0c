//! The error that a client gets begins with the address of the server that failed, whatever the failure is.

use std::time::Duration;

use proxima::{
    copies::CopyState,
    engine::{Endpoint, WorkerEvent},
};

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
/// The failure of a server that answers a request with the reply to another one.
const FOREIGN: &str = "malformed reply: it names another key than was asked for";
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
        after: |world| world.leave_twice("a"),
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
        what: FOREIGN,
        request: GET,
        before: usual,
        after: |world| world.reply("a", "VALUE j 0 1\r\nx\r\nEND\r\n"),
    },
    Case {
        what: FOREIGN,
        request: GET,
        before: usual,
        after: |world| world.reply("a", "VALUE kk 0 1\r\nx\r\nEND\r\n"),
    },
    Case {
        what: FOREIGN,
        request: "gets user:000001:name\r\n",
        before: usual,
        after: |world| world.reply("a", "VALUE user:000002:name 0 1 7\r\nx\r\nEND\r\n"),
    },
    Case {
        what: FOREIGN,
        request: "gat 5 k\r\n",
        before: usual,
        // Its value is passed on as it comes.
        after: |world| world.reply("a", "VALUE j 0 1000000\r\n"),
    },
    Case {
        what: FOREIGN,
        request: "mg k k v\r\n",
        before: usual,
        after: |world| world.reply("a", "VA 1 kj\r\nx\r\n"),
    },
    Case {
        what: FOREIGN,
        request: "ms k 1 k\r\nx\r\n",
        before: usual,
        after: |world| world.reply("a", "HD kj\r\n"),
    },
    Case {
        what: FOREIGN,
        request: "mg aw== b k v\r\n",
        before: usual,
        after: |world| world.reply("a", "VA 1 kag== b\r\nx\r\n"),
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
fn replies_that_name_the_key_in_any_form_reach_the_client() {
    let table = [
        ("get k\r\n", "VALUE k 0 1\r\nx\r\nEND\r\n"),
        ("get k\r\n", "END\r\n"),
        ("gat 5 user:000001\r\n", "VALUE user:000001 4 1 9\r\nx\r\nEND\r\n"),
        ("mg k k v\r\n", "VA 1 kk\r\nx\r\n"),
        ("mg k k v\r\n", "EN\r\n"),
        ("mg aw== b k v\r\n", "VA 1 kaw== b\r\nx\r\n"),
        // The item was stored under the same bytes in base64.
        ("mg k k v\r\n", "VA 1 kaw== b\r\nx\r\n"),
        // A last group whose unused bits are not 0 is the same key.
        ("mg ax== b k v\r\n", "VA 1 kaw== b\r\nx\r\n"),
        ("md k k q\r\nmn\r\n", "NF kk\r\n"),
    ];
    each_row(table, |(request, reply)| {
        let mut world = world("{member: p/a}");
        let client = world.client();
        world.say(client, request.as_bytes());
        world.reply("a", reply);
        let heard = world.heard(client);
        assert!(
            !heard.contains("SERVER_ERROR") && (request.contains(" q") || heard == *reply),
            "{request:?}: {heard}"
        );
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

/// A server that is ejected by its first failure.
const STRICT: &str = "pools: {p: {servers: [{address: 10.0.0.1:1, name: a}], eject: {failures: 1}}}\n\
     listeners: [{address: \"127.0.0.1:1\", route: {member: p/a}}]\n";
const HIT: &str = "VALUE k 0 1\r\nx\r\nEND\r\n";

fn is_ejected(world: &World) -> bool {
    let mut events = world.engine.actions.events.iter();
    events.any(|event| matches!(event, WorkerEvent::Ejected(..)))
}

#[test]
fn a_server_that_closes_a_connection_is_asked_on_another_one_and_not_ejected() {
    let mut world = world_of(STRICT);
    let client = world.client();
    for number in 1..10 {
        world.say(client, b"set k 0 0 1\r\nx\r\n");
        world.leave(world.lane("a"));
        let expected = "SERVER_ERROR 10.0.0.1:1: Connection closed by the server\r\n";
        assert_eq!(world.heard(client), expected);
        assert_eq!(world.lanes("a").len(), number + 1, "it was made at once");
    }
    assert!(!is_ejected(&world));
    world.sent("a");
    world.say(client, GET.as_bytes());
    assert_eq!(world.sent("a"), GET);
    world.reply("a", HIT);
    assert_eq!(world.heard(client), HIT);
    // Nobody is there any more.
    refuses(&mut world);
    world.leave(world.lane("a"));
    assert!(!is_ejected(&world), "it was idle, and nobody has asked");
    world.say(client, GET.as_bytes());
    assert!(is_ejected(&world));
}

#[test]
fn a_server_whose_next_connection_is_refused_is_ejected_before_anybody_asks() {
    for (what, spoil) in [
        ("refused", refuses as fn(&mut World)),
        ("late", |world| _ = world.unreachable.insert("a".into())),
    ] {
        let mut world = world_of(STRICT);
        let client = world.client();
        world.say(client, GET.as_bytes());
        spoil(&mut world);
        world.leave(world.lane("a"));
        late(&mut world);
        assert!(is_ejected(&world), "{what}");
    }
}

#[test]
fn a_request_of_which_nothing_was_sent_goes_to_the_next_connection() {
    let mut world = world_of(STRICT);
    let client = world.client();
    // The server closes the first connections before it says anything.
    world.frozen.insert("a".into());
    world.say(client, b"set k 0 0 1\r\nx\r\nget k\r\n");
    world.leave(world.lane("a"));
    world.leave(world.lane("a"));
    assert!(!is_ejected(&world));
    assert_eq!(world.heard(client), "");
    world.frozen.clear();
    world.thaw(world.lane("a"));
    assert_eq!(world.sent("a"), "set k 0 0 1\r\nx\r\nget k\r\n");
    world.reply("a", "STORED\r\n");
    world.reply("a", HIT);
    assert_eq!(world.heard(client), format!("STORED\r\n{HIT}"));
    // The connection is lost in the turn in which a client has asked.
    world.say(client, b"delete k\r\n");
    let Endpoint::Client(id) = world.seats[client].peer else {
        panic!("a client");
    };
    world.sent("a");
    world.engine.client_bytes(id, b"set k 0 0 1\r\ny\r\n");
    world.leave(world.lane("a"));
    assert_eq!(world.sent("a"), "set k 0 0 1\r\ny\r\n");
    world.reply("a", "STORED\r\n");
    let closed = "SERVER_ERROR 10.0.0.1:1: Connection closed by the server\r\n";
    assert_eq!(world.heard(client), format!("{closed}STORED\r\n"));
    assert_eq!(world.engine.servers.in_flight(), 0);
}

#[test]
fn a_server_that_says_nothing_on_any_connection_is_ejected() {
    let mut world = world_of(STRICT);
    let client = world.client();
    world.frozen.insert("a".into());
    world.say(client, GET.as_bytes());
    for lost in 1..=3 {
        assert!(!is_ejected(&world), "{lost}");
        world.leave(world.lane("a"));
    }
    assert!(is_ejected(&world));
    let closed = "SERVER_ERROR 10.0.0.1:1: Connection closed by the server\r\n";
    assert_eq!(world.heard(client), closed);
    assert_eq!(world.engine.servers.in_flight(), 0);
}

#[test]
fn a_server_that_refuses_one_more_connection_is_not_ejected_while_it_serves_another() {
    let mut world = world_of(STRICT);
    let client = world.client();
    world.say(client, GET.as_bytes());
    world.reply("a", HIT);
    assert_eq!(world.heard(client), HIT);
    let full = "ERROR Too many open connections";
    logs_in_with(&mut world, full);
    let value = "x".repeat(100_000);
    for _ in 0..3 {
        world.say(client, format!("set k 0 0 100000\r\n{value}\r\n").as_bytes());
        assert_eq!(
            world.heard(client),
            format!("SERVER_ERROR 10.0.0.1:1: {full}\r\n")
        );
    }
    assert!(!is_ejected(&world));
    let other = world.lanes("a")[0];
    world.leave(other);
    world.say(client, GET.as_bytes());
    assert!(is_ejected(&world), "it serves nobody");
}

/// What a client is answered for a request that may have been executed.
const CLOSED: &str = "SERVER_ERROR 10.0.0.1:1: Connection closed by the server\r\n";

#[test]
fn reads_on_a_connection_that_is_lost_are_sent_again_and_changes_are_not() {
    let mut world = world("{member: p/a}");
    let (first, second) = (world.client(), world.client());
    let requests =
        "get k\r\nset k 0 0 1\r\nx\r\nset l 0 0 1 noreply\r\nx\r\nincr k 1\r\nmg k k v\r\nget l\r\n";
    world.say(first, requests.as_bytes());
    world.say(second, b"get m\r\n");
    world.sent("a");
    // What was answered is not asked again.
    world.reply("a", HIT);
    assert_eq!(world.heard(first), HIT);
    world.leave(world.lane("a"));
    assert_eq!(world.sent("a"), "mg k k v\r\nget l\r\nget m\r\n");
    world.reply("a", "VA 1 kk\r\nx\r\nEND\r\nEND\r\n");
    assert_eq!(
        world.heard(first),
        format!("{CLOSED}{CLOSED}VA 1 kk\r\nx\r\nEND\r\n")
    );
    assert_eq!(world.heard(second), "END\r\n");
    assert!(world.is_idle());
    assert_eq!(world.engine.servers.in_flight(), 0);
}

#[test]
fn a_read_at_which_two_connections_end_is_asked_nowhere_any_more_and_those_behind_it_are_answered() {
    let mut world = world("{failover: p}");
    let (strange, other) = (world.client(), world.client());
    world.say(strange, b"get strange\r\n");
    world.say(other, b"get k\r\nget l\r\n");
    assert_eq!(world.sent("a"), "get strange\r\nget k\r\nget l\r\n");
    world.leave(world.lane("a"));
    assert_eq!(world.sent("a"), "get strange\r\nget k\r\nget l\r\n");
    world.leave(world.lane("a"));
    assert_eq!(world.heard(strange), CLOSED);
    assert_eq!(world.sent("a"), "get k\r\nget l\r\n");
    // Now it is the first of these at which a connection ends.
    world.leave(world.lane("a"));
    assert_eq!(world.sent("a"), "get k\r\nget l\r\n");
    world.reply("a", "END\r\nEND\r\n");
    assert_eq!(world.heard(other), "END\r\nEND\r\n");
    for member in ["b", "c"] {
        assert_eq!(world.sent(member), "", "{member}");
    }
    assert!(!is_ejected(&world));
    assert_eq!(world.engine.servers.in_flight(), 0);
}

#[test]
fn a_large_request_at_which_a_connection_ends_is_asked_of_no_other_server() {
    for (size, asks_others) in [(16 << 10, false), (15 << 10, true)] {
        let mut world = world("{failover: p}");
        let client = world.client();
        let set = format!("set k 0 0 {size}\r\n{}\r\n", "x".repeat(size));
        world.say(client, set.as_bytes());
        assert_eq!(world.sent("a"), set);
        world.leave(world.lane("a"));
        assert_eq!(
            world.heard(client),
            if asks_others { "" } else { CLOSED },
            "{size}"
        );
        assert_eq!(world.sent("b"), if asks_others { &set } else { "" }, "{size}");
    }
}

#[test]
fn what_was_sent_is_kept_until_it_is_answered_and_no_longer() {
    let mut world = world("{member: p/a}");
    let client = world.client();
    let lane = |world: &mut World| {
        let Endpoint::Lane(id) = world.seats[world.lane("a")].peer else {
            panic!("a lane");
        };
        world.engine.servers.stream(id).unwrap().kept
    };
    for _ in 0..3 {
        world.say(client, b"get k\r\nget l\r\n");
        world.reply("a", "END\r\n");
        assert_eq!(lane(&mut world), b"get k\r\nget l\r\n".len());
        world.reply("a", "END\r\n");
        assert_eq!(lane(&mut world), 0);
    }
    // Of large requests nothing is kept, and the small ones among them are.
    let set = format!("set k 0 0 9000\r\n{}\r\n", "x".repeat(9_000));
    world.say(client, b"mg k k v\r\n");
    world.say(client, format!("{set}get k\r\n{set}mg l k v\r\n").as_bytes());
    world.sent("a");
    assert_eq!(lane(&mut world), b"mg k k v\r\nget k\r\nmg l k v\r\n".len());
    world.reply("a", "EN\r\nSTORED\r\n");
    world.heard(client);
    world.leave(world.lane("a"));
    assert_eq!(world.sent("a"), "get k\r\nmg l k v\r\n");
    world.reply("a", "END\r\nVA 1 kl\r\nx\r\n");
    assert_eq!(world.heard(client), format!("END\r\n{CLOSED}VA 1 kl\r\nx\r\n"));
    // A pipeline that never ends keeps what is not answered, and half as much again at most.
    let get = format!("get {}\r\n", "k".repeat(240));
    world.say(client, get.repeat(100).as_bytes());
    for _ in 0..1_000 {
        world.say(client, get.as_bytes());
        world.reply("a", "END\r\n");
        assert!(lane(&mut world) <= 202 * get.len());
    }
    world.leave(world.lane("a"));
    world.sent("a");
    // Keys are compared wherever the request stands among those that are kept.
    for _ in 0..99 {
        world.reply("a", &format!("VALUE {} 0 1\r\nx\r\nEND\r\n", "k".repeat(240)));
    }
    world.heard(client);
    world.reply("a", &format!("VALUE {}l 0 1\r\nx\r\nEND\r\n", "k".repeat(239)));
    assert!(world.heard(client).ends_with(&format!("{FOREIGN}\r\n")));
}
