//! Values too large for a shared lane: they are passed on as they come, to one server or to several.

use std::{rc::Rc, time::Duration};

use proxima::{client::HIGH_WATER, copies::LockMode, route::Tree, upstream::STREAMED};

use crate::{
    copies::{copies, greet},
    rows::each_row,
    world::{World, world},
};

const SIZE: usize = 2 << 20;

/// A set of `SIZE` bytes, and its beginning.
fn set() -> String {
    format!("set k 0 0 {SIZE}\r\n{}\r\n", "v".repeat(SIZE))
}

fn say_in_pieces(world: &mut World, client: usize, text: &str) {
    for piece in text.as_bytes().chunks(16 << 10) {
        world.say(client, piece);
    }
}

#[test]
fn an_upload_gives_up_a_slow_copy_and_reaches_the_others() {
    let mut world = world("{all_sync: p}");
    world.frozen.insert("c".into());
    let client = world.client();
    let request = set();
    say_in_pieces(&mut world, client, &request);
    // The client is held back, and the value is not buffered here.
    assert!(world.seats[client].paused);
    let frozen = world.lane("c");
    let buffered = world
        .engine
        .servers
        .lanes()
        .map(|(_, lane)| lane.unsent())
        .max()
        .unwrap();
    assert!(buffered <= HIGH_WATER + (16 << 10), "{buffered} bytes are kept");
    world.pass(Duration::from_millis(1100));
    assert_eq!(world.seats[frozen].closed, Some(true), "cut off with a reset");
    assert!(!world.seats[client].paused);
    for member in ["a", "b"] {
        assert_eq!(
            world.seats[world.lane(member)].closed,
            None,
            "{member} was not slow"
        );
        assert!(world.sent(member) == request, "{member}");
        world.reply(member, "STORED\r\n");
    }
    assert_eq!(world.heard(client), "SERVER_ERROR 10.0.0.3:1: timeout\r\n");
    assert!(world.is_idle());
}

#[test]
fn a_slow_upload_ejects_no_server_and_loses_its_lane_in_the_end() {
    let mut world = world("{member: p/a}");
    let client = world.client();
    let request = set();
    world.say(client, &request.as_bytes()[..1000]);
    world.pass(Duration::from_secs(5));
    let lane = world.lane("a");
    assert_eq!(world.seats[lane].closed, None);
    let members = world.engine.tree.reach(0);
    assert_eq!(members[0].health.failures(), 0);
    world.pass(Duration::from_secs(7));
    assert_eq!(
        world.seats[client].closed,
        Some(true),
        "no progress within the write time-out"
    );
    assert_eq!(world.seats[lane].closed, Some(true), "half a value is of no use");
    assert_eq!(world.engine.tree.reach(0)[0].health.failures(), 0);
}

#[test]
fn a_moving_upload_may_last_longer_than_the_time_out() {
    let mut world = world("{member: p/a}");
    let client = world.client();
    let request = set();
    for piece in request.as_bytes().chunks(SIZE / 8) {
        world.say(client, piece);
        world.pass(Duration::from_millis(400));
    }
    assert_eq!(world.heard(client), "");
    world.reply("a", "STORED\r\n");
    assert_eq!(world.heard(client), "STORED\r\n");
}

#[test]
fn no_request_of_a_client_overtakes_its_own_upload() {
    let mut world = world("{member: p/a}");
    let client = world.client();
    world.say(client, b"get before\r\n");
    let request = set();
    say_in_pieces(&mut world, client, &format!("{request}get k\r\n"));
    assert_eq!(
        world.sent("a"),
        "get before\r\n",
        "the upload waits until it is alone"
    );
    world.reply("a", "END\r\n");
    assert!(world.sent("a") == request, "the get waits until it is stored");
    world.reply("a", "STORED\r\n");
    assert_eq!(world.sent("a"), "get k\r\n");
    world.say(world.lanes("a")[0], b"END\r\n");
    assert_eq!(world.heard(client), "END\r\nSTORED\r\nEND\r\n");
}

#[test]
fn other_clients_do_not_wait_for_an_upload() {
    let mut world = world("{member: p/a}");
    let (slow, quick) = (world.client(), world.client());
    world.say(slow, &set().as_bytes()[..100_000]);
    world.sent("a");
    world.say(quick, b"get k\r\n");
    assert_eq!(world.sent("a"), "get k\r\n");
    assert_eq!(world.lanes("a").len(), 2);
}

