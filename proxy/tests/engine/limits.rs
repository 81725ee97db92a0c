//! Routes that copy requests or limit them.

use std::time::Duration;

use crate::{rows::each_row, world::world};

const SHADOW: &str = "{shadow: {child: {member: p/a}, shadows: [{target: {member: p/b}}]}}";

#[test]
fn shadows_get_copies_whose_replies_nobody_gets() {
    let set = "set k 0 0 1\r\nx\r\n";
    let table = [
        (SHADOW, "get k\r\n", "get k\r\n"),
        (SHADOW, set, set),
        (
            "{shadow: {child: {member: p/a}, shadows: [{target: {member: p/b}, keys: [k]}]}}",
            "get k|#|x\r\n",
            "get k|#|x\r\n",
        ),
        (
            "{shadow: {child: {member: p/a}, shadows: [{target: {member: p/b}, keys: [l]}]}}",
            "get k\r\n",
            "",
        ),
        (
            "{shadow: {child: {member: p/a}, shadows: [{target: {member: p/b}, key_range: [0, 0.1]}]}}",
            "get f7\r\n",
            "get f7\r\n",
        ),
        (
            "{shadow: {child: {member: p/a}, shadows: [{target: {member: p/b}, key_range: [0, 0.1]}]}}",
            "get f8\r\n",
            "",
        ),
        (
            "{shadow: {child: {member: p/a}, shadows: [{target: {member: p/b}, share: 0}]}}",
            "get k\r\n",
            "",
        ),
    ];
    each_row(table, |(route, request, copied)| {
        let mut world = world(route);
        let client = world.client();
        world.say(client, request.as_bytes());
        assert_eq!(world.sent("a"), *request, "{route}");
        assert_eq!(world.sent("b"), *copied, "{route}");
        if !copied.is_empty() {
            world.reply("b", "SERVER_ERROR busy\r\n");
        }
        assert_eq!(world.heard(client), "", "{route}");
        world.reply("a", "SERVER_ERROR so\r\n");
        assert_eq!(world.heard(client), "SERVER_ERROR so\r\n", "{route}");
        assert!(world.is_idle(), "{route}");
    });
}

#[test]
fn copies_beyond_the_limit_of_a_shadow_are_dropped() {
    let mut world =
        world("{shadow: {child: {member: p/a}, shadows: [{target: {member: p/b}, in_flight: 2}]}}");
    let client = world.client();
    world.say(client, b"get a\r\nget b\r\nget c\r\n");
    assert_eq!(world.sent("a"), "get a\r\nget b\r\nget c\r\n");
    assert_eq!(world.sent("b"), "get a\r\nget b\r\n");
    world.reply("a", "END\r\nEND\r\nEND\r\n");
    assert_eq!(world.heard(client), "END\r\nEND\r\nEND\r\n");
    world.reply("b", "END\r\n");
    world.say(client, b"get d\r\n");
    assert_eq!(world.sent("b"), "get d\r\n");
}

#[test]
fn a_large_reply_of_a_shadow_makes_room_for_the_next_copy() {
    let mut world =
        world("{shadow: {child: {member: p/a}, shadows: [{target: {member: p/b}, in_flight: 1}]}}");
    let client = world.client();
    for _ in 0..3 {
        world.say(client, b"get k\r\n");
        assert_eq!(world.sent("b"), "get k\r\n");
        let value = "v".repeat(200_000);
        world.reply("b", &format!("VALUE k 0 200000\r\n{value}\r\nEND\r\n"));
        world.reply("a", "END\r\n");
        assert_eq!(world.heard(client), "END\r\n");
    }
}

#[test]
fn requests_beyond_the_limit_wait_and_clients_take_turns() {
    let mut world = world("{outstanding_limit: {child: {member: p/a}, requests: 1}}");
    let (first, second) = (world.client(), world.client());
    world.say(first, b"get a\r\nget b\r\nget c\r\n");
    world.say(second, b"get x\r\n");
    let mut order = Vec::new();
    for _ in 0..4 {
        order.push(world.sent("a"));
        world.reply("a", "END\r\n");
    }
    assert_eq!(order, ["get a\r\n", "get b\r\n", "get x\r\n", "get c\r\n"]);
    assert_eq!(world.heard(first), "END\r\nEND\r\nEND\r\n");
    assert_eq!(world.heard(second), "END\r\n");
    assert!(world.is_idle());
}

