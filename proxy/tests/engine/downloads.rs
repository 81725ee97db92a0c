//! Replies too large for a shared lane: they are passed on as they come, and nobody waits for a slow reader.

use std::time::Duration;

use proxima::{client::HIGH_WATER, micros::Micros, upstream::STREAMED};

use crate::world::{World, world, world_of};

const SIZE: usize = 2 << 20;

fn value(key: &str) -> String {
    large(key, SIZE)
}

fn large(key: &str, size: usize) -> String {
    let value = key.repeat(size / key.len());
    format!("VALUE {key} 0 {size}\r\n{value}\r\nEND\r\n")
}

/// The server sends as long as the engine reads from it. Returns what it has not sent.
fn say_while_read<'a>(world: &mut World, lane: usize, mut text: &'a str) -> &'a str {
    while !text.is_empty() && !world.seats[lane].paused && world.seats[lane].closed.is_none() {
        let (piece, rest) = text.split_at(text.len().min(16 << 10));
        world.say(lane, piece.as_bytes());
        text = rest;
    }
    text
}

#[test]
fn a_large_reply_to_a_single_reader_is_streamed_at_its_pace() {
    let mut world = world("{member: p/a}");
    let (slow, quick) = (world.client(), world.client());
    world.seats[slow].frozen = true;
    world.say(slow, b"get k\r\n");
    let lane = world.lane("a");
    let reply = value("k");
    let mut rest = say_while_read(&mut world, lane, &reply);
    assert!(!rest.is_empty(), "it was not held back");
    let kept = reply.len() - rest.len();
    assert!(kept < 2 * HIGH_WATER, "{kept} bytes are kept");
    // Other requests take a fresh lane.
    world.say(quick, b"get l\r\n");
    assert_ne!(world.lane("a"), lane);
    world.reply("a", "END\r\n");
    assert_eq!(world.heard(quick), "END\r\n");
    // A slow reader does not count against the server, however long it takes.
    world.pass(Duration::from_secs(3));
    assert_eq!(world.seats[lane].closed, None);
    world.thaw(slow);
    for _ in 0..1000 {
        rest = say_while_read(&mut world, lane, rest);
    }
    assert!(rest.is_empty() && world.heard(slow) == reply);
    world.say(slow, b"version\r\n");
    assert!(world.heard(slow).starts_with("VERSION"));
}

#[test]
fn a_reader_that_takes_nothing_is_closed_with_its_bulk_lane() {
    let mut world = world("{member: p/a}");
    let slow = world.client();
    world.seats[slow].frozen = true;
    world.say(slow, b"get k\r\n");
    let lane = world.lane("a");
    let reply = value("k");
    let rest = say_while_read(&mut world, lane, &reply);
    while world.seats[slow].closed.is_none() {
        world.pass(Duration::from_millis(100));
    }
    assert!(world.engine.now > Micros::secs(9), "too early");
    assert_eq!(world.seats[slow].closed, Some(true));
    assert!(!world.seats[lane].paused, "nobody would ever read from it again");
    say_while_read(&mut world, lane, rest);
    assert_eq!(world.seats[lane].closed, Some(true));
    assert!(!world.engine.servers.has_paused_lanes() && world.engine.servers.lanes().count() == 0);
    assert_eq!(
        world.engine.tree.reach(0)[0].health.failures(),
        0,
        "not the server's fault"
    );
}

#[test]
fn a_large_reply_before_other_requests_is_collected() {
    let mut world = world("{member: p/a}");
    let (slow, quick) = (world.client(), world.client());
    world.seats[slow].frozen = true;
    world.say(slow, b"get k\r\n");
    world.say(quick, b"get l\r\n");
    let lane = world.lane("a");
    let reply = value("k");
    assert!(
        say_while_read(&mut world, lane, &reply).is_empty(),
        "it is held back"
    );
    world.reply("a", "VALUE l 0 1\r\nx\r\nEND\r\n");
    assert_eq!(world.heard(quick), "VALUE l 0 1\r\nx\r\nEND\r\n");
    world.thaw(slow);
    assert!(world.heard(slow) == reply);
    assert_eq!(world.lanes("a"), [lane]);
}

