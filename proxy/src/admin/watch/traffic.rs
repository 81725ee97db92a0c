//! What samples of requests tell: which keys are asked for most, and how many requests come by each node. Both
//! are means of the last ten seconds or so: each second, what was counted before counts a tenth less.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::broadcast::{Receiver, error::TryRecvError};

use super::latency::rounded;
use crate::{admin::sampling::Traced, config::schema::ShownKeys, route::shown_key};

/// What is left of a count after a second.
const LEFT: f64 = 0.9;
/// Keys that are told of a pool.
const TOLD: usize = 20;
/// Keys that are counted at a time. Where there are more, those that were seen least are forgotten.
const COUNTED: usize = 10_000;

/// Counts of samples.
pub(super) struct Traffic {
    samples: Receiver<Traced>,
    keys: BTreeMap<(String, Box<[u8]>), f64>,
    pools: BTreeMap<String, f64>,
    nodes: BTreeMap<u32, f64>,
    /// The sum of what a count of one has been worth: it turns counts to rates.
    seconds: f64,
}

/// A key that is asked for often.
#[derive(Serialize)]
struct HotKey {
    key: String,
    /// Requests a second.
    rate: f64,
    /// Its part of the requests of its pool.
    share: f64,
}

impl Traffic {
    pub(super) fn new(samples: Receiver<Traced>) -> Self {
        Self {
            samples,
            keys: BTreeMap::new(),
            pools: BTreeMap::new(),
            nodes: BTreeMap::new(),
            seconds: 0.0,
        }
    }

    /// Takes the samples of another second.
    pub(super) fn count(&mut self) {
        self.age();
        loop {
            match self.samples.try_recv() {
                Ok(sample) => self.add(&sample),
                Err(TryRecvError::Lagged(_)) => {}
                Err(TryRecvError::Empty | TryRecvError::Closed) => break,
            }
        }
    }

    fn age(&mut self) {
        self.seconds = self.seconds * LEFT + 1.0;
        for count in self.pools.values_mut().chain(self.nodes.values_mut()) {
            *count *= LEFT;
        }
        // What is less than half a request of this second is noise.
        self.pools.retain(|_, count| *count > 0.01);
        self.nodes.retain(|_, count| *count > 0.01);
        let least = self.least();
        self.keys.retain(|_, count| {
            *count *= LEFT;
            *count > least
        });
    }

    /// The count below which a key is forgotten.
    fn least(&self) -> f64 {
        if self.keys.len() <= COUNTED {
            return 0.1;
        }
        let mut counts: Vec<f64> = self.keys.values().map(|count| count * LEFT).collect();
        let at = counts.len() - COUNTED;
        *counts.select_nth_unstable_by(at, f64::total_cmp).1
    }

    fn add(&mut self, traced: &Traced) {
        let (sample, trace) = &**traced;
        let weight = sample.weight;
        for &node in &trace.nodes {
            *self.nodes.entry(node).or_default() += weight;
        }
        let Some(pool) = &trace.pool else { return };
        *self.pools.entry(pool.clone()).or_default() += weight;
        if !sample.key.is_empty() {
            let key = (pool.clone(), sample.key.clone());
            *self.keys.entry(key).or_default() += weight;
        }
    }

    /// Requests a second that come by each node, by its number.
    pub(super) fn edges(&self) -> Value {
        let rates = self.nodes.iter().map(|(node, count)| {
            let rate = rounded(count / self.seconds.max(1.0));
            (node.to_string(), json!(rate))
        });
        Value::Object(rates.collect())
    }

    /// The keys that are asked for most, by pool; none if they are not told.
    pub(super) fn hot_keys(&self, how: ShownKeys) -> Value {
        let mut pools: BTreeMap<&str, Vec<(&[u8], f64)>> = BTreeMap::new();
        for ((pool, key), &count) in &self.keys {
            pools.entry(pool).or_default().push((key, count));
        }
        let pools = pools.into_iter().map(|(pool, mut keys)| {
            keys.sort_by(|(_, one), (_, other)| other.total_cmp(one));
            keys.truncate(TOLD);
            let all = self.pools.get(pool).copied().unwrap_or(1.0);
            let keys = keys.into_iter().filter_map(|(key, count)| {
                Some(HotKey {
                    key: shown_key(key, how)?,
                    rate: rounded(count / self.seconds.max(1.0)),
                    share: (count / all * 1000.0).round() / 1000.0,
                })
            });
            (pool.to_owned(), json!(keys.collect::<Vec<_>>()))
        });
        Value::Object(pools.collect())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proxima_wire::message::{Class, Outcome};
    use tokio::sync::broadcast::{Sender, channel};

    use super::{COUNTED, Traffic};
    use crate::{
        admin::sampling::Traced, config::schema::ShownKeys, control::Trace, micros::Micros, route::Sample,
    };

    fn send(to: &Sender<Traced>, key: &str, weight: f64, nodes: &[u32]) {
        let sample = Sample {
            listener: 0,
            client: None,
            command: "get",
            class: Class::Read,
            key: key.as_bytes().into(),
            member: None,
            outcome: Outcome::Found,
            took: Micros(1),
            weight,
        };
        let trace = Trace {
            nodes: nodes.to_vec(),
            member: Some(("cache".into(), "a".into())),
            pool: Some("cache".into()),
        };
        to.send(Arc::new((sample, trace))).unwrap();
    }

    #[test]
    fn rates_are_those_that_the_samples_stand_for_and_what_ends_is_forgotten() {
        let (to, from) = channel(1 << 15);
        let mut traffic = Traffic::new(from);
        for _ in 0..60 {
            (0..3).for_each(|_| send(&to, "hot", 64.0, &[0, 2]));
            send(&to, "c\x1b\n", 64.0, &[0, 3]);
            traffic.count();
        }
        let (edges, keys) = (traffic.edges(), traffic.hot_keys(ShownKeys::Plain));
        assert_eq!(edges["0"], 256.0);
        assert_eq!((&edges["2"], &edges["3"]), (&192.0.into(), &64.0.into()));
        assert_eq!(keys["cache"][0]["key"], "hot");
        assert_eq!(
            (&keys["cache"][0]["rate"], &keys["cache"][0]["share"]),
            (&192.0.into(), &0.75.into())
        );
        assert_eq!(keys["cache"][1]["key"], "c\\x1b\\n");
        (0..120).for_each(|_| traffic.count());
        assert_eq!(
            (traffic.edges().as_object().unwrap().len(), traffic.keys.len()),
            (0, 0)
        );
    }

    #[test]
    fn keys_that_never_come_again_are_bounded_and_the_hot_one_stays() {
        let (to, from) = channel(1 << 15);
        let mut traffic = Traffic::new(from);
        for second in 0..20 {
            (0..4000).for_each(|key| send(&to, &format!("{second}-{key}"), 1.0, &[0]));
            (0..50).for_each(|_| send(&to, "hot", 1.0, &[0]));
            traffic.count();
            assert!(traffic.keys.len() <= COUNTED + 4001, "{}", traffic.keys.len());
        }
        assert_eq!(traffic.hot_keys(ShownKeys::Plain)["cache"][0]["key"], "hot");
        assert_eq!(
            traffic.hot_keys(ShownKeys::Plain)["cache"]
                .as_array()
                .unwrap()
                .len(),
            20
        );
    }
}
