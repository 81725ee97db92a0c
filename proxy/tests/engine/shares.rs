//! Workers share the connections that a server has for single clients.

use std::sync::Arc;

use proxima::members::QuotaWish;

use crate::world::{World, world_of};

/// Four connections, of which each of the two workers of a world may always have two.
const FOUR: &str = "pools:\n  p: {protocol: redis, servers: [{address: 10.0.0.1:1, name: a}], \
     dedicated: {total: 4}}\nlisteners: [{address: \"127.0.0.1:1\", protocol: redis, route: p}]\n";
const WAITS: &[u8] = b"*3\r\n$5\r\nBLPOP\r\n$1\r\nl\r\n$1\r\n0\r\n";
const NONE: &[u8] = b"*-1\r\n";

/// A worker whose clients have all four connections, and its two clients that wait for one.
fn one_has_all() -> (World, [usize; 2]) {
    let mut world = world_of(FOUR);
    let [.., fifth, sixth] = [(); 6].map(|()| {
        let client = world.client();
        world.say(client, WAITS);
        client
    });
    assert_eq!(world.lanes("a").len(), 4);
    (world, [fifth, sixth])
}

/// The lanes that are open.
fn open(world: &World) -> usize {
    let lanes = world.lanes("a").into_iter();
    lanes.filter(|&lane| world.seats[lane].closed.is_none()).count()
}

#[test]
fn a_worker_gives_up_what_is_above_its_share_while_another_one_has_less() {
    let (mut world, [fifth, sixth]) = one_has_all();
    world.sent("a");
    let health = Arc::clone(&world.engine.tree.reach(0)[0].health);
    let [first, second, third, fourth] = world.lanes("a").try_into().unwrap();
    // The other worker has none, and a client that needs one.
    health.quota().wish(QuotaWish::Nothing, QuotaWish::Share);
    for (lane, left) in [(first, 3), (second, 2)] {
        world.say(lane, NONE);
        assert_eq!(open(&world), left, "it goes to the other worker");
        assert_eq!(world.sent("a"), "", "those who wait here get none");
    }
    // This one keeps its own share, also for those who wait.
    world.say(third, NONE);
    assert_eq!((open(&world), world.heard(third).as_bytes()), (2, WAITS));
    // When the other one has what it needs, all that is left is here.
    health.quota().wish(QuotaWish::Share, QuotaWish::Nothing);
    world.say(fourth, NONE);
    assert_eq!((open(&world), world.heard(fourth).as_bytes()), (2, WAITS));
    for (client, lane) in [(fifth, third), (sixth, fourth)] {
        world.say(lane, NONE);
        assert_eq!(world.heard(client).as_bytes(), NONE);
    }
}

#[test]
fn a_worker_that_alone_wants_connections_has_all_of_them() {
    let (mut world, _) = one_has_all();
    world.sent("a");
    let lane = world.lanes("a")[0];
    world.say(lane, NONE);
    assert_eq!((open(&world), world.heard(lane).as_bytes()), (4, WAITS));
}
