//! Distances by the node agent: each client is served by the server on its own NUMA node.

use std::sync::Arc;

use proxima::{
    copies::CopyState,
    engine::Endpoint,
    members::{ClientSource, Localities, Locality},
    route::Orders,
};

use crate::{
    copies::{COPIES, id},
    world::{World, world, world_of},
};

const GET: &[u8] = b"get k\r\n";
const MISS: &str = "END\r\n";

/// Two sockets with two NUMA nodes each. Server a is on node 0, b on node 1, c on node 2; there is a client
/// on every node, 10.1.0.N.
const PODS: &str = r#"
    {"ips":["10.0.0.1"],"containers":[{"nodes":[0]}]}, {"ips":["10.0.0.2"],"containers":[{"nodes":[1]}]},
    {"ips":["10.0.0.3"],"containers":[{"nodes":[2]}]},
    {"ips":["10.1.0.0"],"containers":[{"nodes":[0]}]}, {"ips":["10.1.0.1"],"containers":[{"nodes":[1]}]},
    {"ips":["10.1.0.2"],"containers":[{"nodes":[2]}]}, {"ips":["10.1.0.3"],"containers":[{"nodes":[3]}]}"#;

fn localities(pods: &str) -> Localities {
    let text = format!(
        r#"{{"version":1,"nodes":[
            {{"id":0,"sockets":[0],"distances":{{"0":10,"1":12,"2":21,"3":21}}}},
            {{"id":1,"sockets":[0],"distances":{{"0":12,"1":10,"2":21,"3":21}}}},
            {{"id":2,"sockets":[1],"distances":{{"0":21,"1":21,"2":10,"3":12}}}},
            {{"id":3,"sockets":[1],"distances":{{"0":21,"1":21,"2":12,"3":10}}}}],"pods":[{pods}]}}"#
    );
    Localities::read(text.as_bytes()).unwrap_or_else(|error| panic!("{error}"))
}

/// Gives the engine this snapshot of the agent from now on. `container_of` locates processes.
fn tell(world: &mut World, pods: &str) {
    let told = localities(pods);
    let orders = world.engine.tree.orders(&told);
    world
        .engine
        .locate(Some(Arc::new(told)), &orders, &|process| match process {
            77 => ClientSource::of_cgroup(&format!("0::/kubepods/pod1/{}\n", "ab".repeat(32))),
            _ => ClientSource::Unknown,
        });
}

/// A client that connects from this address, or as this process on a Unix socket.
fn client(world: &mut World, source: ClientSource) -> usize {
    let seat = world.client();
    let peer = world.seats[seat].peer;
    world.engine.set_source(peer, source);
    seat
}

fn at(world: &mut World, address: &str) -> usize {
    client(world, ClientSource::Address(address.parse().unwrap()))
}

fn locality(world: &World, seat: usize) -> Locality {
    let Endpoint::Client(id) = world.seats[seat].peer else {
        panic!("a client")
    };
    world.engine.clients.locality(id).unwrap()
}

/// The server that this client's request reaches.
fn asks(world: &mut World, client: usize) -> &'static str {
    world.say(client, GET);
    let mut asked = Vec::new();
    for name in ["a", "b", "c", "d"] {
        let mut sent = world.sent(name);
        if sent == "version\r\n" {
            // This is the first request on a lane to a copy. The others wait for its answer.
            world.reply(name, "VERSION 1.6.18\r\n");
            sent = world.sent(name);
        }
        if sent.ends_with("get k\r\n") {
            asked.push(name);
        }
    }
    let [only] = asked[..] else {
        panic!("asked: {asked:?}")
    };
    world.reply(only, MISS);
    assert_eq!(world.heard(client), MISS);
    only
}

#[test]
fn each_client_reads_from_the_server_on_its_own_numa_node() {
    let mut world = world("{nearest: p}");
    tell(&mut world, PODS);
    for (address, server) in [
        ("10.1.0.0", "a"),
        ("10.1.0.1", "b"),
        ("10.1.0.2", "c"),
        // No server is on node 3, so the one on its socket is chosen.
        ("10.1.0.3", "c"),
        // This client has the host's distance: all servers are equally near, and the pool's order decides.
        ("192.0.2.1", "a"),
    ] {
        let client = at(&mut world, address);
        assert_eq!(asks(&mut world, client), server, "{address}");
    }
}

