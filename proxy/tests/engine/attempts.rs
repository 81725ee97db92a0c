//! Routes that go on to the next child, each time with the client's own request.

use crate::{rows::each_row, world::world};

const MISS: &str = "END\r\n";
const HIT: &str = "VALUE k 0 1\r\nx\r\nEND\r\n";
const ERROR: &str = "SERVER_ERROR busy\r\n";

/// One step: this member receives the request (as it then is) and sends this reply. Without a reply it closes
/// the connection.
type Step = (&'static str, &'static str, Option<&'static str>);

#[derive(Debug)]
struct Case {
    route: &'static str,
    request: &'static str,
    steps: &'static [Step],
    answer: &'static str,
}

const GET: &str = "get k\r\n";
const SET: &str = "set k 0 0 1\r\nx\r\n";
const TABLE: &[Case] = &[
    Case {
        route: "{failover: p}",
        request: GET,
        steps: &[("a", GET, Some(HIT))],
        answer: HIT,
    },
    Case {
        route: "{failover: p}",
        request: GET,
        steps: &[("a", GET, Some(MISS))],
        answer: MISS,
    },
    Case {
        route: "{failover: p}",
        request: GET,
        steps: &[("a", GET, Some(ERROR)), ("b", GET, Some(HIT))],
        answer: HIT,
    },
    Case {
        route: "{failover: p}",
        request: GET,
        steps: &[("a", GET, None), ("b", GET, None), ("c", GET, Some(HIT))],
        answer: HIT,
    },
    Case {
        route: "{failover: p}",
        request: GET,
        steps: &[("a", GET, None), ("b", GET, None), ("c", GET, Some(ERROR))],
        answer: ERROR,
    },
    // a child in the middle that answers at once
    Case {
        route: "{failover: [{member: p/a}, {error: gone}, {member: p/c}]}",
        request: GET,
        steps: &[("a", GET, Some(ERROR)), ("c", GET, Some(HIT))],
        answer: HIT,
    },
    Case {
        route: "{failover: [{error: gone}, {member: p/b}]}",
        request: SET,
        steps: &[("b", SET, Some("STORED\r\n"))],
        answer: "STORED\r\n",
    },
    Case {
        route: "{failover: [{member: p/a}, {error: gone}]}",
        request: SET,
        steps: &[("a", SET, Some(ERROR))],
        answer: "SERVER_ERROR gone\r\n",
    },
    // values that are stored elsewhere expire
    Case {
        route: "{failover_with_ttl: {normal: {member: p/a}, failover: [{member: p/b}], ttl: 60}}",
        request: SET,
        steps: &[
            ("a", SET, None),
            ("b", "set k 0 60 1\r\nx\r\n", Some("STORED\r\n")),
        ],
        answer: "STORED\r\n",
    },
    Case {
        route: "{failover_with_ttl: {normal: {member: p/a}, failover: [{member: p/b}], ttl: 60}}",
        request: "set k 0 5 1\r\nx\r\n",
        steps: &[
            ("a", "set k 0 5 1\r\nx\r\n", None),
            ("b", "set k 0 5 1\r\nx\r\n", Some("STORED\r\n")),
        ],
        answer: "STORED\r\n",
    },
    Case {
        route: "{failover_with_ttl: {normal: {member: p/a}, failover: [{member: p/b}], ttl: 60}}",
        request: "ma k N0 v\r\n",
        steps: &[
            ("a", "ma k N0 v\r\n", None),
            ("b", "ma k N60 v\r\n", Some("VA 1\r\n0\r\n")),
        ],
        answer: "VA 1\r\n0\r\n",
    },
    Case {
        route: "{failover_with_ttl: {normal: {member: p/a}, failover: [{member: p/b}], ttl: 60}}",
        request: "gat 100 k\r\n",
        steps: &[("a", "gat 100 k\r\n", None), ("b", "gat 60 k\r\n", Some(HIT))],
        answer: HIT,
    },
    // misses
    Case {
        route: "{miss_failover: p}",
        request: GET,
        steps: &[
            ("a", GET, Some(MISS)),
            ("b", GET, Some(MISS)),
            ("c", GET, Some(HIT)),
        ],
        answer: HIT,
    },
    Case {
        route: "{miss_failover: p}",
        request: GET,
        steps: &[
            ("a", GET, Some(MISS)),
            ("b", GET, Some(MISS)),
            ("c", GET, Some(ERROR)),
        ],
        answer: ERROR,
    },
    Case {
        route: "{miss_failover: {children: p, best_on_error: true}}",
        request: GET,
        steps: &[
            ("a", GET, Some(ERROR)),
            ("b", GET, Some(MISS)),
            ("c", GET, Some(ERROR)),
        ],
        answer: MISS,
    },
    Case {
        route: "{miss_failover: [\"null\", {member: p/b}, \"null\", {member: p/c}]}",
        request: GET,
        steps: &[("b", GET, Some(MISS)), ("c", GET, Some(HIT))],
        answer: HIT,
    },
    Case {
        route: "{miss_failover: p}",
        request: SET,
        steps: &[("a", SET, Some("NOT_STORED\r\n"))],
        answer: "NOT_STORED\r\n",
    },
];

#[test]
fn failover_asks_children_in_turn_until_one_answers() {
    each_row(TABLE, |case| {
        let name = case.route;
        let mut world = world(case.route);
        let client = world.client();
        world.say(client, case.request.as_bytes());
        for (member, heard, says) in case.steps {
            assert_eq!(world.heard(client), "", "{name}: too early");
            assert_eq!(world.sent(member), *heard, "{name}: {member}");
            match says {
                Some(text) => world.reply(member, text),
                None => world.die(member),
            }
        }
        assert_eq!(world.heard(client), case.answer, "{name}");
        for member in ["a", "b", "c", "d"] {
            assert_eq!(world.sent(member), "", "{name}: {member} was asked for nothing");
        }
        assert!(world.is_idle(), "{name}: something still waits");
    });
}

#[test]
fn refused_connections_fail_over_within_the_turn() {
    let mut world = world("{failover: p}");
    world.down.extend(["a".to_owned(), "b".to_owned()]);
    let client = world.client();
    world.say(client, b"get k\r\n");
    assert_eq!(world.sent("c"), "get k\r\n");
    world.reply("c", HIT);
    assert_eq!(world.heard(client), HIT);
}

/// Each of them is asked within the answer of the one before, and all of them within one request.
#[test]
fn thousands_of_children_that_answer_at_once_are_asked_in_turn_without_nesting() {
    let errors = "{error: gone}, ".repeat(5_000);
    let mut world = world(&format!("{{failover: [{errors}{{member: p/b}}]}}"));
    let client = world.client();
    world.say(client, b"get k\r\n");
    assert_eq!(world.sent("b"), "get k\r\n");
    world.reply("b", HIT);
    assert_eq!(world.heard(client), HIT);
    assert!(world.is_idle());
}

#[test]
fn an_ejected_child_is_passed_over_without_being_asked() {
    let mut world = crate::world::world_of(
        "pools:\n  p: {servers: [{address: 10.0.0.1:1, name: a}, {address: 10.0.0.2:1, name: b}], eject: {failures: 1}}\n\
         routes: {main: {failover: p}}\nlisteners: [{address: \"127.0.0.1:1\", route: main}]\n",
    );
    let client = world.client();
    world.say(client, b"get k\r\n");
    world.down.insert("a".into());
    world.leave(world.lane("a"));
    assert!(
        matches!(&world.engine.actions.events[..], [proxima::engine::WorkerEvent::Ejected(member, _)] if member.name == "a")
    );
    world.reply("b", HIT);
    world.sent("a");
    world.say(client, b"get k\r\n");
    assert_eq!(world.sent("a"), "");
    world.reply("b", MISS);
    assert_eq!(world.heard(client), format!("{HIT}{MISS}"));
}

#[test]
fn keys_of_one_get_fail_over_independently() {
    let mut world = world("{failover: p}");
    let client = world.client();
    world.say(client, b"get k l\r\n");
    assert_eq!(world.sent("a"), "get k\r\nget l\r\n");
    world.reply("a", "SERVER_ERROR busy\r\nVALUE l 0 1\r\ny\r\nEND\r\n");
    assert_eq!(world.sent("b"), "get k\r\n");
    world.reply("b", HIT);
    assert_eq!(
        world.heard(client),
        "VALUE k 0 1\r\nx\r\nVALUE l 0 1\r\ny\r\nEND\r\n"
    );
}
