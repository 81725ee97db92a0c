//! The rows of Redis.

use super::{
    Row, Section, as_nutcracker, bar, both_shapes, entry, idle, members_busy, one_connection_each, size_of,
};
use crate::{
    contender::Contender::{
        self, EmbeddedEpoll, EmbeddedIoUring, Haproxy, Predixy, ProximaEpoll, ProximaIoUring, Redis,
        Twemproxy,
    },
    lockstep::Shape,
    protocol::Protocol,
};

/// The proxies, in the order of the tables.
const PROXIES: [Contender; 5] = [ProximaIoUring, ProximaEpoll, Twemproxy, Haproxy, Predixy];

/// `(name, clients, pipeline, value size, bar on epoll, bar on io_uring)`: the ratio to twemproxy.
type ProxyRow = (&'static str, usize, usize, usize, f64, f64);

const TABLE: [ProxyRow; 6] = [
    ("1x1", 1, 1, 400, 0.80, 0.80),
    ("10x1", 10, 1, 400, 0.75, 0.72),
    ("100x1", 100, 1, 400, 0.66, 0.62),
    ("1000x1", 1_000, 1, 400, 0.60, 0.55),
    ("100x16", 100, 16, 400, 0.20, 0.20),
    ("100x1-32k", 100, 1, 32 * 1024, 0.65, 0.68),
];

/// The most that a request may cost, as a multiple of the same request of memcached: without and with
/// pipelining.
const OWN: [f64; 2] = [1.10, 1.25];

/// The most that a request for 100 keys may cost, as a multiple of twemproxy's cost.
const MANY: f64 = 0.60;

/// The most that a transaction of three commands may cost, as a multiple of one command.
const TRANSACTION: f64 = 3.5;

pub(super) fn rows() -> Vec<Row> {
    let mut rows: Vec<Row> = TABLE.into_iter().map(proxies).collect();
    rows.extend([
        many("mget-100", "MGET", "0:1"),
        many("mset-100", "MSET", "1:0"),
        transaction(),
        members_busy(shape(100, 1), [0.80, 0.80]),
        embedded("embedded-100x1", 100, 1),
        embedded("embedded-100x16", 100, 16),
        idle(&shape(10, 1)),
        as_nutcracker(Protocol::Redis),
    ]);
    rows.extend(one_connection_each(Protocol::Redis));
    rows
}

fn shape(clients: usize, pipeline: usize) -> Shape {
    Shape {
        protocol: Protocol::Redis,
        ..super::shape(clients, pipeline)
    }
}

fn proxies((name, clients, pipeline, value_size, epoll, io_uring): ProxyRow) -> Row {
    let shape = Shape {
        value_size,
        ..shape(clients, pipeline)
    };
    let memcached = Shape {
        protocol: Protocol::Memcached,
        ..shape.clone()
    };
    let mut entries: Vec<_> = PROXIES.map(|contender| entry(contender, &shape)).into();
    let mut bars = Vec::new();
    for (contender, at_most) in [(ProximaIoUring, io_uring), (ProximaEpoll, epoll)] {
        let mut other = entry(contender, &memcached);
        other.label += ", memcached";
        bars.push(bar(contender.name(), Twemproxy.name(), at_most));
        bars.push(bar(
            contender.name(),
            &other.label,
            OWN[usize::from(pipeline > 1)],
        ));
        entries.push(other);
    }
    Row {
        name,
        title: format!("{clients} × {pipeline}, {}", size_of(value_size)),
        section: Section::Proxies,
        entries,
        bars,
        idle_clients: 0,
    }
}

/// Requests for 100 keys.
fn many(name: &'static str, words: &str, mix: &str) -> Row {
    let shape = Shape {
        keys_a_request: 100,
        value_size: 100,
        mix: mix.parse().expect("a mix"),
        ..shape(100, 1)
    };
    let contenders = [ProximaIoUring, ProximaEpoll, Twemproxy, Predixy];
    Row {
        name,
        title: format!("100 × 1 {words} of 100 keys, 100 B"),
        section: Section::Beyond,
        entries: contenders.map(|contender| entry(contender, &shape)).into(),
        bars: [ProximaIoUring, ProximaEpoll]
            .map(|contender| bar(contender.name(), Twemproxy.name(), MANY))
            .into(),
        idle_clients: 0,
    }
}

fn transaction() -> Row {
    let get = Shape {
        mix: "0:1".parse().expect("a mix"),
        ..shape(100, 1)
    };
    let three = Shape {
        keys_a_request: 3,
        transaction: true,
        ..get.clone()
    };
    both_shapes(
        "transaction",
        "100 × 1, 400 B, GET and a transaction of three GET",
        (get, "one GET"),
        (three, "a transaction of three"),
        TRANSACTION,
    )
}

/// The embedded store and a server. Redis promises nothing here: the figures are for the reader.
fn embedded(name: &'static str, clients: usize, pipeline: usize) -> Row {
    let shape = shape(clients, pipeline);
    Row {
        name,
        title: format!("{clients} × {pipeline}, 400 B"),
        section: Section::Servers,
        entries: [EmbeddedIoUring, EmbeddedEpoll, Redis]
            .map(|contender| entry(contender, &shape))
            .into(),
        bars: Vec::new(),
        idle_clients: 0,
    }
}
