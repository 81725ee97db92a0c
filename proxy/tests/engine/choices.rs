//! Routes that choose one child by the form of the key or by the client.

use proxima::members::ClientSource;

use crate::{rows::each_row, world::world};

#[test]
fn requests_reach_the_member_that_the_form_of_the_key_names() {
    let by_prefix =
        "{by_prefix: {prefixes: {\"a:\": {member: p/a}, \"a:b\": {member: p/b}}, default: {member: p/c}}}";
    let table = [
        (by_prefix.to_owned(), "a:b", "b"),
        // Behind the first part nothing is looked at, but the server gets the whole key.
        (format!("{{key_part: {{child: {by_prefix}}}}}"), "a:b", "a"),
        (
            format!("{{key_part: {{child: {by_prefix}, parts: 2}}}}"),
            "a:b",
            "b",
        ),
        (format!("{{key_part: {{child: {by_prefix}}}}}"), "b:a:b", "c"),
        (
            "{hash_stop: {child: {member: p/a}, prefixes: [x]}}".to_owned(),
            "x|#|y",
            "a",
        ),
        (
            "{hash_stop: {child: {member: p/a}, prefixes: [x]}}".to_owned(),
            "y",
            "a",
        ),
    ];
    each_row(table, |(route, key, member)| {
        let mut world = world(route);
        let client = world.client();
        let request = format!("get {key}\r\n");
        world.say(client, request.as_bytes());
        assert_eq!(world.sent(member), request, "{route}: {key}");
    });
}

#[test]
fn named_route_looks_at_the_whole_key_where_it_does_not_stand_below_a_key_part() {
    let mut world = crate::world::world_of(
        "pools:\n  p: {servers: [{address: 10.0.0.1:1, name: a}, {address: 10.0.0.2:1, name: b}]}\n\
         routes:\n  inner: {by_prefix: {prefixes: {\"x:y\": {member: p/a}}, default: {member: p/b}}}\n  \
         main: {by_operation: {read: inner, default: {key_part: {child: inner}}}}\n\
         listeners: [{address: \"127.0.0.1:1\", route: main}]\n",
    );
    let client = world.client();
    world.say(client, b"get x:y\r\ndelete x:y\r\n");
    assert_eq!(world.sent("a"), "get x:y\r\n");
    assert_eq!(world.sent("b"), "delete x:y\r\n");
}

#[test]
fn key_with_a_stop_and_no_allowed_prefix_is_refused() {
    let mut world = world("{hash_stop: {child: {member: p/a}, prefixes: [x]}}");
    let client = world.client();
    world.say(client, b"set y|#|z 0 0 1\r\nv\r\n");
    assert_eq!(world.heard(client), "SERVER_ERROR Hash stop not permitted\r\n");
    assert_eq!(world.sent("a"), "");
}

#[test]
fn requests_of_one_client_go_to_one_child_and_those_of_others_to_all() {
    let mut world = world("{by_client: p}");
    let mut asked = [0; 3];
    for last in 0..30 {
        let client = world.client();
        let peer = world.seats[client].peer;
        world
            .engine
            .set_source(peer, ClientSource::Address([10, 0, 0, last].into()));
        world.say(client, b"get k\r\nget l\r\n");
        let sent = ["a", "b", "c"].map(|member| world.sent(member));
        let chosen = sent.iter().position(|bytes| !bytes.is_empty()).unwrap();
        assert_eq!(sent.concat(), "get k\r\nget l\r\n", "client {last}");
        assert_eq!(sent[chosen], "get k\r\nget l\r\n", "client {last}");
        asked[chosen] += 1;
    }
    assert!(asked.iter().all(|&clients| clients > 2), "{asked:?}");
    let unknown = world.client();
    world.say(unknown, b"get k\r\n");
    assert_eq!(world.heard(unknown), "SERVER_ERROR Missing IP\r\n");
}

#[test]
fn latest_goes_on_to_the_next_of_the_hosts_children_alone() {
    let mut world = world("{latest: {children: p, count: 2}}");
    let client = world.client();
    world.say(client, b"get k\r\n");
    let asked = |world: &mut crate::world::World| {
        let members = ["a", "b", "c"];
        let found = members.into_iter().find(|member| !world.sent(member).is_empty());
        found.expect("a member is asked")
    };
    let first = asked(&mut world);
    world.reply(first, "SERVER_ERROR busy\r\n");
    let second = asked(&mut world);
    assert_ne!(first, second);
    world.reply(second, "SERVER_ERROR gone\r\n");
    assert_eq!(world.heard(client), "SERVER_ERROR gone\r\n");
}

#[test]
fn error_route_counts_as_the_error_that_it_names() {
    let table = [
        ("{error: {text: x, result: timeout}}", true, ""),
        ("{error: x}", true, ""),
        (
            "{error: {text: x, result: overloaded}}",
            false,
            "SERVER_ERROR x\r\n",
        ),
        (
            "{error: {text: x, result: client_error}}",
            false,
            "CLIENT_ERROR x\r\n",
        ),
    ];
    each_row(table, |(error, fails_over, answer)| {
        let mut world = world(&format!("{{failover: [{error}, {{member: p/b}}]}}"));
        let client = world.client();
        world.say(client, b"get k\r\n");
        assert_eq!(!world.sent("b").is_empty(), *fails_over, "{error}");
        assert_eq!(world.heard(client), *answer, "{error}");
    });
}