#[test]
fn clients_of_an_ejected_server_read_from_the_next_nearest() {
    let mut world = world("{nearest: p}");
    tell(&mut world, PODS);
    let client = at(&mut world, "10.1.0.1");
    for server in ["b", "a", "c"] {
        assert_eq!(
            asks(&mut world, client),
            server,
            "own node, own socket, the other one"
        );
        let tree = &world.engine.tree;
        let member = tree
            .members()
            .into_iter()
            .find(|member| member.name == server)
            .unwrap();
        member.health.failed(proxima::members::Failure::Refused);
    }
}

#[test]
fn new_snapshot_moves_clients_that_are_connected() {
    let mut world = world("{nearest: p}");
    let client = at(&mut world, "10.1.0.2");
    assert_eq!(asks(&mut world, client), "a", "nobody tells: the pool's order");
    assert_eq!(locality(&world, client), Locality::NONE);
    tell(&mut world, PODS);
    assert_eq!(asks(&mut world, client), "c");
    // The server has moved to the other socket, and another one is now beside the client.
    tell(
        &mut world,
        r#"{"ips":["10.0.0.3"],"containers":[{"nodes":[0]}]}, {"ips":["10.0.0.2"],"containers":[{"nodes":[2]}]},
           {"ips":["10.1.0.2"],"containers":[{"nodes":[2]}]}"#,
    );
    assert_eq!(asks(&mut world, client), "b");
    world
        .engine
        .locate(None, &Orders::default(), &|_| ClientSource::Unknown);
    assert_eq!(asks(&mut world, client), "a", "the agent is gone");
    assert_eq!(locality(&world, client), Locality::NONE);
}

#[test]
fn client_on_a_unix_socket_is_located_by_its_container() {
    let mut world = world("{nearest: p}");
    let early = client(&mut world, ClientSource::Process(77));
    let stranger = client(&mut world, ClientSource::Process(78));
    let id = "ab".repeat(32);
    tell(
        &mut world,
        &format!(r#"{PODS}, {{"containers":[{{"id":"{id}","nodes":[2]}}]}}"#),
    );
    assert_eq!(
        asks(&mut world, early),
        "c",
        "it was connected before the agent told"
    );
    assert_eq!(asks(&mut world, stranger), "a");
    let late = ClientSource::of_cgroup(&format!("0::/x/cri-containerd-{id}.scope"));
    let late = client(&mut world, late);
    assert_eq!(asks(&mut world, late), "c");
}

#[test]
fn copies_are_read_at_the_clients_own_numa_node() {
    let mut world = world_of(COPIES);
    tell(&mut world, PODS);
    for (address, server) in [
        ("10.1.0.0", "a"),
        ("10.1.0.1", "b"),
        ("10.1.0.2", "c"),
        ("192.0.2.1", "a"),
    ] {
        let client = at(&mut world, address);
        assert_eq!(asks(&mut world, client), server, "{address}");
    }
    // A copy that has missed writes is not read, however near it is.
    let client = at(&mut world, "10.1.0.1");
    let missed = id(&world, "b");
    world.engine.follow(missed, 1, CopyState::Leaving);
    assert_eq!(asks(&mut world, client), "a");
}

#[test]
fn servers_known_to_the_agent_are_nearer_than_others_for_every_client() {
    // No interface of this host has the pods' addresses. Without the agent all servers would be elsewhere.
    let mut world = world("{nearest: [{pool: q}, {nearest: p}]}");
    let client = at(&mut world, "192.0.2.1");
    assert_eq!(asks(&mut world, client), "d");
    tell(&mut world, PODS);
    assert_eq!(asks(&mut world, client), "a");
    let near = at(&mut world, "10.1.0.2");
    assert_eq!(
        asks(&mut world, near),
        "c",
        "the inner route's order is the client's, too"
    );
}

#[test]
fn pipelines_and_multi_key_gets_go_by_the_clients_location() {
    let mut world = world("{nearest: p}");
    tell(&mut world, PODS);
    let client = at(&mut world, "10.1.0.2");
    world.say(client, b"get k1 k2\r\nget k3\r\nmg k4 v\r\n");
    let asked = world.sent("c");
    for key in ["k1", "k2", "k3"] {
        assert!(asked.contains(&format!("get {key}\r\n")), "{asked}");
    }
    assert_eq!(world.sent("a") + &world.sent("b"), "");
}
