//! Routes that serve a request in several steps.

use crate::{
    rows::each_row,
    world::{World, world},
};

const MISS: &str = "END\r\n";
const GET: &str = "get k\r\n";
const HIT: &str = "VALUE k 5 1\r\nx\r\nEND\r\n";
const BUSY: &str = "SERVER_ERROR busy\r\n";
const STORED: &str = "STORED\r\n";
const ERROR: &str = "ERROR\r\n";
const METAGET: &str = "metaget k\r\n";
const TIME_LEFT: &str = "mg k t\r\n";

/// One step: this member receives this, and answers; the client then has this.
pub(crate) type Step<'a> = (&'a str, &'a str, &'a str, &'a str);

pub(crate) fn play(world: &mut World, request: &str, steps: &[Step<'_>]) {
    let client = world.client();
    world.say(client, request.as_bytes());
    for (number, (member, sent, reply, heard)) in steps.iter().enumerate() {
        assert_eq!(world.sent(member), *sent, "step {number} of {request:?}");
        world.reply(member, reply);
        assert_eq!(world.heard(client), *heard, "step {number} of {request:?}");
    }
    for member in ["a", "b", "c", "d"] {
        assert_eq!(
            world.sent(member),
            "",
            "{request:?}: {member} was asked for nothing more"
        );
    }
    assert!(world.is_idle(), "{request:?}: something still waits");
}

const WARM_UP: &str = "{warm_up: {cold: {member: p/a}, warm: {member: p/b}, ttl: 60}}";
const AS_WARM: &str = "{warm_up: {cold: {member: p/a}, warm: {member: p/b}}}";

#[test]
fn cold_server_is_filled_from_the_warm_one() {
    let table: &[(&str, &str, &[Step<'_>])] = &[
        (WARM_UP, GET, &[("a", GET, HIT, HIT)]),
        (
            WARM_UP,
            GET,
            &[
                ("a", GET, MISS, ""),
                ("b", GET, HIT, HIT),
                ("a", "add k 5 60 1\r\nx\r\n", STORED, ""),
            ],
        ),
        (WARM_UP, GET, &[("a", GET, MISS, ""), ("b", GET, MISS, MISS)]),
        (WARM_UP, GET, &[("a", GET, BUSY, ""), ("b", GET, BUSY, BUSY)]),
        (
            AS_WARM,
            GET,
            &[
                ("a", GET, MISS, ""),
                ("b", GET, HIT, HIT),
                ("b", METAGET, ERROR, ""),
                ("b", TIME_LEFT, "HD t30\r\n", ""),
                ("a", "add k 5 30 1\r\nx\r\n", STORED, ""),
            ],
        ),
        (
            AS_WARM,
            GET,
            &[
                ("a", GET, MISS, ""),
                ("b", GET, HIT, HIT),
                ("b", METAGET, "META k age: 5; exptime: 0; from: x\r\nEND\r\n", ""),
                ("a", "add k 5 0 1\r\nx\r\n", STORED, ""),
            ],
        ),
        (
            AS_WARM,
            GET,
            &[
                ("a", GET, MISS, ""),
                ("b", GET, HIT, HIT),
                ("b", METAGET, MISS, ""),
            ],
        ),
        (
            AS_WARM,
            GET,
            &[
                ("a", GET, MISS, ""),
                ("b", GET, HIT, HIT),
                ("b", METAGET, ERROR, ""),
                ("b", TIME_LEFT, ERROR, ""),
            ],
        ),
        (
            WARM_UP,
            "gets k\r\n",
            &[
                ("a", "gets k\r\n", MISS, ""),
                ("b", GET, HIT, ""),
                ("a", "add k 5 60 1\r\nx\r\n", STORED, ""),
                (
                    "a",
                    "gets k\r\n",
                    "VALUE k 5 1 7\r\nx\r\nEND\r\n",
                    "VALUE k 5 1 7\r\nx\r\nEND\r\n",
                ),
            ],
        ),
        (
            WARM_UP,
            "gat 9 k\r\n",
            &[("a", "gat 9 k\r\n", BUSY, ""), ("b", GET, MISS, BUSY)],
        ),
        (
            AS_WARM,
            "gat 9 k\r\n",
            &[
                ("a", "gat 9 k\r\n", MISS, ""),
                ("b", GET, HIT, ""),
                ("a", "add k 5 9 1\r\nx\r\n", STORED, ""),
                ("a", "gat 9 k\r\n", HIT, HIT),
            ],
        ),
        (
            AS_WARM,
            "gets k\r\n",
            &[
                ("a", "gets k\r\n", MISS, ""),
                ("b", GET, HIT, ""),
                ("b", METAGET, BUSY, MISS),
            ],
        ),
        (
            WARM_UP,
            "delete k\r\n",
            &[("a", "delete k\r\n", "NOT_FOUND\r\n", "NOT_FOUND\r\n")],
        ),
        (
            WARM_UP,
            "append k 0 0 1\r\nx\r\n",
            &[("a", "append k 0 0 1\r\nx\r\n", "NOT_STORED\r\n", "NOT_STORED\r\n")],
        ),
    ];
    each_row(table, |(route, request, steps)| {
        play(&mut world(route), request, steps)
    });
}

const STAGING: &str = "{staging: {warm: {member: p/a}, staging: {member: p/b}}}";

#[test]
fn staging_is_filled_and_kept_alike() {
    let set = "set k 5 60 1\r\nx\r\n";
    let table: &[(&str, &[Step<'_>])] = &[
        (
            GET,
            &[
                ("a", GET, HIT, HIT),
                ("b", METAGET, ERROR, ""),
                ("b", TIME_LEFT, "EN\r\n", ""),
                ("a", METAGET, "META k age: 5; exptime: 9; from: x\r\nEND\r\n", ""),
                ("b", "add k 5 9 1\r\nx\r\n", STORED, ""),
            ],
        ),
        (
            GET,
            &[
                ("a", GET, HIT, HIT),
                ("b", METAGET, "META k age: 5;\r\nEND\r\n", ""),
            ],
        ),
        (GET, &[("a", GET, HIT, HIT), ("b", METAGET, BUSY, "")]),
        (GET, &[("a", GET, MISS, MISS)]),
        (set, &[("a", set, STORED, STORED), ("b", set, STORED, "")]),
        (set, &[("a", set, BUSY, BUSY)]),
        (
            "cas k 5 60 1 7\r\nx\r\n",
            &[
                ("a", "cas k 5 60 1 7\r\nx\r\n", STORED, STORED),
                ("b", set, STORED, ""),
            ],
        ),
        (
            "delete k\r\n",
            &[
                ("a", "delete k\r\n", "DELETED\r\n", ""),
                ("b", "delete k\r\n", "NOT_FOUND\r\n", "NOT_FOUND\r\n"),
            ],
        ),
        (
            "incr k 1\r\n",
            &[
                ("a", "incr k 1\r\n", "2\r\n", "2\r\n"),
                ("b", "incr k 1\r\n", "9\r\n", ""),
            ],
        ),
    ];
    each_row(table, |(request, steps)| {
        play(&mut world(STAGING), request, steps)
    });
}

const L1L2: &str =
    "{l1_l2_cache: {l1: {member: p/a}, l2: {member: p/b}, ttl: 60, miss_ttl: 9, miss_period: 2}}";
const NOTHING: &str = "VALUE k 65536 6\r\nncache\r\nEND\r\n";

#[test]
fn first_cache_remembers_what_the_second_has_and_has_not() {
    let add = "add k 5 60 1\r\nx\r\n";
    let plain = "{l1_l2_cache: {l1: {member: p/a}, l2: {member: p/b}, ttl: 60}}";
    let table: &[(&str, &str, &[Step<'_>])] = &[
        (plain, GET, &[("a", GET, HIT, HIT)]),
        (
            plain,
            GET,
            &[("a", GET, MISS, ""), ("b", GET, HIT, HIT), ("a", add, STORED, "")],
        ),
        (
            plain,
            GET,
            &[("a", GET, BUSY, ""), ("b", GET, HIT, HIT), ("a", add, BUSY, "")],
        ),
        (plain, GET, &[("a", GET, BUSY, ""), ("b", GET, BUSY, BUSY)]),
        (plain, GET, &[("a", GET, MISS, ""), ("b", GET, MISS, MISS)]),
        (plain, GET, &[("a", GET, NOTHING, NOTHING)]),
        (plain, "gets k\r\n", &[("a", "gets k\r\n", MISS, MISS)]),
        (
            L1L2,
            GET,
            &[
                ("a", GET, MISS, ""),
                ("b", GET, MISS, MISS),
                ("a", "add k 65536 9 6\r\nncache\r\n", STORED, ""),
            ],
        ),
        (L1L2, GET, &[("a", GET, MISS, ""), ("b", GET, BUSY, BUSY)]),
    ];
    each_row(table, |(route, request, steps)| {
        play(&mut world(route), request, steps)
    });
    // Every second read of a remembered miss looks again.
    let mut world = world(L1L2);
    play(&mut world, GET, &[("a", GET, NOTHING, MISS)]);
    play(
        &mut world,
        GET,
        &[
            ("a", GET, NOTHING, MISS),
            ("b", GET, HIT, ""),
            ("a", "set k 5 60 1\r\nx\r\n", STORED, ""),
        ],
    );
    play(&mut world, GET, &[("a", GET, NOTHING, MISS)]);
}

const SPLIT: &str = "{size_split: {l1: {member: p/a}, l2: {member: p/b}, threshold: 4, ttl_threshold: 10}}";
const MARKER: &str = "VALUE k 32 0\r\n\r\nEND\r\n";

#[test]
fn large_values_are_in_the_second_cache_and_a_marker_leads_there() {
    let (small, large) = ("set k 0 0 1\r\nx\r\n", "set k 1 60 4\r\nxxxx\r\n");
    let soon = "set k 1 9 4\r\nxxxx\r\n";
    let marker = "set k 33 60 0\r\n\r\n";
    let value = "VALUE k 1 4\r\nxxxx\r\nEND\r\n";
    let versioned = "VALUE k 33 0 7\r\n\r\nEND\r\n";
    let suffixed = "VALUE k 32 2\r\n77\r\nEND\r\n";
    let (gets, cas) = ("gets k\r\n", "cas k 33 -1 0 7\r\n\r\n");
    let failed = "SERVER_ERROR local error\r\n";
    let refused = "CLIENT_ERROR no\r\n";
    let too_long = format!("set {} 0 0 4\r\nxxxx\r\n", "k".repeat(227));
    let both = &SPLIT.replace("threshold: 4,", "threshold: 4, both: true,");
    let table: &[(&str, &str, &[Step<'_>])] = &[
        (SPLIT, small, &[("a", small, STORED, STORED)]),
        (SPLIT, soon, &[("a", soon, STORED, STORED)]),
        (
            SPLIT,
            large,
            &[("b", large, STORED, ""), ("a", marker, STORED, STORED)],
        ),
        (SPLIT, large, &[("b", large, BUSY, BUSY)]),
        (
            both,
            large,
            &[("a", large, STORED, STORED), ("b", large, BUSY, "")],
        ),
        (SPLIT, &too_long, &[("a", &too_long, STORED, STORED)]),
        (
            SPLIT,
            "cas k 1 60 4 7\r\nxxxx\r\n",
            &[("a", "cas k 1 60 4 7\r\nxxxx\r\n", STORED, STORED)],
        ),
        (SPLIT, GET, &[("a", GET, HIT, HIT)]),
        (SPLIT, GET, &[("a", GET, MARKER, ""), ("b", GET, value, value)]),
        (
            SPLIT,
            GET,
            &[
                ("a", GET, MARKER, ""),
                ("b", GET, MISS, MISS),
                ("a", gets, versioned, ""),
                ("a", cas, STORED, ""),
            ],
        ),
        (
            SPLIT,
            GET,
            &[
                ("a", GET, MARKER, ""),
                ("b", GET, BUSY, BUSY),
                ("a", gets, "VALUE k 1 4 7\r\nxxxx\r\nEND\r\n", ""),
            ],
        ),
        (
            SPLIT,
            GET,
            &[("a", GET, MARKER, ""), ("b", GET, refused, refused)],
        ),
        (
            SPLIT,
            GET,
            &[
                ("a", GET, suffixed, ""),
                (
                    "b",
                    "get k|==|77\r\n",
                    "VALUE k|==|77 1 4\r\nxxxx\r\nEND\r\n",
                    value,
                ),
            ],
        ),
        (
            SPLIT,
            GET,
            &[
                ("a", GET, suffixed, ""),
                ("b", "get k|==|77\r\n", BUSY, ""),
                ("a", gets, "VALUE k 32 2 7\r\n77\r\nEND\r\n", ""),
                ("a", "cas k 32 -1 0 7\r\n\r\n", STORED, BUSY),
            ],
        ),
        (
            SPLIT,
            gets,
            &[
                ("a", gets, versioned, ""),
                ("b", GET, value, "VALUE k 1 4 7\r\nxxxx\r\nEND\r\n"),
            ],
        ),
        (
            SPLIT,
            gets,
            &[
                ("a", gets, versioned, ""),
                ("b", GET, MISS, ""),
                ("a", gets, versioned, ""),
                ("a", cas, STORED, ""),
                ("a", gets, MISS, MISS),
            ],
        ),
        (
            SPLIT,
            gets,
            &[
                ("a", gets, versioned, ""),
                ("b", GET, MISS, ""),
                ("a", gets, versioned, ""),
                ("a", cas, "EXISTS\r\n", ""),
                ("a", gets, versioned, ""),
                ("b", GET, MISS, failed),
            ],
        ),
    ];
    each_row(table, |(route, request, steps)| {
        play(&mut world(route), request, steps)
    });
}

const PIECES: &str = "{big_value: {child: {member: p/a}, threshold: 4, batch: 2}}";

#[test]
fn large_values_are_stored_and_read_in_pieces() {
    let place = "VALUE k 32769 12\r\n1-3-12345678\r\nEND\r\n";
    let piece =
        |number: u32, text: &str| format!("VALUE k:{number}:12345678 1 {}\r\n{text}\r\nEND\r\n", text.len());
    let pieces = [piece(0, "aaaa") + &piece(1, "bbbb"), piece(2, "c")];
    let first = "get k:0:12345678\r\nget k:1:12345678\r\n";
    let whole = "VALUE k 32769 9\r\naaaabbbbc\r\nEND\r\n";
    let hidden = PIECES.replace("batch: 2", "batch: 2, hide_flag: true");
    let table: &[(&str, &str, &[Step<'_>])] = &[
        (PIECES, GET, &[("a", GET, HIT, HIT)]),
        (PIECES, GET, &[("a", GET, MISS, MISS)]),
        (
            PIECES,
            GET,
            &[
                ("a", GET, place, ""),
                ("a", first, &pieces[0], ""),
                ("a", "get k:2:12345678\r\n", &pieces[1], whole),
            ],
        ),
        (
            &hidden,
            "gets k\r\n",
            &[
                (
                    "a",
                    "gets k\r\n",
                    "VALUE k 32769 12 9\r\n1-3-12345678\r\nEND\r\n",
                    "",
                ),
                ("a", first, &pieces[0], ""),
                (
                    "a",
                    "get k:2:12345678\r\n",
                    &pieces[1],
                    "VALUE k 1 9 9\r\naaaabbbbc\r\nEND\r\n",
                ),
            ],
        ),
        (
            PIECES,
            GET,
            &[
                ("a", GET, place, ""),
                ("a", first, "END\r\nSERVER_ERROR busy\r\n", BUSY),
            ],
        ),
        (
            PIECES,
            GET,
            &[("a", GET, place, ""), ("a", first, "END\r\nEND\r\n", MISS)],
        ),
        (
            PIECES,
            GET,
            &[("a", GET, "VALUE k 32768 3\r\nfoo\r\nEND\r\n", MISS)],
        ),
        (
            PIECES,
            "set k 0 0 4\r\nxxxx\r\n",
            &[("a", "set k 0 0 4\r\nxxxx\r\n", STORED, STORED)],
        ),
        (
            PIECES,
            "delete k\r\n",
            &[("a", "delete k\r\n", "DELETED\r\n", "DELETED\r\n")],
        ),
    ];
    each_row(table, |(route, request, steps)| {
        play(&mut world(route), request, steps)
    });
    let mut world = world(PIECES);
    let client = world.client();
    world.say(client, b"cas k 1 60 9 7\r\naaaabbbbc\r\n");
    let sent = world.sent("a");
    let suffix = sent
        .lines()
        .next()
        .unwrap()
        .split([':', ' '])
        .nth(3)
        .unwrap()
        .to_owned();
    let expected = format!("set k:0:{suffix} 1 60 4\r\naaaa\r\nset k:1:{suffix} 1 60 4\r\nbbbb\r\n");
    assert_eq!(sent, expected);
    world.reply("a", "STORED\r\n");
    assert_eq!(world.sent("a"), "", "a batch goes on when all of it is stored");
    world.reply("a", "STORED\r\n");
    assert_eq!(world.sent("a"), format!("set k:2:{suffix} 1 60 1\r\nc\r\n"));
    world.reply("a", "STORED\r\n");
    let text = format!("1-3-{suffix}");
    let place = format!("cas k 32769 60 {} 7\r\n{text}\r\n", text.len());
    assert_eq!(world.sent("a"), place);
    world.reply("a", "EXISTS\r\n");
    assert_eq!(world.heard(client), "EXISTS\r\n");
    assert!(world.is_idle());
    world.say(client, b"set k 1 60 9\r\naaaabbbbc\r\n");
    world.reply("a", "STORED\r\nSERVER_ERROR busy\r\n");
    assert_eq!(world.heard(client), BUSY);
    assert!(world.is_idle());
}

#[test]
fn values_of_any_size_pass_through_pieces() {
    let route = "{big_value: {child: {member: p/a}, threshold: 100000, batch: 0}}";
    let mut world = world(route);
    let client = world.client();
    let value: String = (0..250_000)
        .map(|number| char::from(b'a' + (number % 23) as u8))
        .collect();
    world.say(client, format!("set k 0 0 250000\r\n{value}\r\n").as_bytes());
    let sent = world.sent("a");
    let suffix = sent
        .lines()
        .next()
        .unwrap()
        .split([':', ' '])
        .nth(3)
        .unwrap()
        .to_owned();
    let pieces = [&value[..100_000], &value[100_000..200_000], &value[200_000..]];
    let set = |(number, piece): (usize, &&str)| {
        format!("set k:{number}:{suffix} 0 0 {}\r\n{piece}\r\n", piece.len())
    };
    assert!(sent == pieces.iter().enumerate().map(set).collect::<String>());
    world.reply("a", "STORED\r\nSTORED\r\nSTORED\r\n");
    world.sent("a");
    world.reply("a", "STORED\r\n");
    assert_eq!(world.heard(client), "STORED\r\n");
    world.say(client, b"get k\r\n");
    let text = format!("1-3-{suffix}");
    world.reply("a", &format!("VALUE k 32768 {}\r\n{text}\r\nEND\r\n", text.len()));
    world.sent("a");
    for (number, piece) in pieces.iter().enumerate() {
        let reply = format!(
            "VALUE k:{number}:{suffix} 0 {}\r\n{piece}\r\nEND\r\n",
            piece.len()
        );
        let (one, other) = reply.split_at(reply.len() / 2);
        world.reply("a", one);
        world.reply("a", other);
    }
    assert!(world.heard(client) == format!("VALUE k 32768 250000\r\n{value}\r\nEND\r\n"));
    assert!(world.is_idle());
}

#[test]
fn large_value_of_the_warm_server_is_answered_and_added() {
    let mut world = world(WARM_UP);
    let client = world.client();
    world.say(client, b"get k\r\n");
    world.reply("a", MISS);
    let value = "v".repeat(200_000);
    let reply = format!("VALUE k 0 200000\r\n{value}\r\nEND\r\n");
    world.sent("a");
    world.reply("b", &reply);
    assert!(world.heard(client) == reply);
    assert!(world.sent("a") == format!("add k 0 60 200000\r\n{value}\r\n"));
    world.reply("a", "STORED\r\n");
    assert!(world.is_idle());
}

#[test]
fn lost_server_ends_every_step() {
    for route in [WARM_UP, AS_WARM, STAGING, L1L2, SPLIT, PIECES] {
        let mut world = world(route);
        world.down.extend(["a".to_owned(), "b".to_owned()]);
        let client = world.client();
        for request in [GET, "gets k\r\n", "set k 0 0 9\r\naaaabbbbc\r\n", "delete k\r\n"] {
            world.say(client, request.as_bytes());
            let heard = world.heard(client);
            assert!(
                heard.starts_with("SERVER_ERROR 10.0.0."),
                "{route}: {request}: {heard}"
            );
        }
        assert!(world.is_idle(), "{route}");
    }
}

#[test]
fn fresh_server_is_spared_a_part_of_the_reads() {
    let route = "{slow_warm_up: {child: {member: p/a}, failover: {member: p/b}, min_requests: 10}}";
    let mut world = world(route);
    let client = world.client();
    for _ in 0..10 {
        world.say(client, b"get k\r\n");
        assert_eq!(world.sent("a"), GET);
        world.reply("a", MISS);
    }
    let (mut at_a, mut at_b) = (0, 0);
    for _ in 0..1000 {
        world.say(client, b"get k\r\n");
        match world.sent("a").is_empty() {
            false => {
                at_a += 1;
                world.reply("a", MISS);
            }
            true => {
                at_b += 1;
                assert_eq!(world.sent("b"), GET);
                world.reply("b", MISS);
            }
        }
    }
    assert!(
        (60..140).contains(&at_a) && at_a + at_b == 1000,
        "{at_a} and {at_b}"
    );
    world.say(client, b"set k 0 0 1\r\nx\r\n");
    assert_eq!(world.sent("a"), "set k 0 0 1\r\nx\r\n", "writes go to the server");
}
