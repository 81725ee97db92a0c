//! The orders in which a failover asks its children.

use crate::{
    rows::each_row,
    world::{World, world, world_of},
};

const HIT: &str = "VALUE k 0 1\r\nx\r\nEND\r\n";
const BUSY: &str = "SERVER_ERROR busy\r\n";

/// Six servers, and the route `main`.
fn six(route: &str) -> World {
    let servers: Vec<String> = ["a", "b", "c", "d", "e", "f"]
        .iter()
        .enumerate()
        .map(|(number, name)| format!("{{address: 10.0.0.{}:1, name: {name}}}", number + 1))
        .collect();
    world_of(&format!(
        "pools:\n  p: {{servers: [{}], eject: {{failures: 0}}}}\nroutes: {{main: {route}}}\n\
         listeners: [{{address: \"127.0.0.1:1\", route: main}}]\n",
        servers.join(", ")
    ))
}

/// Asks for a key, and lets every server that is asked answer with an error. Returns the servers in the order
/// in which they were asked.
fn asked(world: &mut World, client: usize, key: &str) -> Vec<&'static str> {
    world.say(client, format!("get {key}\r\n").as_bytes());
    let mut order = Vec::new();
    loop {
        let members = ["a", "b", "c", "d", "e", "f"];
        let Some(next) = members.into_iter().find(|member| !world.sent(member).is_empty()) else {
            assert_eq!(world.heard(client), BUSY);
            return order;
        };
        order.push(next);
        world.reply(next, BUSY);
    }
}

#[test]
fn child_with_the_fewest_failures_comes_behind_the_first() {
    let mut world = world("{failover: {children: p, policy: {least_failures: 2}}}");
    let client = world.client();
    // a, b and c: each try adds a failure.
    for expected in [["a", "b"], ["a", "c"], ["a", "b"], ["a", "c"]] {
        assert_eq!(asked(&mut world, client, "k"), expected);
    }
    world.say(client, b"get k\r\n");
    world.reply("a", BUSY);
    world.reply("b", HIT);
    assert_eq!(world.heard(client), HIT);
    world.sent("a");
    world.sent("b");
    for expected in [["a", "b"], ["a", "b"], ["a", "b"], ["a", "c"]] {
        assert_eq!(asked(&mut world, client, "k"), expected, "b has succeeded");
    }
}

#[test]
fn order_by_the_key_is_the_same_for_every_request_and_differs_between_keys() {
    let route = "{failover: {children: [{hash: {children: p, hash: ch3}}, {member: p/a}, {member: p/b}, {member: p/c},
        {member: p/d}, {member: p/e}, {member: p/f}], policy: {hash_order: {tries: 4, error_tries: 4}}}}";
    let mut world = six(route);
    let client = world.client();
    let mut orders = Vec::new();
    for number in 0..40 {
        let key = format!("key{number}");
        let order = asked(&mut world, client, &key);
        assert_eq!(order.len(), 4, "{key}");
        let mut once = order.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!(once.len(), 4, "{key}: no server is asked twice: {order:?}");
        assert_eq!(asked(&mut world, client, &key), order, "{key}");
        assert_eq!(asked(&mut world, client, &format!("{key}|#|x")), order, "{key}");
        orders.push(order);
    }
    orders.sort_unstable();
    orders.dedup();
    assert!(orders.len() > 20, "{}", orders.len());
}

#[test]
fn tries_and_errors_are_limited() {
    let servers =
        "[{member: p/a}, {member: p/b}, {member: p/c}, {member: p/d}, {member: p/e}, {member: p/f}]";
    let table = [
        ("{hash_order: {tries: 3, error_tries: 6}}", 3),
        ("{hash_order: {tries: 6, error_tries: 2}}", 2),
        (
            "{hash_order: {tries: 6, error_tries: 2, exclude: [remote_error], knows_first: false}}",
            6,
        ),
        ("{least_failures: 5}", 5),
    ];
    each_row(table, |(policy, tries)| {
        let mut world = six(&format!(
            "{{failover: {{children: {servers}, policy: {policy}}}}}"
        ));
        let client = world.client();
        assert_eq!(asked(&mut world, client, "k").len(), *tries, "{policy}");
    });
}

#[test]
fn domains_that_have_failed_are_passed_by() {
    let route = "{failover: {children: [{hash: {children: p, hash: ch3}}, {member: p/a}, {member: p/b}, {member: p/c},
        {member: p/d}, {member: p/e}, {member: p/f}],
        policy: {hash_order: {tries: 3, error_tries: 3, domains: [9, 1, 1, 2, 2, 3, 3]}}}}";
    let mut world = six(route);
    let client = world.client();
    for number in 0..40 {
        let order = asked(&mut world, client, &format!("key{number}"));
        let mut domains: Vec<u8> = order.iter().map(|name| (name.as_bytes()[0] - b'a') / 2).collect();
        domains.sort_unstable();
        assert_eq!(domains, [0, 1, 2], "key{number}: {order:?}");
    }
}

#[test]
fn order_by_rendezvous_leaves_out_the_first_choice() {
    let route = "{failover: {children: [{hash: {children: p, hash: {algorithm: rendezvous, tags: [s, t, u, v, w, x]}}},
        {member: p/a}, {member: p/b}, {member: p/c}, {member: p/d}, {member: p/e}, {member: p/f}],
        policy: {rendezvous: [s, t, u, v, w, x]}}}";
    let mut world = six(route);
    let client = world.client();
    for number in 0..40 {
        let mut order = asked(&mut world, client, &format!("key{number}"));
        order.sort_unstable();
        assert_eq!(order, ["a", "b", "c", "d", "e", "f"], "key{number}");
    }
}

#[test]
fn ejected_children_count_as_tries() {
    let mut world = world_of(
        "pools:\n  p: {servers: [{address: 10.0.0.1:1, name: a}, {address: 10.0.0.2:1, name: b},\n    \
         {address: 10.0.0.3:1, name: c}], eject: {failures: 1}}\n\
         routes: {main: {failover: {children: p, policy: {least_failures: 2}}}}\n\
         listeners: [{address: \"127.0.0.1:1\", route: main}]\n",
    );
    let client = world.client();
    world.say(client, b"get k\r\n");
    for member in ["a", "b"] {
        world.down.insert(member.into());
        world.leave(world.lane(member));
    }
    assert!(world.heard(client).starts_with("SERVER_ERROR 10.0.0.2:1: "));
    world.say(client, b"get k\r\n");
    assert_eq!(world.sent("c"), "get k\r\n", "b has failed before");
    world.reply("c", HIT);
    assert_eq!(world.heard(client), HIT);
}

#[test]
fn failovers_are_counted_by_what_they_have_met() {
    let mut world = world("{failover: {children: p, limit: {rate: 0.5, burst: 2}}}");
    let client = world.client();
    for _ in 0..2 {
        world.say(client, b"get k\r\n");
        for member in ["a", "b", "c"] {
            if !world.sent(member).is_empty() {
                world.reply(member, BUSY);
            }
        }
    }
    let counts = world.engine.metrics.failover;
    // The first request has spent two tokens, and the second one has earned half a token.
    assert_eq!((counts.errors, counts.all_failed, counts.limited), (3, 1, 1));
}
