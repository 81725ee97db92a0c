//! Requests for many keys: they are served in portions, as there is room, and before their end has come.

use std::time::Duration;

use proxima::reactor::Conn;

use crate::world::{world, world_of};

const KEYS: usize = 3000;

fn line(keys: usize) -> String {
    format!("get{}\r\n", " k".repeat(keys))
}

#[test]
fn a_get_of_many_keys_asks_for_a_bounded_number_at_a_time() {
    let mut world = world("{member: p/a}");
    let client = world.client();
    world.say(client, b"get k\r\n");
    world.reply("a", "END\r\n");
    assert_eq!(
        (world.heard(client).as_str(), world.sent("a").as_str()),
        ("END\r\n", "get k\r\n")
    );
    // From here on the engine expects small replies.
    for _ in 0..100 {
        world.say(client, b"get k\r\n");
        world.reply("a", "END\r\n");
    }
    world.sent("a");
    let proxima::engine::Endpoint::Client(id) = world.seats[client].peer else {
        unreachable!()
    };
    world.engine.client_bytes(id, line(KEYS).as_bytes());
    assert_eq!(world.engine.servers.in_flight(), 256);
    world.turn();
    assert_eq!(
        world.sent("a"),
        "get k\r\n".repeat(256),
        "more of one client would be a queue before others"
    );
    world.heard(client);
    let mut told = String::new();
    for served in (0..KEYS).step_by(256) {
        let due = (KEYS - served).min(256);
        assert_eq!(world.engine.servers.in_flight(), due, "behind {served}");
        world.reply("a", &"VALUE k 0 1\r\nx\r\nEND\r\n".repeat(due));
        told += &world.heard(client);
    }
    assert_eq!(told, "VALUE k 0 1\r\nx\r\n".repeat(KEYS) + "END\r\n");
}

#[test]
fn gets_of_many_keys_by_many_clients_delay_no_other_client() {
    let mut world = world("{member: p/a}");
    let clients: Vec<usize> = (0..100).map(|_| world.client()).collect();
    for &client in &clients {
        let known = 40;
        world.say(client, "get k\r\n".repeat(known).as_bytes());
        world.reply("a", &"END\r\n".repeat(known));
    }
    for &client in &clients {
        world.say(client, line(KEYS).as_bytes());
    }
    let asked = world.engine.servers.in_flight();
    assert!((4096..=4096 + 256 + 16 * 100).contains(&asked), "{asked}");
    let mut answered = 0;
    while answered < KEYS * clients.len() {
        let due = world.engine.servers.in_flight();
        assert!(due > 0 && due <= asked, "{due} after {answered}");
        world.reply("a", &"END\r\n".repeat(due));
        answered += due;
    }
    for client in clients {
        assert!(world.heard(client).ends_with("END\r\n"));
        assert_eq!(world.seats[client].closed, None);
    }
}

#[test]
fn a_half_closed_client_with_a_long_line_makes_way_for_waiting_clients() {
    let mut world = world("{member: p/a}");
    let [reads, unread, closed, late] = [0; 4].map(|_| world.client());
    for client in [reads, unread, closed] {
        world.say(client, line(KEYS).as_bytes());
    }
    world.pass(Duration::from_millis(900));
    world.say(late, line(KEYS).as_bytes());
    for client in [closed, late] {
        world.leave(client);
    }
    let has_unread = Conn::new(unread as u32, 0);
    let left = |conn| (conn == has_unread).then_some(1000);
    world.engine.make_way(&left);
    world.turn();
    assert!(world.seats.iter().all(|seat| seat.closed.is_none()));
    world.pass(Duration::from_millis(200));
    world.engine.make_way(&left);
    world.turn();
    let ends = [reads, unread, closed, late].map(|client| world.seats[client].closed);
    assert_eq!(ends, [None, Some(true), Some(true), None]);
}

#[test]
fn keys_with_replies_of_unknown_size_are_asked_for_as_there_is_room() {
    let mut world = world("{member: p/a}");
    let client = world.client();
    world.say(client, line(KEYS).as_bytes());
    let first = world.engine.servers.in_flight();
    assert!((1..100).contains(&first), "{first}");
    let mut answered = 0;
    while answered < KEYS {
        let due = world.engine.servers.in_flight();
        assert!(due > 0, "after {answered}");
        world.reply("a", &"END\r\n".repeat(due));
        answered += due;
    }
    assert_eq!((answered, world.heard(client).as_str()), (KEYS, "END\r\n"));
}

