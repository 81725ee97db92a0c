//! Servers behind slow links, and frozen ones: the proxy's own load causes back-pressure and is no failure of
//! a server.

use std::time::Duration;

use crate::{
    copies::{copies, greet},
    world::{World, world},
};

const VALUE: usize = 10_000;

/// This many sets of `VALUE` bytes.
fn sets(count: usize) -> String {
    let value = "v".repeat(VALUE);
    (0..count)
        .map(|number| format!("set k{number} 0 0 {VALUE}\r\n{value}\r\n"))
        .collect()
}

/// The bytes that wait for a member, in the proxy and at its socket.
fn waiting(world: &World, member: &str) -> usize {
    let lane = world.lane(member);
    let out: usize = world
        .engine
        .servers
        .lanes()
        .filter(|(_, lane)| lane.member.name == member)
        .map(|(_, lane)| lane.unsent())
        .sum();
    out + world.seats[lane].backlog.len() + world.seats[lane].heard.len()
}

#[test]
fn a_client_is_not_read_beyond_its_share_of_a_lane() {
    let mut world = world("{member: p/a}");
    world.frozen.insert("a".into());
    let client = world.client();
    world.say(client, sets(400).as_bytes());
    assert!(world.seats[client].paused);
    assert!(waiting(&world, "a") <= (1 << 20) + 2 * VALUE);
    // Another client is still served.
    let other = world.client();
    world.say(other, b"get k\r\n");
    let lane = world.lane("a");
    world.thaw(lane);
    assert!(world.heard(lane).ends_with("get k\r\n"));
    // Replies make room.
    for _ in 0..20 {
        world.say(lane, b"STORED\r\n");
    }
    assert!(world.heard(lane).len() > 19 * VALUE);
}

#[test]
fn a_change_counts_against_the_clients_share_at_every_copy() {
    let mut world = world("{all_sync: p}");
    for member in ["a", "b", "c"] {
        world.frozen.insert(member.into());
    }
    let client = world.client();
    world.say(client, sets(400).as_bytes());
    let all: usize = ["a", "b", "c"].map(|member| waiting(&world, member)).iter().sum();
    assert!(all <= (1 << 20) + 6 * VALUE, "{all}");
}

#[test]
fn a_copy_behind_a_slow_link_misses_no_write_while_it_takes_bytes() {
    let mut world = copies();
    let clients = [(); 24].map(|()| world.client());
    world.say(clients[0], b"set first 0 0 1\r\nx\r\n");
    greet(&mut world, &["a", "b", "c"]);
    for name in ["a", "b", "c"] {
        world.reply(name, "STORED\r\n");
        world.sent(name);
    }
    let slow = world.lane("c");
    world.seats[slow].frozen = true;
    for (number, &client) in clients.iter().enumerate() {
        // The clients send far more than 16 MiB in all, each with keys of its own.
        world.say(
            client,
            sets(400).replace("set k", &format!("set c{number}.")).as_bytes(),
        );
    }
    for _ in 0..20 {
        for quick in ["a", "b"] {
            let stored = world.sent(quick).matches("set c").count();
            world.reply(quick, &"STORED\r\n".repeat(stored));
        }
        world.drip(slow, 50_000);
        world.pass(Duration::from_millis(300));
    }
    assert_eq!(world.seats[slow].closed, None, "it takes bytes all the time");
    assert_eq!(world.engine.tree.reach(0)[2].health.failures(), 0);
}

#[test]
fn a_lane_whose_server_takes_nothing_is_late() {
    let mut world = world("{member: p/a}");
    world.frozen.insert("a".into());
    let client = world.client();
    world.say(client, sets(400).as_bytes());
    let lane = world.lane("a");
    for _ in 0..4 {
        world.drip(lane, 50_000);
        world.pass(Duration::from_millis(600));
    }
    assert_eq!(world.seats[lane].closed, None);
    world.pass(Duration::from_millis(1100));
    assert_eq!(world.seats[lane].closed, Some(true));
}

/// The kernel of a frozen server goes on taking bytes. Those behind the awaited request do not show that the
/// server lives.
#[test]
fn a_frozen_server_is_late_however_many_bytes_its_kernel_takes() {
    let mut world = world("{member: p/a}");
    let (first, others) = (world.client(), world.client());
    world.say(first, b"get k\r\n");
    let lane = world.lane("a");
    for _ in 0..11 {
        world.say(others, b"get l\r\n");
        world.pass(Duration::from_millis(100));
    }
    assert_eq!(world.seats[lane].closed, Some(true));
    assert_eq!(world.heard(first), "SERVER_ERROR 10.0.0.1:1: timeout\r\n");
}

#[test]
fn a_lane_on_which_replies_come_is_not_late() {
    let mut world = world("{member: p/a}");
    let client = world.client();
    world.say(client, b"get a\r\nget b\r\nget c\r\n");
    for _ in 0..3 {
        world.pass(Duration::from_millis(800));
        world.reply("a", "END\r\n");
    }
    assert_eq!(world.heard(client), "END\r\nEND\r\nEND\r\n");
}
