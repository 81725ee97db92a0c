//! The time and the reply with which each wait rule answers.

use std::time::Duration;

use crate::{rows::each_row, world::world};

/// The fate of the request at one member.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Says(&'static str),
    /// The member closes each connection on which it is asked.
    Leaves,
    /// The member does not answer in time.
    Silent,
}

use Fate::{Leaves, Says, Silent};

const STORED: Fate = Says("STORED\r\n");
const NOT_STORED: Fate = Says("NOT_STORED\r\n");
const BROKEN: Fate = Says("SERVER_ERROR out of memory\r\n");
const X: Fate = Says("VALUE k 0 1\r\nx\r\nEND\r\n");
const Y: Fate = Says("VALUE k 0 1\r\ny\r\nEND\r\n");
const MISS: Fate = Says("END\r\n");

#[derive(Debug)]
struct Case {
    route: &'static str,
    request: &'static str,
    /// The members' fates, in the order in which they happen.
    fates: &'static [(&'static str, Fate)],
    /// The client has its answer after this many of them.
    after: usize,
    answer: &'static str,
}

const SET: &str = "set k 0 0 1\r\nx\r\n";
const GET: &str = "get k\r\n";
const TABLE: &[Case] = &[
    // all: the worst reply, when all have answered
    Case {
        route: "{all_sync: p}",
        request: SET,
        fates: &[("a", STORED), ("b", STORED), ("c", STORED)],
        after: 3,
        answer: "STORED\r\n",
    },
    Case {
        route: "{all_sync: p}",
        request: SET,
        fates: &[("c", BROKEN), ("a", STORED), ("b", STORED)],
        after: 3,
        answer: "SERVER_ERROR out of memory\r\n",
    },
    Case {
        route: "{all_sync: p}",
        request: SET,
        fates: &[("b", NOT_STORED), ("c", STORED), ("a", STORED)],
        after: 3,
        answer: "NOT_STORED\r\n",
    },
    Case {
        route: "{all_sync: p}",
        request: SET,
        fates: &[("b", Leaves), ("c", STORED), ("a", STORED)],
        after: 3,
        answer: "SERVER_ERROR 10.0.0.2:1: Connection closed by the server\r\n",
    },
    Case {
        route: "{all_sync: p}",
        request: SET,
        fates: &[("b", STORED), ("c", STORED), ("a", Silent)],
        after: 3,
        answer: "SERVER_ERROR 10.0.0.1:1: timeout\r\n",
    },
    Case {
        route: "{all_sync: p}",
        request: GET,
        fates: &[("a", X), ("b", MISS), ("c", X)],
        after: 3,
        answer: "END\r\n",
    },
    // majority: the reply of two of three that agree; else the most frequent one, and the worst of equals
    Case {
        route: "{all_majority: p}",
        request: SET,
        fates: &[("a", BROKEN), ("b", STORED), ("c", STORED)],
        after: 3,
        answer: "STORED\r\n",
    },
    Case {
        route: "{all_majority: p}",
        request: SET,
        fates: &[("c", STORED), ("b", STORED), ("a", BROKEN)],
        after: 2,
        answer: "STORED\r\n",
    },
    Case {
        route: "{all_majority: p}",
        request: SET,
        fates: &[("a", Leaves), ("b", Leaves), ("c", STORED)],
        after: 2,
        answer: "SERVER_ERROR 10.0.0.1:1: Connection closed by the server\r\n",
    },
    Case {
        route: "{all_majority: p}",
        request: SET,
        fates: &[("a", STORED), ("b", NOT_STORED), ("c", BROKEN)],
        after: 3,
        answer: "SERVER_ERROR out of memory\r\n",
    },
    // fastest: the first reply that is no error, else the last one
    Case {
        route: "{all_fastest: p}",
        request: GET,
        fates: &[("b", Y), ("a", X), ("c", X)],
        after: 1,
        answer: "VALUE k 0 1\r\ny\r\nEND\r\n",
    },
    Case {
        route: "{all_fastest: p}",
        request: GET,
        fates: &[("a", BROKEN), ("c", MISS), ("b", X)],
        after: 2,
        answer: "END\r\n",
    },
    Case {
        route: "{all_fastest: p}",
        request: GET,
        fates: &[("a", BROKEN), ("c", BROKEN), ("b", Leaves)],
        after: 3,
        answer: "SERVER_ERROR 10.0.0.2:1: Connection closed by the server\r\n",
    },
    // initial: the first child's reply, whatever the others answer
    Case {
        route: "{all_initial: p}",
        request: SET,
        fates: &[("b", BROKEN), ("c", Leaves), ("a", STORED)],
        after: 3,
        answer: "STORED\r\n",
    },
    Case {
        route: "{all_initial: p}",
        request: SET,
        fates: &[("a", BROKEN), ("b", STORED), ("c", STORED)],
        after: 1,
        answer: "SERVER_ERROR out of memory\r\n",
    },
    // none: a miss at once
    Case {
        route: "{all_async: p}",
        request: SET,
        fates: &[("a", STORED), ("b", BROKEN), ("c", Leaves)],
        after: 0,
        answer: "NOT_STORED\r\n",
    },
    // gathers of gathers
    Case {
        route: "{all_sync: [{all_fastest: p}, q]}",
        request: SET,
        fates: &[("b", STORED), ("d", STORED), ("a", BROKEN), ("c", Silent)],
        after: 2,
        answer: "STORED\r\n",
    },
];