#[test]
fn a_long_line_is_served_before_its_end_has_come() {
    let mut world = world("{member: p/a}");
    let client = world.client();
    world.say(client, format!("gat 7{}", " k".repeat(2000)).as_bytes());
    let mut answered = 0;
    while world.engine.servers.in_flight() > 0 {
        let due = world.engine.servers.in_flight();
        world.reply("a", &"END\r\n".repeat(due));
        answered += due;
    }
    assert_eq!(answered, 1999, "the last key may go on");
    assert_eq!(world.sent("a"), "gat 7 k\r\n".repeat(1999));
    world.say(client, b"ey last\r\nversion\r\n");
    assert_eq!(world.sent("a"), "gat 7 key\r\ngat 7 last\r\n");
    world.reply("a", "END\r\nVALUE last 0 1\r\nx\r\nEND\r\n");
    let heard = world.heard(client);
    assert!(
        heard.starts_with("VALUE last 0 1\r\nx\r\nEND\r\nVERSION "),
        "{heard}"
    );
}

#[test]
fn a_line_is_skipped_behind_a_bad_key() {
    let mut world = world("{member: p/a}");
    let client = world.client();
    let long = "x".repeat(251);
    world.say(client, format!("get {long}{}", " k".repeat(2000)).as_bytes());
    world.say(client, b" flush_all\r\nget k\r\n");
    assert_eq!(world.sent("a"), "get k\r\n");
    world.reply("a", "END\r\n");
    assert_eq!(
        world.heard(client),
        "CLIENT_ERROR bad command line format\r\nEND\r\n"
    );
}

#[test]
fn embedded_replies_wait_until_their_reader_has_taken_the_earlier_ones() {
    let mut world = world("embedded");
    let client = world.client();
    let value = "v".repeat(100_000);
    world.say(client, format!("set b 0 0 100000\r\n{value}\r\n").as_bytes());
    assert_eq!(world.heard(client), "STORED\r\n");
    world.seats[client].frozen = true;
    world.say(client, format!("get{}\r\n", " b".repeat(1000)).as_bytes());
    let held = world.seats[client].backlog.len();
    let share = world.engine.limits.connection_bytes;
    assert!(
        held > 0 && world.engine.clients.memory() < 4 * share,
        "{}",
        world.engine.clients.memory()
    );
    let mut heard = String::new();
    for _ in 0..2000 {
        world.thaw(client);
        heard += &world.heard(client);
        if heard.ends_with("END\r\n") {
            break;
        }
    }
    let reply = format!("VALUE b 0 100000\r\n{value}\r\n");
    assert!(heard == reply.repeat(1000) + "END\r\n", "{} bytes", heard.len());
}

#[test]
fn the_largest_holder_of_memory_makes_room_for_waiting_clients() {
    let mut world = world_of(
        "limits: {total_bytes: 16MiB}\nroutes: {main: embedded}\n\
         listeners: [{address: \"127.0.0.1:1\", route: main}]\n",
    );
    let modest = world.client();
    let value = "v".repeat(500_000);
    world.say(
        modest,
        format!("set b 0 0 500000\r\n{value}\r\nset s 0 0 1\r\nx\r\n").as_bytes(),
    );
    let greedy: Vec<usize> = (0..40)
        .map(|_| {
            let client = world.client();
            world.seats[client].frozen = true;
            world.say(client, b"get b b b b\r\n");
            assert!(
                world.engine.clients.memory() <= 8 << 20,
                "a half for each of two workers"
            );
            client
        })
        .collect();
    world.heard(modest);
    world.say(modest, b"get s\r\n");
    assert_eq!(
        world.heard(modest),
        "VALUE s 0 1\r\nx\r\nEND\r\n",
        "small replies have a reserve"
    );
    world.pass(std::time::Duration::from_millis(300));
    assert!(
        greedy
            .iter()
            .any(|&client| world.seats[client].closed == Some(true))
    );
    assert_eq!(world.seats[modest].closed, None);
}

#[test]
fn half_a_request_ends_its_connection_after_request_timeout() {
    let mut world = world_of(
        "limits: {request_timeout: 5s}\nroutes: {main: embedded}\n\
         listeners: [{address: \"127.0.0.1:1\", route: main}]\n",
    );
    let (begun, busy, idle) = (world.client(), world.client(), world.client());
    world.say(begun, b"set k 0 0 100\r\nhalf");
    for _ in 0..4 {
        // The client is always in the middle of a request, but never in the same one for long.
        world.say(busy, b"get k\r\nget");
        world.pass(Duration::from_secs(2));
        world.say(busy, b" k\r\nget ");
        world.say(busy, b"k\r\n");
    }
    assert_eq!(world.seats[begun].closed, Some(true));
    assert_eq!((world.seats[busy].closed, world.seats[idle].closed), (None, None));
}
