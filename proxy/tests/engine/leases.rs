//! Leases through routes that serve a request in several steps.

use std::path::Path;

use proxima::config::{
    self, routes,
    schema::{Leaf, ReplyStyle, Route},
};

use crate::{
    rows::each_row,
    scripts::{Step, play},
    world::{World, world_from},
};

const LEASE: &str = "lease-get k\r\n";
const HIT: &str = "VALUE k 5 1\r\nx\r\nEND\r\n";
const TOKEN: &str = "LVALUE k 7 0 0\r\n\r\nEND\r\n";
const HOT: &str = "NOT_FOUND_HOT k\r\nEND\r\n";
const MISS: &str = "END\r\n";
const GET: &str = "get k\r\n";
const BUSY: &str = "SERVER_ERROR busy\r\n";
const STORED: &str = "STORED\r\n";
const NOT_STORED: &str = "NOT_STORED\r\n";
const ASKS: &str = "lease-get proxima:leases\r\n";
/// The time at which a world begins.
const NOW: u64 = 1_700_000_000;
const KNOWS: &str = "LVALUE proxima:leases 1 0 0\r\n\r\nEND\r\n";

/// A route of servers a, b, c and d behind a listener that takes leases.
fn leasing(route: Route) -> World {
    let servers =
        "{address: 10.0.0.1:1, name: a}, {address: 10.0.0.2:1, name: b}, {address: 10.0.0.3:1, name: c}";
    let text = format!(
        "pools:\n  p: {{servers: [{servers}], eject: {{failures: 0}}}}\n  \
         q: {{servers: [{{address: 10.0.0.4:1, name: d}}], eject: {{failures: 0}}}}\n\
         listeners: [{{address: \"127.0.0.1:1\", route: \"null\"}}]\n"
    );
    let mut config = config::parse(&text, Path::new("test")).unwrap().config;
    config.listeners[0].route = route;
    config.listeners[0].reply_style = ReplyStyle::Mcrouter { flush: false };
    world_from(&config)
}

fn member(name: &str) -> Box<Route> {
    Box::new(Route::Leaf(Leaf::Member(format!("p/{name}"))))
}

