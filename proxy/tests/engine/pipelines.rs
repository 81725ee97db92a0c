//! Many requests at once: their order, their budget, and the end of a connection.

use std::rc::Rc;

use proxima::{members::Failure, route::Tree};

use crate::world::{world, world_of};

#[test]
fn replies_of_several_members_leave_in_the_order_of_the_requests() {
    let mut world =
        world("{by_prefix: {prefixes: {a: {member: p/a}, b: {member: p/b}}, default: {member: p/c}}}");
    let client = world.client();
    world.say(client, b"get a1\r\nget b1\r\nset c1 0 0 1\r\nx\r\nversion\r\nget a2\r\nget b2 a3\r\nnonsense\r\ndelete b3\r\n");
    assert_eq!(world.sent("a"), "get a1\r\nget a2\r\nget a3\r\n", "one write");
    assert_eq!(world.sent("b"), "get b1\r\nget b2\r\ndelete b3\r\n");
    assert_eq!(world.sent("c"), "set c1 0 0 1\r\nx\r\n");
    world.reply("c", "STORED\r\n");
    world.reply("b", "END\r\nVALUE b2 0 1\r\ny\r\nEND\r\nDELETED\r\n");
    assert_eq!(world.heard(client), "");
    world.reply(
        "a",
        "VALUE a1 0 1\r\nx\r\nEND\r\nEND\r\nVALUE a3 0 1\r\nz\r\nEND\r\n",
    );
    let version = concat!("VERSION 1.6.18 proxima-", env!("CARGO_PKG_VERSION"), "\r\n");
    let expected = [
        "VALUE a1 0 1\r\nx\r\nEND\r\n",
        "END\r\n",
        "STORED\r\n",
        version,
        "END\r\n",
        "VALUE b2 0 1\r\ny\r\nVALUE a3 0 1\r\nz\r\nEND\r\n",
        "ERROR\r\n",
        "DELETED\r\n",
    ];
    assert_eq!(world.heard(client), expected.concat());
}

/// Requests of a pipeline into a pool are handled several at a time. This must not change where they go.
#[test]
fn requests_in_a_pipeline_go_to_the_same_members_as_alone() {
    let requests: Vec<String> = (0..40)
        .map(|number| match number % 13 {
            3 => format!("set k{number} 0 0 1\r\nx\r\n"),
            6 => format!("get k{number} l{number} m{number}\r\n"),
            8 => format!("mg a{number}bb b\r\n"),
            9 => format!("delete k{number} noreply\r\n"),
            11 => "version\r\n".to_owned(),
            _ => format!("get k{number}\r\n"),
        })
        .collect();
    for ejected in [false, true] {
        let sent = |pieces: &[String]| {
            let servers = ["a", "b", "c"].map(|name| format!("{{address: \"unix:/{name}\", name: {name}}}"));
            let mut world = world_of(&format!(
                "pools: {{p: {{servers: [{}]}}}}\nlisteners: [{{address: \"127.0.0.1:1\", route: p}}]\n",
                servers.join(", ")
            ));
            if ejected {
                world.engine.tree.members()[1].health.failed(Failure::Connection);
            }
            let client = world.client();
            for piece in pieces {
                world.say(client, piece.as_bytes());
            }
            ["a", "b", "c"].map(|member| world.sent(member))
        };
        let whole = sent(&[requests.concat()]);
        assert_eq!(whole, sent(&requests));
        assert_eq!(
            whole.iter().filter(|sent| sent.is_empty()).count(),
            usize::from(ejected)
        );
    }
}

#[test]
fn requests_of_many_clients_share_a_lane_and_a_write() {
    let mut world = world("{member: p/a}");
    let clients: Vec<usize> = (0..50).map(|_| world.client()).collect();
    for (number, &client) in clients.iter().enumerate() {
        let proxima::engine::Endpoint::Client(id) = world.seats[client].peer else {
            unreachable!()
        };
        world
            .engine
            .client_bytes(id, format!("get k{number}\r\n").as_bytes());
    }
    let lanes = world.engine.actions.flush.len();
    assert_eq!((lanes, world.engine.actions.connect.len()), (1, 1));
    world.turn();
    let replies: String = (0..50)
        .map(|number| format!("VALUE k{number} 0 1\r\nx\r\nEND\r\n"))
        .collect();
    world.reply("a", &replies);
    for (number, &client) in clients.iter().enumerate() {
        assert_eq!(
            world.heard(client),
            format!("VALUE k{number} 0 1\r\nx\r\nEND\r\n")
        );
    }
}