#[test]
fn uploads_beyond_the_bulk_lanes_wait_and_go_on_when_those_lanes_die() {
    let mut world = world("{member: p/a}");
    let request = set();
    let first: Vec<usize> = (0..STREAMED).map(|_| world.client()).collect();
    for &client in &first {
        world.say(client, &request.as_bytes()[..100_000]);
    }
    let last = world.client();
    say_in_pieces(&mut world, last, &request);
    let lanes = world.lanes("a");
    assert_eq!(lanes.len(), STREAMED);
    world.sent("a");
    for lane in lanes {
        world.leave(lane);
    }
    let has_heard = |&lane: &usize| !world.seats[lane].heard.is_empty();
    let taken = world.lanes("a").into_iter().find(has_heard).unwrap();
    assert!(world.sent("a") == request);
    world.say(taken, b"STORED\r\n");
    assert_eq!(world.heard(last), "STORED\r\n");
    for client in first {
        assert_eq!(
            world.heard(client),
            "SERVER_ERROR 10.0.0.1:1: Connection closed by the server\r\n"
        );
        say_in_pieces(&mut world, client, &request[100_000..]);
        world.say(client, b"version\r\n");
        assert!(
            world.heard(client).starts_with("VERSION"),
            "the rest of its value is swallowed"
        );
    }
}

#[test]
fn waiting_upload_whose_listener_is_removed_waits_no_more() {
    let mut world = world("{member: p/a}");
    let request = set();
    for _ in 0..STREAMED {
        let client = world.client();
        world.say(client, &request.as_bytes()[..100_000]);
    }
    let last = world.client();
    say_in_pieces(&mut world, last, &request);
    assert_eq!(world.engine.clients.waiting_uploads(), 1);
    world.engine.tree = Rc::new(Tree::empty());
    for lane in world.lanes("a") {
        world.leave(lane);
    }
    let answer = world.heard(last);
    assert!(answer.contains("this listener was removed"), "{answer}");
    assert_eq!(world.engine.clients.waiting_uploads(), 0);
}

/// The engine does not read from a client that waits for a place, so it has to look for the client's end. A
/// client that has sent everything is still served.
#[test]
fn a_waiting_upload_ends_when_its_client_has_gone() {
    let mut world = world("{member: p/a}");
    let (request, small) = (set(), format!("set s 0 0 100000\r\n{}\r\n", "v".repeat(100_000)));
    let first: Vec<usize> = (0..STREAMED).map(|_| world.client()).collect();
    for &client in &first {
        world.say(client, &request.as_bytes()[..100_000]);
    }
    let [whole, waits, left] = [0; 3].map(|_| world.client());
    world.say(whole, small.as_bytes());
    world.say(waits, small.as_bytes());
    world.say(left, &request.as_bytes()[..100_000]);
    assert!(world.seats[waits].paused && world.seats[left].paused);
    world.engine.check_uploads(&|_| Some(0));
    world.pass(Duration::from_millis(50));
    assert!(world.seats[left].closed.is_some());
    assert_eq!(world.seats[waits].closed, None);
    for client in [whole, waits] {
        world.reply("a", "STORED\r\n");
        assert_eq!(world.heard(client), "STORED\r\n");
    }
}

#[test]
fn an_early_answer_to_an_upload_is_passed_on() {
    let mut world = world("{member: p/a}");
    let client = world.client();
    let request = set();
    world.say(client, &request.as_bytes()[..100_000]);
    world.reply("a", "SERVER_ERROR object too large for cache\r\n");
    assert_eq!(world.heard(client), "SERVER_ERROR object too large for cache\r\n");
    say_in_pieces(&mut world, client, &request[100_000..]);
    assert!(
        world.sent("a") == request,
        "it swallows the value as memcached does"
    );
    world.say(client, b"get k\r\n");
    assert_eq!(world.sent("a"), "get k\r\n");
}

#[test]
fn a_client_that_leaves_in_mid_upload_closes_its_lanes() {
    let mut world = world("{all_sync: p}");
    let (client, other) = (world.client(), world.client());
    world.say(other, b"get k\r\n");
    world.say(client, &set().as_bytes()[..100_000]);
    world.leave(client);
    for member in ["a", "b", "c"] {
        let lanes = world.lanes(member);
        assert_eq!(
            [None, Some(true)],
            [world.seats[lanes[0]].closed, world.seats[lanes[1]].closed],
            "{member}"
        );
        world.reply(member, "END\r\n");
    }
    assert_eq!(world.heard(other), "END\r\n");
    assert!(world.is_idle());
}