/// Bytes that were under way when a lane was held back still come. If the reply ends with them, the lane is
/// free for others, who must not wait for another client's reader.
#[test]
fn a_lane_held_back_is_read_again_behind_its_reply() {
    let mut world = world("{member: p/a}");
    let (slow, quick) = (world.client(), world.client());
    world.seats[slow].frozen = true;
    world.say(slow, b"get k\r\n");
    let (lane, reply) = (world.lane("a"), value("k"));
    let rest = say_while_read(&mut world, lane, &reply);
    assert!(!rest.is_empty(), "it was not held back");
    world.say(lane, rest.as_bytes());
    world.say(quick, b"get l\r\n");
    assert_eq!(world.lane("a"), lane, "the lane is not used again");
    world.thaw(slow);
    assert!(!world.seats[lane].paused, "nobody would ever read from it again");
    world.reply("a", "END\r\n");
    assert_eq!(world.heard(quick), "END\r\n");
    assert!(world.heard(slow) == reply);
}

/// The parts of a divided reply leave together: a part that waited for its reader to take another one would
/// wait for ever. Only behind an earlier reply a part is held back.
#[test]
fn parts_of_a_large_divided_reply_are_read_to_their_ends() {
    for first in ["", "*2\r\n$3\r\nGET\r\n$4\r\n0key\r\n"] {
        let mut world = world_of(
            "pools:\n  p: {protocol: redis, servers: [{address: \"10.0.0.1:1\", name: a}, {address: \"10.0.0.2:1\", name: b}]}\n\
             limits: {total_bytes: 16MiB}\nlisteners: [{address: \"127.0.0.1:1\", protocol: redis, route: p}]\n",
        );
        let client = world.client();
        let keys: Vec<String> = (0..8).map(|number| format!("{number}key")).collect();
        let bulk = |key: &String| format!("${}\r\n{}\r\n", SIZE / 4, key.repeat(SIZE / 4 / key.len()));
        let asked: String = keys.iter().map(|key| format!("$4\r\n{key}\r\n")).collect();
        world.say(client, format!("{first}*9\r\n$4\r\nMGET\r\n{asked}").as_bytes());
        let sent = ["a", "b"].map(|name| (name, world.sent(name)));
        let (of_first, other) = match sent[0].1.contains("GET\r\n$4\r\n0key") {
            true => (&sent[0], &sent[1]),
            false => (&sent[1], &sent[0]),
        };
        let reply = |(_, sent): &(&str, String)| {
            let own: Vec<&String> = keys.iter().filter(|key| sent.contains(*key)).collect();
            assert!((2..7).contains(&own.len()), "{own:?}");
            let bulks: String = own.iter().map(|key| bulk(key)).collect();
            format!("*{}\r\n{bulks}", own.len())
        };
        let (share, last) = (reply(other), reply(of_first));
        let lanes = [other.0, of_first.0].map(|name| world.lane(name));
        let rest = say_while_read(&mut world, lanes[0], &share);
        assert_eq!(rest.is_empty(), first.is_empty(), "only behind an earlier reply");
        if !first.is_empty() {
            world.reply(of_first.0, "$1\r\nv\r\n");
            assert_eq!(world.heard(client), "$1\r\nv\r\n");
        }
        assert!(
            say_while_read(&mut world, lanes[0], rest).is_empty(),
            "held back for ever"
        );
        assert!(say_while_read(&mut world, lanes[1], &last).is_empty());
        let expected: String = keys.iter().map(bulk).collect();
        assert!(world.heard(client) == format!("*8\r\n{expected}"));
    }
}

/// After a failover the earlier of two requests waits behind the reply to the later one, which waits for its
/// turn.
#[test]
fn replies_that_wait_for_each_other_after_a_failover_end() {
    let mut world = world_of(
        "pools:\n  p: {servers: [{address: \"10.0.0.1:1\", name: a}]}\n  q: {servers: [{address: \"10.0.0.2:1\", name: b}]}\n\
         limits: {total_bytes: 4MiB}\nroutes: {main: {by_prefix: {prefixes: {a: {failover: [p, q]}, b: q}}}}\n\
         listeners: [{address: \"127.0.0.1:1\", route: main}]\n",
    );
    let (both, other) = (world.client(), world.client());
    world.say(both, b"get a\r\nget b\r\n");
    world.say(other, b"get b1\r\n");
    let second = world.lane("b");
    world.die("a");
    let reply = value("b");
    let rest = say_while_read(&mut world, second, &reply);
    assert!(!rest.is_empty(), "it was not held back");
    world.pass(Duration::from_millis(400));
    assert_eq!(world.seats[both].closed, Some(true), "it is held back for ever");
    assert!(say_while_read(&mut world, second, rest).is_empty());
    // The server hears the reader's own request behind the reply, for which nobody waits any more, and that
    // of the other client.
    world.reply("b", "END\r\nEND\r\n");
    assert_eq!(world.heard(other), "END\r\n");
    assert_eq!(world.seats[second].closed, None);
}

