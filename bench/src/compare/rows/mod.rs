//! The rows of the comparison as data: contenders, requests, and the most that Proxima may cost.

mod memcached;
mod mysql;
mod redis;

use serde::{Deserialize, Serialize};

use crate::{
    contender::{Contender, Spread},
    lockstep::{Connections, Shape},
    near::Near,
    protocol::Protocol,
    tls::Tls,
};
use Contender::{ProximaEpoll, ProximaIoUring};

/// A row: contenders that are measured together, in turn.
#[derive(Clone, Debug)]
pub(super) struct Row {
    /// Its name in `--rows`.
    pub(super) name: &'static str,
    /// Its title in the tables.
    pub(super) title: String,
    /// The table to which it belongs.
    pub(super) section: Section,
    /// The contenders with their requests.
    pub(super) entries: Vec<Entry>,
    /// The promises.
    pub(super) bars: Vec<Bar>,
    /// Idle clients at the end.
    pub(super) idle_clients: usize,
}

/// A table of the results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Section {
    /// Proxies in front of four servers.
    Proxies,
    /// The embedded store and memcached.
    Servers,
    /// Requests that cost more than a plain one to one of four servers.
    Beyond,
    /// Memory of idle clients.
    Idle,
}

/// One contender in a row.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// Its name in this row.
    pub(super) label: String,
    pub(super) contender: Contender,
    pub(super) shape: Shape,
}

/// A promise: `who` costs at most `at_most` times what `against` costs.
#[derive(Clone, Debug)]
pub(super) struct Bar {
    pub(super) who: String,
    pub(super) against: String,
    pub(super) at_most: f64,
}

/// Growth of resident memory that 10,000 idle clients may cause, bytes.
pub(super) const IDLE_BYTES: u64 = 40_000_000;

/// All rows of a protocol.
pub(super) fn all(protocol: Protocol) -> Vec<Row> {
    match protocol {
        Protocol::Memcached => memcached::rows(),
        Protocol::Redis => redis::rows(),
        Protocol::Mysql | Protocol::MysqlPrepared => mysql::rows(),
    }
}

fn shape(clients: usize, pipeline: usize) -> Shape {
    Shape {
        clients,
        pipeline,
        value_size: 400,
        key_size: 40,
        keys: 100_000,
        mix: "1:10".parse().expect("a mix"),
        servers: 4,
        spread: Spread::Hash,
        protocol: Protocol::Memcached,
        keys_a_request: 1,
        transaction: false,
        connections: Connections::Kept,
        tls: Tls::None,
        resume: false,
        near: Near::None,
        galera: false,
    }
}

fn entry(contender: Contender, shape: &Shape) -> Entry {
    Entry {
        label: contender.name().into(),
        contender,
        shape: shape.clone(),
    }
}

/// The same contender in another shape.
fn entry_of(contender: Contender, words: &str, shape: &Shape) -> Entry {
    Entry {
        label: format!("{}, {words}", contender.name()),
        contender,
        shape: shape.clone(),
    }
}

fn bar(who: &str, against: &str, at_most: f64) -> Bar {
    Bar {
        who: who.into(),
        against: against.into(),
        at_most,
    }
}

fn size_of(value_size: usize) -> String {
    match value_size {
        ..1_024 => format!("{value_size} B"),
        _ => format!("{} KiB", value_size / 1_024),
    }
}

/// Proxima in two shapes, the second compared with the first.
fn both_shapes(
    name: &'static str,
    title: &str,
    (first, first_words): (Shape, &str),
    (second, second_words): (Shape, &str),
    at_most: f64,
) -> Row {
    let (mut entries, mut bars) = (Vec::new(), Vec::new());
    for contender in [ProximaIoUring, ProximaEpoll] {
        let label = |words: &str| format!("{}, {words}", contender.name());
        entries.push(Entry {
            label: label(first_words),
            contender,
            shape: first.clone(),
        });
        entries.push(Entry {
            label: label(second_words),
            contender,
            shape: second.clone(),
        });
        bars.push(bar(&label(second_words), &label(first_words), at_most));
    }
    Row {
        name,
        title: title.into(),
        section: Section::Beyond,
        entries,
        bars,
        idle_clients: 0,
    }
}

