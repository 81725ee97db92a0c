//! Requests that a route changes or delays on their way, and the replies to them.

use std::time::Duration;

use crate::{rows::each_row, world::world};

/// A row: the route, the client's request, what `a` receives, its reply, and what the client receives.
const TABLE: &[(&str, &str, &str, &str, &str)] = &[
    (
        "{modify_key: {child: {member: p/a}, ensure_prefix: \"x:\"}}",
        "get k\r\n",
        "get x:k\r\n",
        "VALUE x:k 0 1\r\nv\r\nEND\r\n",
        "VALUE k 0 1\r\nv\r\nEND\r\n",
    ),
    (
        "{modify_key: {child: {member: p/a}, ensure_prefix: \"x:\"}}",
        "get k l\r\n",
        "get x:k\r\nget x:l\r\n",
        "VALUE x:k 0 1\r\nv\r\nEND\r\nVALUE x:l 0 1\r\nw\r\nEND\r\n",
        "VALUE k 0 1\r\nv\r\nVALUE l 0 1\r\nw\r\nEND\r\n",
    ),
    (
        "{modify_key: {child: {member: p/a}, ensure_prefix: \"x:\"}}",
        "mg k v k\r\n",
        "mg x:k v k\r\n",
        "VA 1 kx:k\r\nv\r\n",
        "VA 1 kk\r\nv\r\n",
    ),
    (
        "{modify_key: {child: {member: p/a}, ensure_prefix: \"x:\"}}",
        "set x:k 0 0 1\r\nv\r\n",
        "set x:k 0 0 1\r\nv\r\n",
        "STORED\r\n",
        "STORED\r\n",
    ),
    (
        "{modify_ttl: {child: {member: p/a}, ttl: 5}}",
        "set k 0 60 1\r\nv\r\n",
        "set k 0 5 1\r\nv\r\n",
        "STORED\r\n",
        "STORED\r\n",
    ),
    (
        "{log: {member: p/a}}",
        "delete k\r\n",
        "delete k\r\n",
        "NOT_FOUND\r\n",
        "NOT_FOUND\r\n",
    ),
    // a key that is changed below a failover is the client's own again above it
    (
        "{failover: [{error: no}, {modify_key: {child: {member: p/a}, ensure_prefix: \"y:\"}}]}",
        "gets k\r\n",
        "gets y:k\r\n",
        "VALUE y:k 0 1 7\r\nv\r\nEND\r\n",
        "VALUE k 0 1 7\r\nv\r\nEND\r\n",
    ),
];

#[test]
fn modify_routes_change_requests_and_replies_on_their_way() {
    each_row(TABLE, |(route, request, sent, reply, heard)| {
        let mut world = world(route);
        let client = world.client();
        world.say(client, request.as_bytes());
        assert_eq!(world.sent("a"), *sent, "{route}");
        world.reply("a", reply);
        assert_eq!(world.heard(client), *heard, "{route}");
        assert!(world.is_idle(), "{route}");
    });
}

#[test]
fn a_large_reply_through_modify_key_has_the_clients_key() {
    let mut world = world("{modify_key: {child: {member: p/a}, ensure_prefix: \"long-prefix:\"}}");
    let client = world.client();
    world.say(client, b"get k\r\n");
    let value = "v".repeat(200_000);
    world.reply(
        "a",
        &format!("VALUE long-prefix:k 0 200000\r\n{value}\r\nEND\r\n"),
    );
    assert!(world.heard(client) == format!("VALUE k 0 200000\r\n{value}\r\nEND\r\n"));
}

#[test]
fn a_delayed_request_goes_on_after_its_delay() {
    let mut world = world("{fault: {child: {member: p/a}, delay: 300ms}}");
    let client = world.client();
    world.say(client, b"get k\r\n");
    world.pass(Duration::from_millis(250));
    assert!(world.lanes("a").is_empty());
    world.pass(Duration::from_millis(100));
    assert_eq!(world.sent("a"), "get k\r\n");
    world.reply("a", "END\r\n");
    assert_eq!(world.heard(client), "END\r\n");
}

#[test]
fn a_delayed_request_may_be_answered_within_its_walk() {
    let mut world = world("{fault: {child: \"null\", delay: 100ms}}");
    let client = world.client();
    world.say(client, b"get k\r\n");
    world.pass(Duration::from_millis(150));
    assert_eq!(world.heard(client), "END\r\n");
    assert!(world.is_idle());
}

#[test]
fn a_request_that_a_fault_route_fails_is_delayed_too() {
    let mut world = world("{fault: {child: {member: p/a}, delay: 300ms, error_rate: 1}}");
    let client = world.client();
    world.say(client, b"get k\r\n");
    world.pass(Duration::from_millis(250));
    assert_eq!(world.heard(client), "");
    world.pass(Duration::from_millis(100));
    assert_eq!(
        world.heard(client),
        "SERVER_ERROR fault injected by the route\r\n"
    );
    assert!(world.is_idle() && world.lanes("a").is_empty());
}

#[test]
fn a_streamed_request_is_not_delayed() {
    let mut world = world("{fault: {child: {member: p/a}, delay: 100ms}}");
    let client = world.client();
    let request = format!("set k 0 0 100000\r\n{}\r\n", "v".repeat(100_000));
    world.say(client, request.as_bytes());
    assert!(world.sent("a") == request);
    world.reply("a", "STORED\r\n");
    assert_eq!(world.heard(client), "STORED\r\n");
}

#[test]
fn a_delayed_reply_comes_after_its_delay() {
    let mut world = world("{fault: {child: {member: p/a}, delay_after: 300ms}}");
    let client = world.client();
    world.say(client, b"get k\r\n");
    world.pass(Duration::from_millis(500));
    world.reply("a", "END\r\n");
    world.pass(Duration::from_millis(250));
    assert_eq!(world.heard(client), "");
    world.pass(Duration::from_millis(100));
    assert_eq!(world.heard(client), "END\r\n");
    assert!(world.is_idle());
}

#[test]
fn a_request_takes_the_whole_time_however_soon_the_server_answers() {
    for (answered, heard) in [(100, 500), (400, 500), (700, 700)] {
        let mut world = world("{fault: {child: {member: p/a}, delay: 50ms, total: 500ms}}");
        let client = world.client();
        world.say(client, b"get k\r\n");
        world.pass(Duration::from_millis(answered));
        world.reply("a", "END\r\n");
        if answered < heard {
            assert_eq!(world.heard(client), "", "{answered}");
            world.pass(Duration::from_millis(heard - answered));
        }
        assert_eq!(world.heard(client), "END\r\n", "{answered}");
        assert!(world.is_idle());
    }
}

#[test]
fn an_error_is_delayed_as_a_reply_is() {
    let mut world = world("{fault: {child: {member: p/a}, delay_after: 300ms}}");
    world.down.insert("a".to_owned());
    let client = world.client();
    world.say(client, b"get k\r\n");
    assert_eq!(world.heard(client), "");
    world.pass(Duration::from_millis(350));
    assert!(world.heard(client).starts_with("SERVER_ERROR 10.0.0.1:1"));
    assert!(world.is_idle());
}
