//! mcrouter's routing prefixes: one route, or several.

use std::path::Path;

use proxima::config::{
    self, routes,
    schema::{Leaf, Route},
};

use crate::{
    rows::each_row,
    world::{World, world_from},
};

/// Routes `/x/a/`, `/x/b/`, `/y/fallback/` and `/y/c/` to the servers a, b, c and d, and `/x/b2/` to b as well.
/// The default route is `/x/b/`. Server d keeps prefixes.
fn prefixes(takes_unknown: bool) -> World {
    let text = "pools:\n  p: {servers: [{address: 10.0.0.1:1, name: a}, {address: 10.0.0.2:1, name: b},\n    \
                {address: 10.0.0.3:1, name: c}], eject: {failures: 0}}\n  \
                q: {servers: [{address: 10.0.0.4:1, name: d}], eject: {failures: 0}}\n\
                listeners: [{address: \"127.0.0.1:1\", route: \"null\"}]\n";
    let mut config = config::parse(text, Path::new("test")).unwrap().config;
    config.pools.get_mut("q").unwrap().keep_routing_prefix = true;
    let routes = [
        ("/x/a/", "p/a"),
        ("/x/b/", "p/b"),
        ("/x/b2/", "p/b"),
        ("/y/fallback/", "p/c"),
        ("/y/c/", "q/d"),
    ];
    let routes = routes.map(|(prefix, member)| (prefix.to_owned(), Route::Leaf(Leaf::Member(member.into()))));
    config.listeners[0].route = Route::keyed(
        routes::ByRoutingPrefix {
            default: "/x/b/".into(),
            takes_unknown,
        },
        routes.into(),
        None,
    );
    world_from(&config)
}

#[test]
fn key_reaches_the_routes_that_its_prefix_names() {
    let nobody: &[(&str, &str)] = &[];
    let table = [
        ("k", &[("b", "k")][..]),
        ("/x/a/k", &[("a", "k")]),
        ("/x/b2/k", &[("b", "k")]),
        ("/*/*/k", &[("a", "k"), ("b", "k"), ("c", "k"), ("d", "/*/*/k")]),
        ("/x/*/k", &[("a", "k"), ("b", "k")]),
        ("/*/a/k", &[("a", "k")]),
        ("/*/b*/k", &[("b", "k")]),
        ("/y/z/k", &[("c", "k")]),
        ("/y/c/k", &[("d", "/y/c/k")]),
        ("/z/z/k", nobody),
        ("/z*/*/k", nobody),
        ("/x/z/k", nobody),
    ];
    each_row(table, |(key, sent)| {
        let mut world = prefixes(false);
        let client = world.client();
        world.say(client, format!("delete {key}\r\n").as_bytes());
        for member in ["a", "b", "c", "d"] {
            let found = sent.iter().find(|(name, _)| *name == member);
            let expected = found.map(|(_, key)| format!("delete {key}\r\n"));
            assert_eq!(
                world.sent(member),
                expected.unwrap_or_default(),
                "{key}: {member}"
            );
        }
        if sent.is_empty() {
            assert_eq!(
                world.heard(client),
                "SERVER_ERROR RootRoute: No rh found\r\n",
                "{key}"
            );
        }
    });
}

#[test]
fn default_route_answers_if_it_is_one_of_several_and_else_the_first() {
    for (key, answers, other) in [("/*/*/k", "b", "a"), ("/y/*/k", "d", "c")] {
        let mut world = prefixes(false);
        let client = world.client();
        world.say(client, format!("delete {key}\r\n").as_bytes());
        world.reply(other, "DELETED\r\n");
        assert_eq!(world.heard(client), "", "{key}");
        world.reply(answers, "NOT_FOUND\r\n");
        assert_eq!(world.heard(client), "NOT_FOUND\r\n", "{key}");
    }
}

#[test]
fn unknown_prefixes_go_to_the_default_route_where_that_is_asked() {
    let mut world = prefixes(true);
    let client = world.client();
    world.say(client, b"get /z/z/k\r\nget /*/z/l\r\nget /y/z/m\r\n");
    assert_eq!(world.sent("b"), "get k\r\nget l\r\n");
    assert_eq!(world.sent("c"), "get m\r\n", "a region with a fallback");
    world.reply("b", "VALUE k 0 1\r\nx\r\nEND\r\nEND\r\n");
    assert_eq!(world.heard(client), "VALUE /z/z/k 0 1\r\nx\r\nEND\r\nEND\r\n");
}

#[test]
fn key_with_nothing_behind_its_prefix_is_bad() {
    let mut world = prefixes(false);
    let client = world.client();
    world.say(client, b"get /x/a/\r\nget /*/*/\r\n");
    assert_eq!(
        world.heard(client),
        "CLIENT_ERROR bad key\r\nCLIENT_ERROR bad key\r\n"
    );
}
