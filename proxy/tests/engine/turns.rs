//! Commands that let their clients wait, and whose turn it is.

use std::time::Duration;

use crate::world::{World, world_of};

const REDIS: &str = "pools: {p: {protocol: redis, servers: [{address: 10.0.0.1:1, name: a}], timeout: 1s}}\n\
     listeners: [{address: \"127.0.0.1:1\", protocol: redis, route: p}]\n";
const NONE: &str = "*-1\r\n";

fn pop(list: &str) -> String {
    format!("*3\r\n$5\r\nBLPOP\r\n$1\r\n{list}\r\n$1\r\n0\r\n")
}

/// A client waits for a connection that is being made, and a later one has found one that was there. Returns
/// the lanes of both.
fn one_behind_the_other() -> (World, usize, usize) {
    let mut world = world_of(REDIS);
    let [holder, first, second] = [(); 3].map(|()| world.client());
    world.say(holder, pop("x").as_bytes());
    let there = world.lane("a");
    world.frozen.insert("a".into());
    world.say(first, pop("k").as_bytes());
    let made = world.lane("a");
    world.say(there, NONE.as_bytes());
    world.sent("a");
    world.say(second, pop("k").as_bytes());
    assert_eq!(
        (world.heard(there), world.heard(made)),
        (String::new(), String::new())
    );
    (world, made, there)
}

#[test]
fn a_command_that_blocks_overtakes_none_that_waits_for_a_connection() {
    let (mut world, made, there) = one_behind_the_other();
    world.thaw(made);
    assert_eq!(world.heard(made), pop("k"));
    assert_eq!(world.heard(there), pop("k"));
    let late = world.client();
    world.frozen.clear();
    world.say(late, pop("k").as_bytes());
    assert_eq!(world.sent("a"), pop("k"), "nobody waits for a connection now");
}

#[test]
fn a_command_that_blocks_waits_for_a_connection_of_others_for_a_short_time_at_most() {
    let (mut world, made, there) = one_behind_the_other();
    world.pass(Duration::from_millis(100));
    assert_eq!(world.heard(there), "");
    world.pass(Duration::from_millis(200));
    assert_eq!((world.heard(there), world.heard(made)), (pop("k"), String::new()));
}

#[test]
fn a_connection_that_ends_keeps_nobody_waiting() {
    let (mut world, made, there) = one_behind_the_other();
    world.leave(made);
    world.pass(Duration::from_millis(50));
    assert_eq!(world.heard(there), pop("k"));
}

#[test]
fn two_commands_that_wait_for_connections_are_sent_in_the_order_in_which_they_came() {
    let mut world = world_of(REDIS);
    let [first, second] = [(); 2].map(|()| world.client());
    world.frozen.insert("a".into());
    world.say(first, pop("k").as_bytes());
    let early = world.lane("a");
    world.say(second, pop("k").as_bytes());
    let late = world.lane("a");
    world.thaw(late);
    assert_eq!(world.heard(late), "");
    world.thaw(early);
    assert_eq!((world.heard(early), world.heard(late)), (pop("k"), pop("k")));
}