#[test]
fn a_half_closed_client_gets_every_reply() {
    for request in ["version\r\n", "get k\r\n"] {
        let mut world = world("embedded");
        let client = world.client();
        let proxima::engine::Endpoint::Client(id) = world.seats[client].peer else {
            unreachable!()
        };
        // The end of the stream comes in the same turn as the requests.
        world.engine.client_bytes(id, request.repeat(5000).as_bytes());
        world.engine.client_eof(id);
        world.turn();
        assert_eq!(world.heard(client).matches("\r\n").count(), 5000, "{request:?}");
        assert_eq!(world.seats[client].closed, Some(false), "and then it is closed");
    }
}

#[test]
fn half_a_request_of_a_half_closed_client_is_dropped() {
    let mut world = world("{member: p/a}");
    let client = world.client();
    world.say(client, b"get k\r\nget half");
    world.leave(client);
    assert_eq!(world.seats[client].closed, None, "a reply is due");
    world.reply("a", "END\r\n");
    assert_eq!(world.heard(client), "END\r\n");
    assert_eq!(world.seats[client].closed, Some(false));
}

#[test]
fn quit_closes_behind_pending_replies_and_drops_what_follows() {
    let mut world = world("{member: p/a}");
    let client = world.client();
    world.say(client, b"get k\r\nquit\r\nset k 0 0 1\r\nx\r\n");
    assert_eq!(world.sent("a"), "get k\r\n");
    world.reply("a", "END\r\n");
    assert_eq!(
        (world.heard(client).as_str(), world.seats[client].closed),
        ("END\r\n", Some(false))
    );
}

#[test]
fn a_draining_worker_closes_each_client_after_its_last_reply() {
    let mut world = world("{member: p/a}");
    let (idle, waiting) = (world.client(), world.client());
    world.say(waiting, b"get k\r\n");
    world.engine.clients.set_draining(true);
    for client in [idle, waiting] {
        world.engine.actions.flush.push(world.seats[client].peer);
    }
    world.turn();
    assert_eq!(
        (world.seats[idle].closed, world.seats[waiting].closed),
        (Some(false), None)
    );
    world.reply("a", "END\r\n");
    assert_eq!(
        (world.heard(waiting).as_str(), world.seats[waiting].closed),
        ("END\r\n", Some(false))
    );
}

#[test]
fn a_client_at_the_limit_of_requests_in_flight_is_not_read() {
    let mut world = world_of(
        "pools: {p: [10.0.0.1:1]}\nlimits: {requests_in_flight: 10}\nlisteners: [{address: \"127.0.0.1:1\", route: p}]\n",
    );
    let client = world.client();
    world.say(client, "get k\r\n".repeat(25).as_bytes());
    assert!(world.seats[client].paused);
    for round in [10, 10, 5] {
        assert_eq!(world.sent("10.0.0.1:1"), "get k\r\n".repeat(round));
        world.reply("10.0.0.1:1", &"END\r\n".repeat(round));
        assert_eq!(world.heard(client), "END\r\n".repeat(round));
    }
    assert!(!world.seats[client].paused);
}

#[test]
fn requests_in_flight_finish_in_the_tree_before_a_reload() {
    let mut world = world("{failover: p}");
    let client = world.client();
    world.say(client, b"get old\r\n");
    world.engine.tree = crate::world::world("{error: new}").engine.tree;
    world.say(client, b"get new\r\n");
    world.reply("a", "SERVER_ERROR busy\r\n");
    assert_eq!(world.sent("b"), "get old\r\n");
    world.reply("b", "END\r\n");
    assert_eq!(world.heard(client), "END\r\nSERVER_ERROR new\r\n");
}

#[test]
fn a_removed_listener_answers_errors() {
    let mut world = world("embedded");
    let Some(proxima::engine::Endpoint::Client(id)) = world.engine.open_client(0) else {
        unreachable!()
    };
    assert!(world.engine.open_client(7).is_none());
    world.engine.tree = Rc::new(Tree::empty());
    let large = format!("set k 0 0 100000\r\n{}\r\n", "v".repeat(100_000));
    for request in ["get k\r\n", "get k l\r\n", &large, "version\r\n"] {
        world.engine.client_bytes(id, request.as_bytes());
    }
    let out = String::from_utf8(world.engine.clients.stream(id).unwrap().out.clone()).unwrap();
    let lines: Vec<&str> = out.lines().map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(lines, ["SERVER_ERROR", "SERVER_ERROR", "SERVER_ERROR", "VERSION"]);
}