/// `(name, what becomes of each connection, bar over the accept loop)`.
const CONNECTIONS: [(&str, Connections, f64); 2] =
    [("fin", Connections::Fin, 1.20), ("rst", Connections::Rst, 1.35)];

/// A connection for every request.
fn one_connection_each(protocol: Protocol) -> impl Iterator<Item = Row> {
    CONNECTIONS
        .into_iter()
        .map(move |(name, connections, over_loop)| {
            let shape = Shape {
                connections,
                protocol,
                ..shape(16, 1)
            };
            let (twemproxy, accept_loop) = (Contender::Twemproxy, Contender::AcceptLoop);
            Row {
                name,
                title: format!(
                    "16 × 1, 400 B, a connection each, closed by {}",
                    name.to_uppercase()
                ),
                section: Section::Beyond,
                entries: [ProximaIoUring, ProximaEpoll, twemproxy, accept_loop]
                    .map(|contender| entry(contender, &shape))
                    .into(),
                bars: [ProximaIoUring, ProximaEpoll]
                    .into_iter()
                    .flat_map(|who| {
                        [
                            bar(who.name(), accept_loop.name(), over_loop),
                            bar(who.name(), twemproxy.name(), 0.90),
                        ]
                    })
                    .collect(),
                idle_clients: 0,
            }
        })
}

/// Proxima with the file and the flags of twemproxy, beside the same pool in its own file.
fn as_nutcracker(protocol: Protocol) -> Row {
    let shape = Shape {
        protocol,
        ..shape(100, 1)
    };
    let nutcracker = Contender::ProximaNutcracker;
    Row {
        name: "nutcracker",
        title: "100 × 1, 400 B, twemproxy's file and our own".into(),
        section: Section::Beyond,
        entries: [ProximaIoUring, nutcracker, Contender::Twemproxy]
            .map(|contender| entry(contender, &shape))
            .into(),
        bars: vec![bar(nutcracker.name(), ProximaIoUring.name(), 1.02)],
        idle_clients: 0,
    }
}

/// Contenders with 1,000 members behind them. `bars`: the ratios to twemproxy on io_uring and on epoll.
fn members_busy(shape: Shape, bars: [f64; 2]) -> Row {
    let shape = Shape {
        servers: 1_000,
        ..shape
    };
    let twemproxy = Contender::Twemproxy;
    Row {
        name: "members-100x1",
        title: "100 × 1, 400 B, 1,000 members".into(),
        section: Section::Beyond,
        entries: [ProximaIoUring, ProximaEpoll, twemproxy]
            .map(|contender| entry(contender, &shape))
            .into(),
        bars: [ProximaIoUring, ProximaEpoll]
            .into_iter()
            .zip(bars)
            .map(|(who, at_most)| bar(who.name(), twemproxy.name(), at_most))
            .collect(),
        idle_clients: 0,
    }
}

fn idle(shape: &Shape) -> Row {
    Row {
        name: "idle",
        title: "10,000 idle clients".into(),
        section: Section::Idle,
        entries: [ProximaIoUring, ProximaEpoll, Contender::Twemproxy]
            .map(|contender| entry(contender, shape))
            .into(),
        bars: Vec::new(),
        idle_clients: 10_000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn names_are_unique_and_bars_name_entries() {
        for rows in [Protocol::Memcached, Protocol::Redis, Protocol::Mysql].map(all) {
            check(rows);
        }
    }

    fn check(rows: Vec<Row>) {
        let names: HashSet<&str> = rows.iter().map(|row| row.name).collect();
        assert_eq!(names.len(), rows.len());
        for row in rows {
            let labels: HashSet<&str> = row.entries.iter().map(|entry| entry.label.as_str()).collect();
            assert_eq!(labels.len(), row.entries.len(), "{}", row.name);
            for bar in &row.bars {
                assert!(
                    labels.contains(bar.who.as_str()) && labels.contains(bar.against.as_str()),
                    "{}",
                    row.name
                );
            }
            assert!(
                row.entries
                    .iter()
                    .all(|entry| entry.shape.check(1_100, 1).is_ok()),
                "{}",
                row.name
            );
        }
    }
}