#[test]
fn requests_behind_a_long_reply_have_their_own_time_out() {
    let mut world = world("{member: p/a}");
    let (first, second) = (world.client(), world.client());
    world.say(first, b"get k\r\n");
    world.say(second, b"get l\r\n");
    let lane = world.lane("a");
    let reply = value("k");
    for piece in reply.as_bytes().chunks(SIZE / 8) {
        world.say(lane, piece);
        world.pass(Duration::from_millis(400));
    }
    world.reply("a", "END\r\n");
    assert_eq!(world.heard(second), "END\r\n");
    world.say(second, b"get l\r\n");
    world.pass(Duration::from_millis(1200));
    assert_eq!(world.heard(second), "SERVER_ERROR 10.0.0.1:1: timeout\r\n");
}

#[test]
fn a_server_that_stops_in_mid_reply_closes_only_its_reader() {
    let mut world = world("{member: p/a}");
    let (reader, other) = (world.client(), world.client());
    world.say(reader, b"get k\r\n");
    let (lane, reply) = (world.lane("a"), value("k"));
    world.say(lane, &reply.as_bytes()[..100_000]);
    world.say(other, b"get l\r\n");
    world.pass(Duration::from_millis(300));
    world.reply("a", "END\r\n");
    world.pass(Duration::from_millis(900));
    assert_eq!(world.seats[lane].closed, Some(true));
    assert_eq!(
        world.seats[reader].closed,
        Some(true),
        "half a reply must not look like a whole one"
    );
    assert_eq!(world.heard(other), "END\r\n");
    assert_eq!(world.seats[other].closed, None);
}

#[test]
fn large_and_small_replies_to_several_keys_are_joined_in_order() {
    let mut world = world("{by_prefix: {prefixes: {a: {member: p/a}, b: {member: p/b}, c: {member: p/c}}}}");
    let client = world.client();
    world.say(client, b"get b c a x\r\nget c\r\n");
    let (large_a, large_c) = (value("a"), value("c"));
    // Because of the second get, the reply for c has another behind it and is collected. That for a is held
    // back out of turn.
    let (lane_a, lane_c) = (world.lane("a"), world.lane("c"));
    assert!(say_while_read(&mut world, lane_c, &large_c).is_empty());
    let rest = say_while_read(&mut world, lane_a, &large_a);
    assert!(!rest.is_empty());
    assert_eq!(world.heard(client), "");
    world.reply("b", "VALUE b 0 1\r\nx\r\nEND\r\n");
    assert!(say_while_read(&mut world, lane_a, rest).is_empty());
    let cut = |text: &str| text.strip_suffix("END\r\n").unwrap().to_owned();
    let small = "VALUE b 0 1\r\nx\r\n";
    // x has no route, so its error ends the reply.
    let error = "SERVER_ERROR no route for this key's prefix\r\n";
    assert!(world.heard(client) == [small, &cut(&large_c), &cut(&large_a), error].concat());
    world.reply("c", "END\r\n");
    assert_eq!(world.heard(client), "END\r\n");
}

#[test]
fn a_collected_reply_is_bounded() {
    let mut world = world_of(
        "pools: {p: [10.0.0.1:1]}\nlimits: {total_bytes: 4MiB}\n\
         listeners: [{address: \"127.0.0.1:1\", route: p}]\n",
    );
    let (slow, quick) = (world.client(), world.client());
    world.seats[slow].frozen = true;
    world.say(slow, b"get k\r\n");
    world.say(quick, b"get l\r\n");
    let (lane, reply) = (world.lane("10.0.0.1:1"), value("k"));
    let rest = say_while_read(&mut world, lane, &reply);
    assert!(
        reply.len() - rest.len() < (1 << 20) + HIGH_WATER,
        "{} bytes are left",
        rest.len()
    );
    // Requests behind wait for the reader, which is closed when it takes nothing.
    while world.seats[slow].closed.is_none() {
        world.pass(Duration::from_millis(100));
    }
    assert!(say_while_read(&mut world, lane, rest).is_empty());
    world.say(lane, b"END\r\n");
    assert_eq!(world.heard(quick), "END\r\n");
}