#[test]
fn routes_without_a_server_swallow_the_uploads_that_they_refuse() {
    let rows = [
        ("embedded", "SERVER_ERROR object too large for cache\r\n"),
        ("{error: gone}", "SERVER_ERROR gone\r\n"),
        ("\"null\"", "NOT_STORED\r\n"),
    ];
    each_row(rows, |&(route, answer)| {
        let mut world = world(route);
        let client = world.client();
        say_in_pieces(&mut world, client, &set());
        assert_eq!(world.heard(client), answer, "{route}");
        world.say(client, b"mn\r\n");
        assert_eq!(world.heard(client), "MN\r\n", "{route}");
    });
}

#[test]
fn a_quiet_upload_is_sent_with_a_reply_that_is_silenced() {
    let mut world = world("{member: p/a}");
    let client = world.client();
    let body = "v".repeat(SIZE);
    say_in_pieces(
        &mut world,
        client,
        &format!("set k 0 0 {SIZE} noreply\r\n{body}\r\nget k\r\n"),
    );
    assert!(world.sent("a") == format!("set k 0 0 {SIZE}\r\n{body}\r\n"));
    world.reply("a", "STORED\r\n");
    assert_eq!(world.sent("a"), "get k\r\n");
    world.reply("a", "END\r\n");
    assert_eq!(world.heard(client), "END\r\n");
}

#[test]
fn an_upload_to_a_slow_server_is_not_closed_as_slow() {
    let mut world = crate::world::world_of(
        "pools: {p: {servers: [{address: 10.0.0.1:1, name: a}], timeout: 1m}}\n\
         listeners: [{address: \"127.0.0.1:1\", route: p}]\n",
    );
    let client = world.client();
    say_in_pieces(&mut world, client, &set());
    world.pass(Duration::from_secs(15));
    assert_eq!(world.seats[client].closed, None);
    world.reply("a", "STORED\r\n");
    assert_eq!(world.heard(client), "STORED\r\n");
}

#[test]
fn a_streamed_value_waits_for_its_key_lock_before_its_last_byte() {
    let mut world = copies();
    let (client, other) = (world.client(), world.client());
    let request = set();
    world.say(client, &request.as_bytes()[..100_000]);
    greet(&mut world, &["a", "b", "c"]);
    let mut rival = world.rival.lock(b"k", LockMode::AtOnce);
    assert!(
        rival.try_lock(),
        "a client in the middle of a value keeps nobody waiting"
    );
    say_in_pieces(&mut world, client, &request[100_000..]);
    world.pass(Duration::from_millis(100));
    for name in ["a", "b", "c"] {
        assert!(world.sent(name) == request[..request.len() - 1], "{name}");
    }
    drop(rival);
    world.pass(Duration::from_millis(1));
    // The value now holds the key lock exclusively, because lanes of one worker overtake each other, too.
    world.say(other, b"set k 0 0 1\r\ny\r\n");
    for name in ["a", "b", "c"] {
        assert_eq!(world.sent(name), "\n");
        world.reply(name, "STORED\r\n");
    }
    assert_eq!(world.heard(client), "STORED\r\n");
    world.pass(Duration::from_millis(1));
    for name in ["a", "b", "c"] {
        assert_eq!(world.sent(name), "set k 0 0 1\r\ny\r\n");
        world.reply(name, "STORED\r\n");
    }
    assert_eq!(world.heard(other), "STORED\r\n");
    assert!(world.rival.lock(b"k", LockMode::AtOnce).try_lock());
    assert!(world.is_idle());
}

#[test]
fn a_streamed_value_whose_client_leaves_releases_its_key_lock() {
    let mut world = copies();
    let client = world.client();
    let mut rival = world.rival.lock(b"k", LockMode::AtOnce);
    assert!(rival.try_lock());
    world.say(client, &set().as_bytes()[..100_000]);
    greet(&mut world, &["a", "b", "c"]);
    say_in_pieces(&mut world, client, &set()[100_000..]);
    world.pass(Duration::from_millis(1));
    world.reset(client);
    drop(rival);
    assert!(world.rival.lock(b"k", LockMode::AtOnce).try_lock());
    assert!(world.is_idle());
}

#[test]
fn a_half_closed_client_is_answered_when_its_value_gets_the_key_lock() {
    let mut world = copies();
    let client = world.client();
    let mut rival = world.rival.lock(b"k", LockMode::AtOnce);
    assert!(rival.try_lock());
    let request = set();
    world.say(client, &request.as_bytes()[..100_000]);
    greet(&mut world, &["a", "b", "c"]);
    say_in_pieces(&mut world, client, &request[100_000..]);
    world.leave(client);
    drop(rival);
    world.pass(Duration::from_millis(1));
    for name in ["a", "b", "c"] {
        assert!(world.sent(name) == request, "{name}");
        world.reply(name, "STORED\r\n");
    }
    assert_eq!(world.heard(client), "STORED\r\n");
    assert!(world.seats[client].closed.is_some());
}

