//! A request that passes only choose routes (hash, nearest, operation, prefix …) allocates nothing once its
//! buffers have grown, nor does one on a connection of its client's own. What is fetched to be kept allocates
//! once: for the readers that wait for it.

#[path = "engine/statements.rs"]
mod statements;
#[path = "../../guard/src/traffic.rs"]
mod traffic;
#[path = "engine/world.rs"]
#[allow(dead_code, reason = "other tests play more")]
mod world;

use std::alloc::System;

use proxima::engine::{Endpoint, Engine};
use statements::Statements;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use traffic::{SCENARIOS, Traffic};
use world::World;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

// This is the only test of this file, because another thread's allocations would count here.
#[test]
fn ten_thousand_requests_allocate_nothing() {
    dedicated_requests_allocate_nothing();
    statements_allocate_nothing();
    for scenario in &SCENARIOS {
        let mut traffic = Traffic::record(scenario);
        // Lanes take their buffers in turns, and each of them has to grow.
        while traffic.replies() < 20_000 {
            traffic.replay();
        }
        let (before, fetched) = (traffic.replies(), traffic.fetched());
        let region = Region::new(ALLOCATOR);
        while traffic.replies() - before < 10_000 {
            traffic.replay();
        }
        let change = region.change();
        let (replies, fetched) = (traffic.replies() - before, traffic.fetched() - fetched);
        match scenario.name.trim_start_matches("redis-") {
            "near-cache-misses" => assert_eq!(fetched, replies, "{}", scenario.name),
            // Six of eleven rounds read.
            "near-cache-writes" => {
                assert!(
                    (replies / 2..=replies * 3 / 5).contains(&fetched),
                    "{}",
                    scenario.name
                );
            }
            _ => assert_eq!(fetched, 0, "{}", scenario.name),
        }
        assert_eq!(
            (change.allocations, change.reallocations),
            (fetched as usize, 0),
            "{}: {change:?}",
            scenario.name
        );
    }
}

/// The client's commands let it wait, each on a connection of its own, which is free behind the reply.
fn dedicated_requests_allocate_nothing() {
    let mut world = world::world_of(
        "pools: {p: {protocol: redis, servers: [{address: 10.0.0.1:1, name: a}], eject: {failures: 0}}}\n\
         listeners: [{address: \"127.0.0.1:1\", protocol: redis, route: p}]\n",
    );
    let ask = b"*3\r\n$5\r\nBLPOP\r\n$1\r\nk\r\n$1\r\n1\r\n";
    let answer = b"*2\r\n$1\r\nk\r\n$1\r\nv\r\n";
    let client = world.client();
    world.turn();
    world.say(client, ask);
    world.say(world.lane("a"), answer);
    assert_eq!(world.heard(client).as_bytes(), answer);
    rounds_allocate_nothing(&mut world, client, "a", (ask, answer), "dedicated");
}

/// Each statement of MySQL has a connection for itself as well, and its codec writes it there. Before a Galera
/// cluster it is known first that a reader has what it must show.
fn statements_allocate_nothing() {
    for (mut statements, what) in [
        (Statements::begin(), "statements"),
        (Statements::at_reader(), "reads at a reader"),
    ] {
        let (ask, answer) = (&statements.ask[..], &statements.answer[..]);
        let (client, server) = (statements.client, statements.server);
        rounds_allocate_nothing(&mut statements.world, client, server, (ask, answer), what);
    }
}

/// The client asks again and again, and this server answers.
fn rounds_allocate_nothing(
    world: &mut World,
    client: usize,
    server: &str,
    (ask, answer): (&[u8], &[u8]),
    what: &str,
) {
    let (client, lane) = (world.seats[client].peer, world.seats[world.lane(server)].peer);
    let engine = &mut world.engine;
    let mut round = || {
        say(engine, client, ask);
        assert_eq!(take(engine, lane), ask.len());
        say(engine, lane, answer);
        assert_eq!(take(engine, client), answer.len());
    };
    (0..1_000).for_each(|_| round());
    let region = Region::new(ALLOCATOR);
    (0..10_000).for_each(|_| round());
    let change = region.change();
    assert_eq!(
        (change.allocations, change.reallocations),
        (0, 0),
        "{what}: {change:?}"
    );
}

/// Lets bytes arrive from one end of the engine.
fn say(engine: &mut Engine, from: Endpoint, bytes: &[u8]) {
    match from {
        Endpoint::Client(id) => engine.client_bytes(id, bytes),
        Endpoint::Lane(id) => engine.lane_bytes(id, bytes),
        Endpoint::Link(_) => {}
    }
}

/// Takes what is to be sent there, as a worker does at the end of a turn. Returns its length.
fn take(engine: &mut Engine, to: Endpoint) -> usize {
    engine.actions.flush.clear();
    let stream = engine.stream(to).unwrap();
    stream.dirty = false;
    let mut out = std::mem::take(&mut stream.out);
    let size = out.len();
    out.clear();
    engine.buffers.give(out);
    if let Endpoint::Client(id) = to {
        engine.charge(id, 0);
    }
    engine.settle_room();
    size
}