#[test]
fn a_dead_server_answers_all_that_wait_for_it() {
    let mut world = world("{outstanding_limit: {child: {member: p/a}, requests: 1}}");
    let client = world.client();
    let many = "get k\r\n".repeat(5000);
    world.say(client, many.as_bytes());
    assert_eq!(world.sent("a"), "get k\r\n");
    world.down.insert("a".to_owned());
    world.leave(world.lane("a"));
    let answers = world.heard(client);
    assert_eq!(answers.lines().count(), 5000);
    assert!(answers.lines().all(|line| line.starts_with("SERVER_ERROR ")));
    assert!(world.is_idle());
}

#[test]
fn requests_of_a_client_that_left_do_not_take_the_place_of_others() {
    let mut world = world("{outstanding_limit: {child: {member: p/a}, requests: 1}}");
    let (gone, stays) = (world.client(), world.client());
    world.say(gone, b"get a\r\nget b\r\nget c\r\n");
    world.say(stays, b"get x\r\n");
    world.reset(gone);
    assert_eq!(world.sent("a"), "get a\r\n");
    world.reply("a", "END\r\n");
    assert_eq!(world.sent("a"), "get x\r\n");
    world.reply("a", "END\r\n");
    assert_eq!(world.heard(stays), "END\r\n");
    assert!(world.is_idle());
}

#[test]
fn what_is_over_the_rate_is_answered_as_by_an_empty_cache_or_goes_elsewhere() {
    let limit =
        "{rate_limit: {child: {member: p/a}, gets: {rate: 1, burst: 2}, sets: 1, fallback: {member: p/b}}}";
    for (route, elsewhere) in [
        (limit.to_owned(), true),
        (limit.replace(", fallback: {member: p/b}", ""), false),
    ] {
        let mut world = world(&route);
        let client = world.client();
        world.say(client, b"get k\r\nget k\r\nget k\r\nincr k 1\r\ndelete k\r\n");
        assert_eq!(world.sent("a"), "get k\r\nget k\r\nincr k 1\r\ndelete k\r\n");
        assert_eq!(world.sent("b"), if elsewhere { "get k\r\n" } else { "" });
        world.reply("a", "END\r\nEND\r\n1\r\nDELETED\r\n");
        if elsewhere {
            world.reply("b", "END\r\n");
        }
        assert_eq!(world.heard(client), "END\r\nEND\r\nEND\r\n1\r\nDELETED\r\n");
        world.say(client, b"set k 0 0 1\r\nx\r\nset k 0 0 1\r\nx\r\n");
        assert_eq!(world.sent("a"), "set k 0 0 1\r\nx\r\n");
        world.reply("a", "STORED\r\n");
        if elsewhere {
            world.reply("b", "NOT_STORED\r\n");
        }
        assert_eq!(world.heard(client), "STORED\r\nNOT_STORED\r\n");
        world.pass(Duration::from_secs(1));
        world.say(client, b"get k\r\n");
        assert_eq!(world.sent("a"), "get k\r\n");
    }
}

#[test]
fn listed_keys_have_a_route_of_their_own() {
    let mut world = world("{by_key: {keys: [k], listed: \"null\", default: {member: p/a}}}");
    let client = world.client();
    world.say(client, b"get k\r\nget l\r\n");
    assert_eq!(world.sent("a"), "get l\r\n");
}

#[test]
fn requests_that_fail_over_have_the_tag_behind_a_stop() {
    let table = [
        ("get k|#|x\r\n", "get k|#|x:failover=1\r\n"),
        ("get k\r\n", "get k\r\n"),
    ];
    each_row(table, |(request, tagged)| {
        let mut world = world("{failover: {children: [{member: p/a}, {member: p/b}], tag: true}}");
        let client = world.client();
        world.say(client, request.as_bytes());
        assert_eq!(world.sent("a"), *request);
        world.reply("a", "SERVER_ERROR busy\r\n");
        assert_eq!(world.sent("b"), *tagged);
        let key = tagged.trim_start_matches("get ").trim_end();
        world.reply("b", &format!("VALUE {key} 0 1\r\nv\r\nEND\r\n"));
        let key = request.trim_start_matches("get ").trim_end();
        assert_eq!(world.heard(client), format!("VALUE {key} 0 1\r\nv\r\nEND\r\n"));
    });
}