/// Each reply ends where the server's bytes end. The end of each must not let the next one come.
#[test]
fn collected_replies_of_one_reader_are_bounded_together() {
    let mut world = world_of(
        "pools: {p: [10.0.0.1:1]}\nlimits: {total_bytes: 16MiB, connection_bytes: 16MiB}\n\
         listeners: [{address: \"127.0.0.1:1\", route: p}]\n",
    );
    let (slow, quick) = (world.client(), world.client());
    world.seats[slow].frozen = true;
    world.say(slow, &b"get k\r\n".repeat(20));
    let (lane, reply) = (world.lane("10.0.0.1:1"), value("k"));
    let mut said = 0;
    while !world.seats[lane].paused && said < 20 {
        world.say(lane, reply.as_bytes());
        said += 1;
    }
    assert!(
        said <= 2,
        "{said} replies of 2 MiB were taken for a reader that takes nothing"
    );
    // Its own requests are no reason to close it, because nobody else waits.
    world.pass(Duration::from_secs(5));
    assert_eq!(world.seats[slow].closed, None);
    // The server is not late either: its time-out begins anew when it is read from again.
    world.thaw(slow);
    assert!(!world.seats[lane].paused);
    world.pass(Duration::from_millis(500));
    while said < 20 {
        world.say(lane, reply.as_bytes());
        said += 1;
    }
    assert!(world.heard(slow) == reply.repeat(20));
    world.say(quick, b"get l\r\n");
    world.reply("10.0.0.1:1", "END\r\n");
    assert_eq!(world.heard(quick), "END\r\n");
}

/// Each reply is small compared with the bound on one reply out of turn. All of them together are not.
#[test]
fn collected_replies_out_of_turn_are_bounded_together() {
    for to in ["{member: p/a}", "{failover: [{member: p/a}, {member: p/b}]}"] {
        let mut world = world_of(&format!(
            "pools: {{p: [{{address: \"10.0.0.1:1\", name: a}}, {{address: \"10.0.0.2:1\", name: b}}, \
                           {{address: \"10.0.0.3:1\", name: c}}]}}\n\
             limits: {{total_bytes: 16MiB, connection_bytes: 16MiB}}\n\
             routes: {{main: {{by_prefix: {{prefixes: {{c: {{member: p/c}}}}, default: {to}}}}}}}\n\
             listeners: [{{address: \"127.0.0.1:1\", route: main}}]\n"
        ));
        let client = world.client();
        world.say(client, b"get c\r\n");
        world.say(client, &b"get k\r\n".repeat(20));
        let (lane, reply) = (world.lane("a"), large("k", 512 << 10));
        let mut said = 0;
        while !world.seats[lane].paused && said < 20 {
            world.say(lane, reply.as_bytes());
            said += 1;
        }
        assert!(said <= 4, "{said} replies of 512 KiB were collected for {to}");
        world.reply("c", "END\r\n");
        while said < 20 {
            assert!(!world.seats[lane].paused, "nobody would ever read from it again");
            world.say(lane, reply.as_bytes());
            said += 1;
        }
        assert!(world.heard(client) == format!("END\r\n{}", reply.repeat(20)));
    }
}

/// A reader that takes a little again and again holds its lane again and again, but only for a bounded time
/// in all.
#[test]
fn a_trickling_reader_delays_those_behind_it_by_half_the_time_out_at_most() {
    let mut world = world_of(
        "pools: {p: [10.0.0.1:1]}\nlimits: {total_bytes: 4MiB}\n\
         listeners: [{address: \"127.0.0.1:1\", route: p}]\n",
    );
    let (slow, quick) = (world.client(), world.client());
    world.seats[slow].frozen = true;
    world.say(slow, b"get k\r\nget k\r\nget k\r\n");
    world.say(quick, b"get l\r\n");
    let (lane, reply) = (world.lane("10.0.0.1:1"), value("k"));
    let replies = format!("{reply}{reply}{reply}END\r\n");
    let (sent, mut rest) = (world.engine.now, say_while_read(&mut world, lane, &replies));
    while world.seats[slow].closed.is_none() {
        world.thaw(slow);
        world.seats[slow].frozen = true;
        rest = say_while_read(&mut world, lane, rest);
        world.pass(Duration::from_millis(50));
    }
    assert_eq!(world.seats[slow].closed, Some(true), "half a reply has left");
    assert!(say_while_read(&mut world, lane, rest).is_empty());
    assert_eq!(world.heard(quick), "END\r\n");
    let waited = world.engine.now - sent;
    assert!(waited <= Micros::millis(500), "{waited:?}");
    assert_eq!(world.seats[lane].closed, None, "the lane lives on");
}