#[test]
fn every_wait_rule_answers_at_its_time_with_the_right_reply() {
    each_row(TABLE, |case| {
        let name = format!("{} {:?}", case.route, case.fates);
        let mut world = world(case.route);
        let client = world.client();
        world.say(client, case.request.as_bytes());
        for (member, _) in case.fates {
            assert_eq!(world.sent(member), case.request, "{name}");
        }
        for (done, (member, fate)) in case.fates.iter().enumerate() {
            let expected = if done == case.after { case.answer } else { "" };
            assert_eq!(world.heard(client), expected, "{name} after {done}");
            match fate {
                Says(text) => world.reply(member, text),
                Leaves => world.leave_twice(member),
                Silent => world.pass(Duration::from_millis(1200)),
            }
        }
        let expected = if case.after == case.fates.len() {
            case.answer
        } else {
            ""
        };
        assert_eq!(world.heard(client), expected, "{name} at the end");
        assert!(world.is_idle(), "{name}: something still waits");
        assert_eq!(world.engine.servers.in_flight(), 0, "{name}");
        // The client's connection is still usable.
        world.say(client, b"version\r\n");
        assert!(world.heard(client).starts_with("VERSION "), "{name}");
    });
}

#[test]
fn flush_all_goes_to_every_member_below_and_the_worst_reply_stands_for_all() {
    let mut world = world("{by_operation: {read: {nearest: p}, default: q}}");
    let client = world.client();
    world.say(client, b"flush_all\r\n");
    for member in ["a", "b", "c", "d"] {
        assert_eq!(world.sent(member), "flush_all\r\n", "{member}");
        assert_eq!(world.heard(client), "");
        world.reply(
            member,
            if member == "b" {
                "SERVER_ERROR no\r\n"
            } else {
                "OK\r\n"
            },
        );
    }
    assert_eq!(world.heard(client), "SERVER_ERROR no\r\n");
}

#[test]
fn the_fastest_of_several_large_replies_is_streamed_and_the_others_dropped() {
    let mut world = world("{all_fastest: p}");
    let client = world.client();
    world.say(client, b"get k\r\nget k\r\n");
    let value = "v".repeat(100_000);
    let large = format!("VALUE k 0 100000\r\n{value}\r\nEND\r\n");
    for member in ["b", "a", "c"] {
        let lane = world.lane(member);
        for piece in large.as_bytes().chunks(30_000) {
            world.say(lane, piece);
        }
    }
    assert!(world.heard(client) == large);
    for member in ["c", "a"] {
        world.reply(member, "END\r\n");
    }
    assert_eq!(world.heard(client), "END\r\n");
}
