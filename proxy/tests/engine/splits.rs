//! Routes that move keys, or keep several copies of them under different names.

use std::{path::Path, time::Duration};

use proxima::config;

use crate::{
    rows::each_row,
    world::{compiled, world},
};

/// The world's number of this host is 1, and its time is 1,700,000,000.
const SPLIT: &str = "{shard_split: {child: {member: p/a}, splits: {12: 3}}}";
const KEYS: &str = "{key_split: {child: {member: p/a}, copies: 3}}";
const KEYS_SYNC: &str = "{key_split: {child: {member: p/a}, copies: 3, all_sync: true}}";
const MIGRATING: &str =
    "{migrate: {from: {member: p/a}, to: {member: p/b}, start: 1699999000, interval: 1000s}}";

#[test]
fn copies_of_keys_are_asked_under_their_names() {
    let set = "set k 0 0 1\r\nx\r\n";
    let long = format!("get {}\r\n", "k".repeat(250));
    let table = [
        (SPLIT, "get p:12:x\r\n", "get p:12aa:x\r\n"),
        (SPLIT, "get p:13:x\r\n", "get p:13:x\r\n"),
        (SPLIT, "incr p:12:x 1\r\n", "incr p:12aa:x 1\r\n"),
        (
            SPLIT,
            "delete p:12:x\r\n",
            "delete p:12:x\r\ndelete p:12aa:x\r\ndelete p:12ba:x\r\n",
        ),
        (KEYS, "get k\r\n", "get k::1\r\n"),
        (KEYS, "get k|#|x\r\n", "get k::1|#|x\r\n"),
        (KEYS, &long, &long),
        (KEYS, set, "set k::1 0 0 1\r\nx\r\n"),
        (
            KEYS_SYNC,
            set,
            "set k::1 0 0 1\r\nx\r\nset k 0 0 1\r\nx\r\nset k::2 0 0 1\r\nx\r\n",
        ),
        (KEYS, "delete k\r\n", "delete k::1\r\ndelete k\r\ndelete k::2\r\n"),
        // `p:12:x y`, `p:12aa:x y`, `a b` and `a b::1`: what a rule adds is added before a key is encoded.
        (SPLIT, "mg cDoxMjp4IHk= b v\r\n", "mg cDoxMmFhOnggeQ== b v\r\n"),
        (KEYS, "mg YSBi b v\r\n", "mg YSBiOjox b v\r\n"),
    ];
    each_row(table, |(route, request, sent)| {
        let mut world = world(route);
        let client = world.client();
        world.say(client, request.as_bytes());
        assert_eq!(world.sent("a"), *sent, "{route}: {request}");
    });
}

#[test]
fn client_gets_the_answer_of_the_hosts_copy_under_its_own_key() {
    let mut world = world(KEYS);
    let client = world.client();
    world.say(client, b"get k\r\ndelete k\r\n");
    world.reply(
        "a",
        "VALUE k::1 0 1\r\nx\r\nEND\r\nDELETED\r\nNOT_FOUND\r\nNOT_FOUND\r\n",
    );
    assert_eq!(world.heard(client), "VALUE k 0 1\r\nx\r\nEND\r\nDELETED\r\n");
    world.say(client, b"mg YSBi b k v\r\n");
    world.reply("a", "VA 1 kYSBiOjox b\r\nx\r\n");
    assert_eq!(world.heard(client), "VA 1 kYSBi b\r\nx\r\n");
    assert!(world.is_idle());
}

#[test]
fn first_copy_that_has_the_key_answers() {
    let route = "{key_split: {child: {hash: p}, copies: 3, first_hit: true}}";
    let mut world = world(&route.replace("{hash: p}", "{member: p/a}"));
    let client = world.client();
    world.say(client, b"get k\r\n");
    assert_eq!(world.sent("a"), "get k\r\nget k::1\r\nget k::2\r\n");
    world.reply("a", "END\r\n");
    assert_eq!(world.heard(client), "");
    world.reply("a", "VALUE k::1 0 1\r\nx\r\nEND\r\n");
    assert_eq!(world.heard(client), "VALUE k 0 1\r\nx\r\nEND\r\n");
    world.reply("a", "END\r\n");
    assert!(world.is_idle());
    world.say(client, b"get k\r\n");
    world.sent("a");
    world.reply("a", "END\r\nEND\r\nEND\r\n");
    assert_eq!(world.heard(client), "END\r\n");
}

#[test]
fn deletes_reach_both_routes_while_keys_move() {
    let mut world = world(MIGRATING);
    let client = world.client();
    // SpookyHash of `key0` is 75843317: it moves 317 s after the interval. The migration began 1,000 s ago.
    world.say(client, b"get key0\r\ndelete key0\r\n");
    assert_eq!(world.sent("a"), "get key0\r\ndelete key0\r\n");
    assert_eq!(world.sent("b"), "delete key0\r\n");
    world.reply("a", "END\r\nDELETED\r\n");
    assert_eq!(world.heard(client), "END\r\n");
    world.reply("b", "NOT_FOUND\r\n");
    assert_eq!(world.heard(client), "NOT_FOUND\r\n", "the worst reply");
    world.engine.now += Duration::from_secs(317).into();
    world.say(client, b"get key0\r\n");
    assert_eq!(world.sent("b"), "get key0\r\n");
    world.reply("b", "END\r\n");
    world.engine.now += Duration::from_secs(683).into();
    world.say(client, b"delete key0\r\n");
    assert_eq!(
        (world.sent("a"), world.sent("b")),
        (String::new(), "delete key0\r\n".into())
    );
}

#[test]
fn routes_with_too_many_copies_are_refused() {
    let split = "{key_split: {child: {member: \"10.0.0.1:1\"}, copies: 1000}}";
    let text = format!(
        "routes: {{main: {{all_sync: [{}]}}}}\nlisteners: [{{address: \"127.0.0.1:1\", route: main}}]\n",
        vec![split; 1100].join(", ")
    );
    let config = config::parse(&text, Path::new("test")).unwrap().config;
    let refused = compiled(&config).unwrap_err().to_string();
    assert_eq!(refused, "the routes have more than 1048576 nodes");
}
