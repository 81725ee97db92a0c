//! The rows of MySQL.

use super::{Entry, Row, Section, bar, entry, entry_of};
use crate::{
    contender::Contender::{AcceptLoop, Haproxy, Mysqlrouter, ProximaEpoll, ProximaIoUring},
    lockstep::{Connections, Shape},
    protocol::Protocol,
};

/// `(name, clients, protocol, words)`.
const TABLE: [(&str, usize, Protocol, &str); 4] = [
    ("1x1", 1, Protocol::Mysql, ""),
    ("10x1", 10, Protocol::Mysql, ""),
    ("100x1", 100, Protocol::Mysql, ""),
    ("prepared-100x1", 100, Protocol::MysqlPrepared, ", prepared"),
];

/// The most that a query may cost, as a multiple of HAProxy's cost of passing its bytes on.
const AT_MOST: f64 = 0.85;

pub(super) fn rows() -> Vec<Row> {
    let mut rows: Vec<Row> = TABLE
        .into_iter()
        .map(|(name, clients, protocol, words)| row(name, &shape(clients, protocol), words))
        .collect();
    rows.extend([transaction(), fin()]);
    rows
}

/// A query of 45 bytes that finds one row.
fn shape(clients: usize, protocol: Protocol) -> Shape {
    Shape {
        protocol,
        key_size: 15,
        value_size: 10,
        mix: "0:1".parse().expect("a mix"),
        ..super::shape(clients, 1)
    }
}

fn row(name: &'static str, shape: &Shape, words: &str) -> Row {
    let galera = Shape {
        galera: true,
        ..shape.clone()
    };
    let ours = [ProximaIoUring, ProximaEpoll];
    let mut entries: Vec<Entry> = [ProximaIoUring, ProximaEpoll, Haproxy, Mysqlrouter]
        .map(|contender| entry(contender, shape))
        .into();
    entries.extend(ours.map(|contender| entry_of(contender, "galera", &galera)));
    let bars = entries.iter().filter(|entry| ours.contains(&entry.contender));
    Row {
        name,
        title: format!("{} × 1, 45 B, one row{words}", shape.clients),
        section: Section::Proxies,
        bars: bars
            .map(|entry| bar(&entry.label, Haproxy.name(), AT_MOST))
            .collect(),
        entries,
        idle_clients: 0,
    }
}

/// Three queries between BEGIN and COMMIT, which go to the writer of a cluster.
fn transaction() -> Row {
    let shape = Shape {
        transaction: true,
        keys_a_request: 3,
        ..shape(100, Protocol::Mysql)
    };
    Row {
        section: Section::Beyond,
        ..row("transaction", &shape, ", a transaction of three")
    }
}

/// A connection, with its login, for every query.
fn fin() -> Row {
    let shape = Shape {
        connections: Connections::Fin,
        ..shape(16, Protocol::Mysql)
    };
    Row {
        name: "fin",
        title: "16 × 1, 45 B, one row, a connection each".into(),
        section: Section::Beyond,
        entries: [ProximaIoUring, ProximaEpoll, Haproxy, Mysqlrouter, AcceptLoop]
            .map(|contender| entry(contender, &shape))
            .into(),
        bars: Vec::new(),
        idle_clients: 0,
    }
}
