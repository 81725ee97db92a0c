//! The rows of the comparison as data: who is asked what, and what Proxima's cost may be at most.

use serde::{Deserialize, Serialize};

use crate::{
    contender::{Contender, Spread},
    lockstep::Shape,
};
use Contender::{
    EmbeddedEpoll, EmbeddedIoUring, Haproxy, Mcrouter, Memcached, MemcachedProxy, ProximaEpoll,
    ProximaIoUring, Twemproxy,
};

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

/// Growth of resident memory that 10,000 idle clients may cause, bytes.
pub(super) const IDLE_BYTES: u64 = 40_000_000;

/// All rows.
pub(super) fn all() -> Vec<Row> {
    let mut rows: Vec<Row> = TABLE.into_iter().map(proxies).collect();
    rows.extend(EMBEDDED.into_iter().map(embedded));
    rows.extend([
        all_of_four(),
        thousand_clients(),
        members_busy(),
        members_quiet(),
        idle(),
    ]);
    rows
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
    }
}

fn entry(contender: Contender, shape: &Shape) -> Entry {
    Entry {
        label: contender.name().into(),
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

fn proxies((name, clients, pipeline, value_size, epoll, io_uring): ProxyRow) -> Row {
    let shape = Shape {
        value_size,
        ..shape(clients, pipeline)
    };
    let size = if value_size < 1_024 {
        format!("{value_size} B")
    } else {
        format!("{} KiB", value_size / 1_024)
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
        title: format!("{clients} × {pipeline}, {size}"),
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

fn members_busy() -> Row {
    let shape = Shape {
        servers: 1_000,
        ..shape(100, 1)
    };
    Row {
        name: "members-100x1",
        title: "100 × 1, 400 B, 1,000 members".into(),
        section: Section::Beyond,
        entries: [ProximaIoUring, ProximaEpoll, Twemproxy]
            .map(|contender| entry(contender, &shape))
            .into(),
        bars: vec![
            bar(ProximaIoUring.name(), Twemproxy.name(), 0.75),
            bar(ProximaEpoll.name(), Twemproxy.name(), 0.80),
        ],
        idle_clients: 0,
    }
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

fn idle() -> Row {
    Row {
        name: "idle",
        title: "10,000 idle clients".into(),
        section: Section::Idle,
        entries: [ProximaIoUring, ProximaEpoll, Twemproxy]
            .map(|contender| entry(contender, &shape(10, 1)))
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
        let rows = all();
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
                row.entries.iter().all(|entry| entry.shape.check().is_ok()),
                "{}",
                row.name
            );
        }
    }
}