#[test]
fn half_a_value_that_waits_for_a_slow_server_ends_with_its_client() {
    let mut world = world("{member: p/a}");
    world.frozen.insert("a".into());
    let client = world.client();
    say_in_pieces(&mut world, client, &set()[..SIZE / 2]);
    assert!(world.seats[client].paused);
    world.leave(client);
    let lane = world.lane("a");
    world.thaw(lane);
    assert_eq!(world.seats[lane].closed, Some(true));
    assert!(world.seats[client].closed.is_some());
}

#[test]
fn uploads_that_hardly_move_lose_their_place_to_a_waiting_one() {
    let mut world = world("{member: p/a}");
    let request = set();
    let dawdlers: Vec<usize> = (0..STREAMED).map(|_| world.client()).collect();
    for &client in &dawdlers {
        world.say(client, &request.as_bytes()[..100_000]);
    }
    world.pass(Duration::from_secs(3));
    for &client in &dawdlers {
        assert_eq!(world.seats[client].closed, None, "nobody wants its place");
        world.say(client, b"v");
    }
    let last = world.client();
    say_in_pieces(&mut world, last, &request);
    world.pass(Duration::from_millis(100));
    for &client in &dawdlers {
        assert_eq!(world.seats[client].closed, Some(true));
    }
    assert!(world.sent("a").ends_with(&request));
    world.reply("a", "STORED\r\n");
    assert_eq!(world.heard(last), "STORED\r\n");
    assert_eq!(world.engine.tree.reach(0)[0].health.failures(), 0);
}

#[test]
fn a_value_that_comes_whole_is_stored_beside_slow_uploads() {
    let mut world = world("{member: p/a}");
    for _ in 0..STREAMED + 2 {
        let dawdler = world.client();
        world.say(dawdler, &set().as_bytes()[..100_000]);
    }
    world.sent("a");
    let last = world.client();
    let request = format!("set k 0 0 100000\r\n{}\r\n", "w".repeat(100_000));
    say_in_pieces(&mut world, last, &request);
    assert!(world.sent("a") == request);
    world.reply("a", "STORED\r\n");
    assert_eq!(world.heard(last), "STORED\r\n");
    assert_eq!(world.lanes("a").len(), STREAMED + 1);
}

#[test]
fn an_upload_that_finds_no_place_in_time_is_refused_and_its_connection_stays() {
    let mut world = world("{member: p/a}");
    let request = set();
    let steady: Vec<usize> = (0..STREAMED).map(|_| world.client()).collect();
    for &client in &steady {
        world.say(client, &request.as_bytes()[..100_000]);
    }
    let last = world.client();
    world.say(last, &request.as_bytes()[..100_000]);
    for _ in 0..101 {
        for &client in &steady {
            world.say(client, &request.as_bytes()[..16 << 10]);
        }
        world.pass(Duration::from_millis(100));
    }
    assert_eq!(
        world.heard(last),
        "SERVER_ERROR 10.0.0.1:1: too many large values are on their way to it\r\n"
    );
    for &client in &steady {
        assert_eq!(world.seats[client].closed, None);
    }
    world.say(last, &request.as_bytes()[100_000..]);
    world.say(last, b"mn\r\n");
    assert_eq!(world.heard(last), "MN\r\n");
}

/// The slowest server sets the pace. The client waits for it, and so do the lanes to the others.
#[test]
fn a_client_that_waits_for_one_server_keeps_its_places_at_the_others() {
    let mut world = crate::world::world_of(
        "pools:\n  p:\n    timeout: 1m\n    servers: [{address: 10.0.0.1:1, name: a}, {address: 10.0.0.2:1, name: b}]\n\
         limits: {write_timeout: 2s}\nroutes: {main: {all_sync: p}}\nlisteners: [{address: \"127.0.0.1:1\", route: main}]\n",
    );
    world.frozen.insert("b".into());
    let clients: Vec<usize> = (0..=STREAMED).map(|_| world.client()).collect();
    for &client in &clients {
        say_in_pieces(&mut world, client, &set());
    }
    world.pass(Duration::from_secs(40));
    for &client in &clients[..STREAMED] {
        assert_eq!(world.seats[client].closed, None);
    }
}
