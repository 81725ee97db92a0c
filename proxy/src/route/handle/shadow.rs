//! shadow: one child answers, and copies of some requests go to other routes, as mcrouter shadows. Child 0
//! answers; child `n` gets the copies of shadow `n - 1`.

use std::sync::Arc;

use proxima_wire::{hash::routing_key, message::Outcome};
use xxhash_rust::xxh3::xxh3_64;

use super::{
    OutstandingLimit, Random, ShadowLeases,
    sample::{Sample, SampledKeys},
};
use crate::{
    config::{
        routes::{self, Spec},
        schema::{ErrorReply, Queue, Route, ShadowKeys},
    },
    route::{
        compile::{Build, CompileError, Maker},
        tree::{Fan, NodeId, Query},
    },
};

/// The route `shadow`.
#[derive(Debug)]
pub(in crate::route) struct Shadow {
    /// What each shadow gets.
    pub(in crate::route) samples: Arc<[Sample]>,
    /// The numbers of the commands about leases, which the last child serves; `None`: the protocol has none.
    pub(in crate::route) leases: Option<[u16; 2]>,
}

impl Fan for Shadow {
    fn name(&self) -> &'static str {
        routes::Shadow::NAME
    }

    fn choose(&self, query: &Query<'_>, random: &mut Random, others: &mut Vec<u32>) -> usize {
        if self.leases.is_some_and(|leases| leases.contains(&query.command)) {
            return 1 + self.samples.len();
        }
        let key = routing_key(query.key, true);
        for (sample, child) in self.samples.iter().zip(1..) {
            if sample.keys.has(key) && (sample.share >= 1.0 || random.fraction() < sample.share) {
                others.push(child);
            }
        }
        0
    }

    fn shadows(&self) -> bool {
        true
    }

    fn why(&self, query: &Query<'_>) -> String {
        let key = routing_key(query.key, true);
        let samples = self.samples.iter().filter(|sample| sample.keys.has(key));
        format!(
            "{} of {} shadows have this key",
            samples.count(),
            self.samples.len()
        )
    }
}

impl<'a> Build<'a, &'a Route> for [routes::Shadow] {
    fn build(&'a self, child: &'a Route, maker: &mut Maker<'_, 'a>) -> Result<NodeId, CompileError> {
        let mut children = vec![maker.node(child)?];
        let (mut samples, mut identities) = (Vec::new(), Vec::new());
        for shadow in self {
            // What a shadow fails to delete is not kept.
            let spools = maker.spools.take();
            let target = maker.node(&shadow.target);
            maker.spools = spools;
            let target = target?;
            let none = Queue {
                most: 0,
                full: ErrorReply {
                    outcome: Outcome::Busy,
                    text: "too many copies of requests are under way".to_owned(),
                },
            };
            children.push(OutstandingLimit::around(
                target,
                shadow.in_flight,
                Some(none),
                maker,
            ));
            let keys = match &shadow.keys {
                ShadowKeys::Between(from, to) => SampledKeys::between(*from, *to),
                ShadowKeys::Listed(keys) => {
                    let keys = keys.iter().map(|key| key.as_bytes().to_vec());
                    SampledKeys::Listed(keys.collect())
                }
            };
            let share = shadow.share;
            samples.push(Sample { keys, share });
            // It is the same in all trees that have this shadow.
            identities.push(xxh3_64(format!("{:?}", shadow.target).as_bytes()));
        }
        let samples: Arc<[Sample]> = samples.into();
        let number = |name| maker.protocol.command(name);
        let leases = number("lease-get").zip(number("lease-set"));
        if leases.is_some() {
            let handle = ShadowLeases {
                samples: Arc::clone(&samples),
                shadows: identities.into(),
                table: maker.leases(),
            };
            let script = maker.script(handle, children.clone())?;
            children.push(script);
        }
        let leases = leases.map(|(get, set)| [get, set]);
        Ok(maker.fan(Shadow { samples, leases }, children))
    }
}