/// The bound does not depend on how often time-outs are checked: the lane is not held back at all for the
/// last readers.
#[test]
fn many_slow_readers_delay_those_behind_them_by_half_the_time_out_at_most() {
    let mut world = world_of(
        "pools: {p: [10.0.0.1:1]}\nlimits: {total_bytes: 64MiB}\n\
         listeners: [{address: \"127.0.0.1:1\", route: p}]\n",
    );
    let slow: Vec<usize> = (0..20).map(|_| world.client()).collect();
    for &reader in &slow {
        world.seats[reader].frozen = true;
        world.say(reader, &b"get k\r\n".repeat(4));
    }
    let quick = world.client();
    world.say(quick, b"get l\r\n");
    let (lane, reply) = (world.lane("10.0.0.1:1"), value("k"));
    let replies = format!("{}END\r\n", reply.repeat(20 * 4));
    let (sent, mut rest) = (world.engine.now, replies.as_str());
    loop {
        rest = say_while_read(&mut world, lane, rest);
        if rest.is_empty() {
            break;
        }
        world.pass(Duration::from_millis(50));
    }
    assert_eq!(world.heard(quick), "END\r\n");
    let waited = world.engine.now - sent;
    assert!(waited <= Micros::millis(500), "{waited:?}");
    assert!(slow.iter().all(|&reader| world.seats[reader].closed.is_some()));
    assert_eq!(world.seats[lane].closed, None, "the lane lives on");
}

#[test]
fn slow_readers_take_no_more_bulk_lanes_than_promised() {
    let mut world = world("{member: p/a}");
    let reply = value("k");
    let readers: Vec<usize> = (0..STREAMED + 3).map(|_| world.client()).collect();
    for &reader in &readers {
        world.seats[reader].frozen = true;
        world.say(reader, b"get k\r\n");
        let lane = world.lane("a");
        say_while_read(&mut world, lane, &reply);
    }
    let open = |world: &World| {
        let lanes = world.lanes("a");
        lanes
            .into_iter()
            .filter(|&lane| world.seats[lane].closed.is_none())
            .count()
    };
    assert!(open(&world) <= STREAMED + 1, "{} connections", open(&world));
    // Another client wants a place, so the one that takes nothing loses its place.
    world.pass(Duration::from_millis(600));
    let lost = readers
        .iter()
        .filter(|&&reader| world.seats[reader].closed.is_some())
        .count();
    assert_eq!(lost, STREAMED);
    let quick = world.client();
    world.say(quick, b"get l\r\n");
    world.reply("a", "END\r\n");
    assert_eq!(world.heard(quick), "END\r\n");
}

/// A pool whose servers are waited for without end, and half of whose memory a reply takes.
const PATIENT: &str = "pools: {p: {servers: [10.0.0.1:1], timeout: 1000h}}\n\
                       limits: {total_bytes: 4MiB, write_timeout: 2s}\n\
                       listeners: [{address: \"127.0.0.1:1\", route: p}]\n";

#[test]
fn a_slow_reader_of_a_pool_without_a_time_out_delays_others_by_a_part_of_the_write_timeout() {
    let mut world = world_of(PATIENT);
    let (slow, quick) = (world.client(), world.client());
    world.seats[slow].frozen = true;
    world.say(slow, b"get k\r\n");
    world.say(quick, b"get l\r\n");
    let (lane, reply, sent) = (world.lane("10.0.0.1:1"), value("k"), world.engine.now);
    let rest = say_while_read(&mut world, lane, &reply);
    assert!(!rest.is_empty(), "it was not held back");
    while world.seats[slow].closed.is_none() {
        world.pass(Duration::from_millis(50));
    }
    let waited = world.engine.now - sent;
    assert!(waited <= Micros::millis(700), "{waited:?}");
    assert!(say_while_read(&mut world, lane, rest).is_empty());
    world.say(lane, b"END\r\n");
    assert_eq!(world.heard(quick), "END\r\n");
}

#[test]
fn slow_readers_of_a_pool_without_a_time_out_lose_their_places_to_others() {
    let mut world = world_of(PATIENT);
    let reply = value("k");
    let readers: Vec<usize> = (0..STREAMED + 3).map(|_| world.client()).collect();
    for &reader in &readers {
        world.seats[reader].frozen = true;
        world.say(reader, b"get k\r\n");
        let lane = world.lane("10.0.0.1:1");
        say_while_read(&mut world, lane, &reply);
    }
    world.pass(Duration::from_millis(700));
    let is_closed = |reader: &&usize| world.seats[**reader].closed.is_some();
    assert!(readers.iter().filter(is_closed).count() >= STREAMED);
}
