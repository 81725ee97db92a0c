use std::sync::Arc;

use super::*;
use crate::{
    config::schema::{Pool, Server},
    members::{OwnLocation, Registry},
    protocols::Memcache,
};

/// Two sockets of two nodes each; the nodes of a socket are 12 apart, the sockets 21 and 30.
const NODES: &str = r#"[
    {"id":0,"sockets":[0],"distances":{"0":10,"1":12,"2":21,"3":30}},
    {"id":1,"sockets":[0],"distances":{"0":12,"1":10,"2":30,"3":21}},
    {"id":2,"sockets":[7],"distances":{"0":21,"1":30,"2":10,"3":12}},
    {"id":3,"sockets":[7],"distances":{"0":30,"1":21,"2":12,"3":10}}]"#;

fn read(pods: &str) -> Localities {
    let text = format!(r#"{{"version":1,"host":"n","nodes":{NODES},"pods":{pods}}}"#);
    Localities::read(text.as_bytes()).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn client(localities: &Localities, address: &str) -> Locality {
    localities.of_client(&ClientSource::Address(address.parse().unwrap()))
}

fn member(address: &str) -> Arc<Member> {
    let server = Server {
        address: format!("{address}:1"),
        name: None,
        weight: 1.0,
        zone: None,
        pod: None,
    };
    let mut registry = Registry::new(OwnLocation::new(&["10.9.9.9".parse().unwrap()], None));
    let pool = Pool::of(vec![server.clone()]);
    registry.member("p", &pool, &server, &Memcache::PLAIN).unwrap()
}

#[test]
fn own_numa_node_is_nearer_than_own_socket_than_the_host() {
    let pods: Vec<String> = (0..4)
        .map(|n| format!(r#"{{"ips":["10.0.0.{n}"],"containers":[{{"id":"c{n}","nodes":[{n}]}}]}}"#))
        .collect();
    let localities = read(&format!("[{}]", pods.join(",")));
    let rank = |server: usize| {
        let (rank, source) = localities.rank(
            client(&localities, "10.0.0.0"),
            &member(&format!("10.0.0.{server}")),
        );
        assert_eq!(source, DistanceSource::Agent);
        (rank.distance, rank.latency)
    };
    assert_eq!(rank(0), (Distance::NumaNode, 10));
    assert_eq!(rank(1), (Distance::Socket, 12));
    // Both are on the other socket; the first is behind fewer hops.
    assert_eq!(rank(2), (Distance::Host, 21));
    assert_eq!(rank(3), (Distance::Host, 30));
}

#[test]
fn client_that_is_not_known_has_the_hosts_distance() {
    let localities = read(r#"[{"ips":["10.0.0.1"],"containers":[{"nodes":[0]}]}]"#);
    for unknown in [
        client(&localities, "192.0.2.1"),
        localities.of_client(&ClientSource::Unknown),
        localities.of_client(&ClientSource::Process(1)),
        localities.of_client(&ClientSource::Container([7; 32])),
    ] {
        let (rank, _) = localities.rank(unknown, &member("10.0.0.1"));
        assert_eq!((rank.distance, rank.latency), (Distance::Host, 30));
    }
    // A server that the agent does not know keeps the distance that it has without one.
    let near = client(&localities, "10.0.0.1");
    let (rank, source) = localities.rank(near, &member("10.9.9.9"));
    assert_eq!((rank.distance, source), (Distance::Host, DistanceSource::Option));
    let (rank, source) = localities.rank(near, &member("10.8.8.8"));
    assert_eq!(
        (rank.distance, source),
        (Distance::Elsewhere, DistanceSource::Nothing)
    );
}

#[test]
fn container_on_several_nodes_is_at_their_socket_or_anywhere() {
    let localities = read(
        r#"[{"ips":["10.0.0.1"],"containers":[{"nodes":[0,1]}]},
            {"ips":["10.0.0.2"],"containers":[{"nodes":[1,2]}]},
            {"ips":["10.0.0.3"],"containers":[{"nodes":[]}]},
            {"ips":["10.0.0.4"],"containers":[{"nodes":[3]},{"nodes":[0,1,2,3]}]},
            {"ips":["10.0.0.5"],"containers":[{"nodes":[2]},{"nodes":[3]}]}]"#,
    );
    let reach = |address| client(&localities, address).reach();
    assert_eq!(reach("10.0.0.1"), Distance::Socket);
    assert_eq!(client(&localities, "10.0.0.2"), Locality::HOST);
    assert_eq!(client(&localities, "10.0.0.3"), Locality::HOST);
    // The sidecar that roams does not hide where the other one is.
    assert_eq!(reach("10.0.0.4"), Distance::NumaNode);
    assert_eq!(reach("10.0.0.5"), Distance::Socket);
    let at = |from, to| localities.rank(client(&localities, from), &member(to)).0;
    let worst = Rank {
        distance: Distance::Socket,
        latency: 12,
    };
    assert_eq!(at("10.0.0.5", "10.0.0.4"), worst);
    assert_eq!(at("10.0.0.1", "10.0.0.4").distance, Distance::Host);
    assert_eq!(
        localities.describe(client(&localities, "10.0.0.5")),
        "socket 7",
        "as the kernel numbers it"
    );
    assert_eq!(
        localities.describe(client(&localities, "10.0.0.4")),
        "NUMA node 3"
    );
}

#[test]
fn address_of_several_pods_tells_nobody_apart() {
    let localities = read(
        r#"[{"ips":["10.0.0.1","::ffff:10.0.0.1"],"containers":[{"nodes":[0]}]},
            {"ips":["10.0.0.2"],"containers":[{"nodes":[0]}]},
            {"ips":["10.0.0.2"],"containers":[{"nodes":[0]}]},
            {"ips":["nonsense","fd00::5"],"containers":[{"nodes":[1]}]}]"#,
    );
    assert_eq!(client(&localities, "::ffff:10.0.0.1").reach(), Distance::NumaNode);
    assert_eq!(client(&localities, "10.0.0.2"), Locality::HOST);
    assert_eq!(client(&localities, "fd00::5").reach(), Distance::NumaNode);
}

#[test]
fn a_place_has_the_same_number_in_every_snapshot() {
    let one = read(r#"[{"ips":["10.0.0.1"],"containers":[{"nodes":[2]}]}]"#);
    let other = read(
        r#"[{"ips":["10.0.0.9"],"containers":[{"nodes":[0]}]},{"ips":["10.0.0.5"],"containers":[{"nodes":[2]}]}]"#,
    );
    assert_eq!(client(&one, "10.0.0.1"), client(&other, "10.0.0.5"));
}

#[test]
fn process_is_in_the_container_that_its_cgroup_names() {
    let id = "0123456789abcdef".repeat(4);
    let known = ClientSource::Container(container_id(&id).unwrap());
    for text in [
        format!("0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-{id}.scope\n"),
        format!("0::/kubepods/burstable/pod-a/{id}\n"),
        // Seen from a cgroup namespace beside it, and from a process in a cgroup of its own below.
        format!("0::/../../kubepods-pod1.slice/crio-{id}.scope/init.scope\n"),
        format!("12:cpuset:/kubepods/pod1/{id}\n11:memory:/x\n"),
        format!("0::/kubepods/pod1/{id}/docker/{}\n", "f".repeat(64)),
    ] {
        assert_eq!(ClientSource::of_cgroup(&text), known, "{text}");
    }
    for text in [
        "",
        "0::/\n",
        "0::/user.slice/session-1.scope\n",
        "0::/kubepods/pod1/abc\n",
    ] {
        assert_eq!(ClientSource::of_cgroup(text), ClientSource::Unknown, "{text}");
    }
    assert_eq!(container_id(&"é".repeat(32)), None);
}

#[test]
fn snapshot_that_cannot_be_used_is_refused_with_the_reason() {
    let with = |nodes: &str, pods: &str| format!(r#"{{"version":1,"nodes":{nodes},"pods":{pods}}}"#);
    for (text, expected) in [
        (String::new(), "no snapshot"),
        ("{}".into(), "missing field `version`"),
        (r#"{"version":2,"nodes":"of another kind"}"#.into(), "version 2"),
        (r#"{"version":1,"nodes":[]}"#.into(), "missing field `pods`"),
        (with("[]", "[]"), "0 NUMA nodes"),
        (with(r#"[{"id":1},{"id":1}]"#, "[]"), "node 1 twice"),
        (with(r#"[{"id":1024}]"#, "[]"), "below 1024"),
        (with(r#"[{"id":-1}]"#, "[]"), "no snapshot"),
        (
            with(r#"[{"id":0}]"#, r#"[{"containers":[{"id":"x","nodes":[5]}]}]"#),
            "container x is on NUMA node 5",
        ),
        (
            with(r#"[{"id":0}]"#, &format!("[{}]", vec!["{}"; 16_385].join(","))),
            "16385 containers",
        ),
        (
            format!(r#"{{"version":1,"nodes":{}"#, "[".repeat(100_000)),
            "no snapshot",
        ),
    ] {
        let error = Localities::read(text.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}, expected {expected}");
    }
    // What a later program adds is passed over.
    let later = r#"{"version":1,"new":[1],"nodes":[{"id":0,"new":1}],"pods":[{"new":{}}]}"#;
    assert!(Localities::read(later.as_bytes()).is_ok());
}
