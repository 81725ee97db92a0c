//! The rows of memcached.

use super::{
    Row, Section, as_nutcracker, bar, both_shapes, entry, idle, members_busy, one_connection_each, shape,
    size_of,
};
use crate::{
    contender::{
        Contender::{
            self, EmbeddedEpoll, EmbeddedIoUring, Haproxy, Mcrouter, Memcached, MemcachedProxy, ProximaEpoll,
            ProximaIoUring, Twemproxy,
        },
        Spread,
    },
    lockstep::Shape,
    protocol::Protocol,
};

/// The proxies, in the order of the tables.
const PROXIES: [Contender; 6] = [
    ProximaIoUring,
    ProximaEpoll,
    Twemproxy,
    Haproxy,
    MemcachedProxy,
    Mcrouter,
];

/// `(name, clients, pipeline, value size, bar on epoll, bar on io_uring)`: the ratio to twemproxy.
type ProxyRow = (&'static str, usize, usize, usize, f64, f64);

const TABLE: [ProxyRow; 6] = [
    ("1x1", 1, 1, 400, 0.75, 0.75),
    ("10x1", 10, 1, 400, 0.75, 0.66),
    ("100x1", 100, 1, 400, 0.69, 0.56),
    ("1000x1", 1_000, 1, 400, 0.60, 0.50),
    ("100x16", 100, 16, 400, 0.24, 0.22),
    ("100x1-32k", 100, 1, 32 * 1024, 0.80, 0.85),
];

/// `(name, clients, pipeline, bar on epoll, bar on io_uring)`: the ratio of the embedded store to memcached.
type EmbeddedRow = (&'static str, usize, usize, Option<f64>, Option<f64>);

const EMBEDDED: [EmbeddedRow; 5] = [
    ("embedded-1x1", 1, 1, Some(1.0), Some(1.0)),
    ("embedded-10x1", 10, 1, None, None),
    ("embedded-100x1", 100, 1, Some(0.80), Some(0.65)),
    ("embedded-1000x1", 1_000, 1, None, None),
    ("embedded-100x16", 100, 16, Some(0.30), Some(0.30)),
];

pub(super) fn rows() -> Vec<Row> {
    let mut rows: Vec<Row> = TABLE.into_iter().map(proxies).collect();
    rows.extend(EMBEDDED.into_iter().map(embedded));
    rows.extend([
        all_of_four(),
        thousand_clients(),
        members_busy(shape(100, 1), [0.75, 0.80]),
        members_quiet(),
        idle(&shape(10, 1)),
        as_nutcracker(Protocol::Memcached),
    ]);
    rows.extend(one_connection_each(Protocol::Memcached));
    rows
}

fn proxies((name, clients, pipeline, value_size, epoll, io_uring): ProxyRow) -> Row {
    let shape = Shape {
        value_size,
        ..shape(clients, pipeline)
    };
    let twemproxy = Twemproxy.name();
    let mut bars = vec![
        bar(ProximaIoUring.name(), twemproxy, io_uring),
        bar(ProximaEpoll.name(), twemproxy, epoll),
    ];
    if pipeline > 1 {
        // A relay that reads no request is the mark here.
        bars.push(bar(ProximaIoUring.name(), Haproxy.name(), 0.90));
        bars.push(bar(ProximaEpoll.name(), Haproxy.name(), 0.90));
    }
    Row {
        name,
        title: format!("{clients} × {pipeline}, {}", size_of(value_size)),
        section: Section::Proxies,
        entries: PROXIES
            .iter()
            .map(|contender| entry(*contender, &shape))
            .collect(),
        bars,
        idle_clients: 0,
    }
}

fn embedded((name, clients, pipeline, epoll, io_uring): EmbeddedRow) -> Row {
    let shape = shape(clients, pipeline);
    let bars = [(EmbeddedIoUring, io_uring), (EmbeddedEpoll, epoll)];
    Row {
        name,
        title: format!("{clients} × {pipeline}, 400 B"),
        section: Section::Servers,
        entries: [EmbeddedIoUring, EmbeddedEpoll, Memcached]
            .map(|contender| entry(contender, &shape))
            .into(),
        bars: bars
            .into_iter()
            .filter_map(|(who, at_most)| Some(bar(who.name(), Memcached.name(), at_most?)))
            .collect(),
        idle_clients: 0,
    }
}

fn all_of_four() -> Row {
    let one = Shape {
        mix: "1:0".parse().expect("a mix"),
        ..shape(100, 1)
    };
    let all = Shape {
        spread: Spread::All,
        ..one.clone()
    };
    both_shapes(
        "all-of-4",
        "100 × 1, sets of 400 B",
        (one, "to one"),
        (all, "to all four"),
        3.0,
    )
}

fn thousand_clients() -> Row {
    both_shapes(
        "clients",
        "100 and 1,000 clients × 1, 400 B",
        (shape(100, 1), "100 clients"),
        (shape(1_000, 1), "1,000 clients"),
        1.4,
    )
}

fn members_quiet() -> Row {
    let four = shape(1, 1);
    let thousand = Shape {
        servers: 1_000,
        ..four.clone()
    };
    both_shapes(
        "members-1x1",
        "1 × 1, 400 B, 4 and 1,000 members",
        (four, "4 members"),
        (thousand, "1,000 members"),
        1.4,
    )
}