#[test]
fn miss_of_the_cold_server_is_filled_with_its_token() {
    let route = |ttl| Route::pair(routes::WarmUp { ttl }, member("a"), member("b"));
    let fill = "lease-set k 7 5 60 1\r\nx\r\n";
    let meta = "META k age: 5; exptime: 60; from: x\r\nEND\r\n";
    let metaget = "metaget k\r\n";
    let table: &[(Option<i64>, &str, &[Step<'_>])] = &[
        (Some(60), LEASE, &[("a", LEASE, HIT, HIT)]),
        (Some(60), LEASE, &[("a", LEASE, HOT, HOT)]),
        (Some(60), LEASE, &[("a", LEASE, BUSY, BUSY)]),
        (
            Some(60),
            LEASE,
            &[("a", LEASE, TOKEN, ""), ("b", GET, MISS, TOKEN)],
        ),
        (
            Some(60),
            LEASE,
            &[
                ("a", LEASE, TOKEN, ""),
                ("b", GET, HIT, HIT),
                ("a", ASKS, KNOWS, ""),
                ("a", fill, STORED, ""),
            ],
        ),
        (
            None,
            LEASE,
            &[
                ("a", LEASE, TOKEN, ""),
                ("b", GET, HIT, HIT),
                ("b", metaget, meta, ""),
                ("a", ASKS, KNOWS, ""),
                ("a", fill, STORED, ""),
            ],
        ),
        (Some(60), metaget, &[("a", metaget, meta, meta)]),
        (
            Some(60),
            metaget,
            &[("a", metaget, MISS, ""), ("b", metaget, meta, meta)],
        ),
        (
            Some(60),
            fill,
            &[("a", ASKS, KNOWS, ""), ("a", fill, NOT_STORED, NOT_STORED)],
        ),
    ];
    each_row(table, |(ttl, request, steps)| {
        play(&mut leasing(route(*ttl)), request, steps)
    });
}

#[test]
fn staging_gets_what_leases_have_filled() {
    let fill = "lease-set k 7 5 60 1\r\nx\r\n";
    let set = "set k 5 60 1\r\nx\r\n";
    let table: &[(&str, &[Step<'_>])] = &[
        (LEASE, &[("a", LEASE, TOKEN, TOKEN)]),
        (
            LEASE,
            &[
                ("a", LEASE, HIT, HIT),
                ("b", "metaget k\r\n", MISS, ""),
                ("a", "metaget k\r\n", "META k exptime: 0; from: x\r\nEND\r\n", ""),
                ("b", "add k 5 0 1\r\nx\r\n", STORED, ""),
            ],
        ),
        (
            fill,
            &[
                ("a", ASKS, KNOWS, ""),
                ("a", fill, STORED, STORED),
                ("b", set, STORED, ""),
            ],
        ),
        (
            fill,
            &[("a", ASKS, KNOWS, ""), ("a", fill, NOT_STORED, NOT_STORED)],
        ),
    ];
    let route = || Route::pair(routes::Staging, member("a"), member("b"));
    each_row(table, |(request, steps)| {
        play(&mut leasing(route()), request, steps)
    });
}

#[test]
fn large_value_that_fills_a_miss_has_a_name_of_its_own() {
    let route = |both| {
        Route::pair(
            routes::SizeSplit {
                threshold: 4,
                ttl_threshold: 0,
                failure_ttl: 30,
                both,
                retries: 1,
                hides_server: false,
            },
            member("a"),
            member("b"),
        )
    };
    let large = "lease-set k 7 1 60 4\r\nxxxx\r\n";
    let marker = "VALUE k 33 2\r\n77\r\nEND\r\n";
    let versioned = "VALUE k 33 2 9\r\n77\r\nEND\r\n";
    let value = "VALUE k 1 4\r\nxxxx\r\nEND\r\n";
    let table: &[(bool, &str, &[Step<'_>])] = &[
        (
            true,
            large,
            &[
                ("a", ASKS, KNOWS, ""),
                ("a", large, STORED, STORED),
                ("b", "set k 1 60 4\r\nxxxx\r\n", STORED, ""),
            ],
        ),
        (false, LEASE, &[("a", LEASE, TOKEN, TOKEN)]),
        (
            false,
            LEASE,
            &[("a", LEASE, "LVALUE k 7 33 2\r\n77\r\nEND\r\n", TOKEN)],
        ),
        (
            false,
            LEASE,
            &[
                ("a", LEASE, marker, ""),
                (
                    "b",
                    "get k|==|77\r\n",
                    "VALUE k|==|77 1 4\r\nxxxx\r\nEND\r\n",
                    value,
                ),
            ],
        ),
        (
            false,
            LEASE,
            &[
                ("a", LEASE, marker, ""),
                ("b", "get k|==|77\r\n", MISS, ""),
                ("a", "gets k\r\n", versioned, ""),
                ("a", "cas k 33 -1 0 9\r\n\r\n", STORED, ""),
                ("a", LEASE, TOKEN, TOKEN),
            ],
        ),
    ];
    each_row(table, |(both, request, steps)| {
        play(&mut leasing(route(*both)), request, steps)
    });
    for second in [STORED, BUSY] {
        let mut world = leasing(route(false));
        let client = world.client();
        world.say(client, large.as_bytes());
        let sent = world.sent("b");
        let name = sent
            .strip_prefix("set k|==|")
            .and_then(|sent| sent.strip_suffix(" 1 60 4\r\nxxxx\r\n"))
            .unwrap_or_else(|| panic!("{sent}"))
            .to_owned();
        world.reply("b", second);
        assert_eq!(world.sent("a"), ASKS);
        world.reply("a", KNOWS);
        let expected = match second == STORED {
            true => format!("lease-set k 7 33 60 {}\r\n{name}\r\n", name.len()),
            false => "lease-set k 7 1 30 4\r\nxxxx\r\n".to_owned(),
        };
        assert_eq!(world.sent("a"), expected);
        world.reply("a", STORED);
        assert_eq!(world.heard(client), STORED);
        assert!(world.is_idle());
    }
}

#[test]
fn missing_piece_of_a_large_value_gives_the_client_a_token() {
    let route = || {
        Route::one(
            routes::BigValue {
                threshold: 4,
                batch: 2,
                hides_flag: false,
            },
            member("a"),
        )
    };
    let place = "VALUE k 32769 6\r\n1-2-55\r\nEND\r\n";
    let versioned = "VALUE k 32769 6 9\r\n1-2-55\r\nEND\r\n";
    let pieces = "get k:0:55\r\nget k:1:55\r\n";
    let both = "VALUE k:0:55 1 4\r\naaaa\r\nEND\r\nVALUE k:1:55 1 1\r\nb\r\nEND\r\n";
    let none = "LVALUE k 18446744073709551615 0 0\r\n\r\nEND\r\n";
    let table: &[(&str, &[Step<'_>])] = &[
        (LEASE, &[("a", LEASE, TOKEN, TOKEN)]),
        (LEASE, &[("a", LEASE, HOT, HOT)]),
        (
            LEASE,
            &[
                ("a", LEASE, place, ""),
                ("a", pieces, both, "VALUE k 32769 5\r\naaaab\r\nEND\r\n"),
            ],
        ),
        (
            LEASE,
            &[
                ("a", LEASE, place, ""),
                ("a", pieces, "END\r\nEND\r\n", ""),
                ("a", "gets k\r\n", versioned, ""),
                ("a", "cas k 32769 -1 0 9\r\n\r\n", STORED, ""),
                ("a", LEASE, TOKEN, TOKEN),
            ],
        ),
        (LEASE, &[("a", LEASE, "VALUE k 32768 3\r\nfoo\r\nEND\r\n", none)]),
    ];
    each_row(table, |(request, steps)| {
        play(&mut leasing(route()), request, steps)
    });
    let mut world = leasing(route());
    let client = world.client();
    world.say(client, b"lease-set k 7 1 60 5\r\naaaab\r\n");
    let sent = world.sent("a");
    assert_eq!(sent.matches("set k:").count(), 2, "{sent}");
    world.reply("a", "STORED\r\nSTORED\r\n");
    assert_eq!(world.sent("a"), ASKS);
    world.reply("a", KNOWS);
    let sent = world.sent("a");
    assert!(sent.starts_with("lease-set k 7 32769 60 "), "{sent}");
    world.reply("a", NOT_STORED);
    assert_eq!(world.heard(client), NOT_STORED);
    assert!(world.is_idle());
}

#[test]
fn token_of_the_old_route_makes_its_value_invalid_soon_after_a_key_has_moved() {
    let fill = "lease-set k 7 1 60 1\r\nx\r\n";
    let gone = "lease-set k 7 1 -1 1\r\nx\r\n";
    let asked = ("b", ASKS, KNOWS, "");
    let table: &[(u64, &[Step<'_>])] = &[
        (
            0,
            &[
                asked,
                ("b", fill, NOT_STORED, NOT_STORED),
                ("a", ASKS, KNOWS, ""),
                ("a", gone, NOT_STORED, ""),
            ],
        ),
        (0, &[asked, ("b", fill, STORED, STORED)]),
        (10, &[asked, ("b", fill, NOT_STORED, NOT_STORED)]),
    ];
    each_row(table, |(ago, steps)| {
        let mut world = leasing(Route::pair(
            routes::Migrate {
                start: NOW - ago,
                interval: std::time::Duration::ZERO,
            },
            member("a"),
            member("b"),
        ));
        play(&mut world, fill, steps);
    });
}
