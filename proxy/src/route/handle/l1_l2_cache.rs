//! l1_l2_cache, with mcrouter's rules: what a small first cache has not, a second one is asked for, and the first
//! one remembers it, even that there is nothing. Child 0 is the first cache, and child 1 the second.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering::Relaxed},
};

use proxima_wire::{
    memcache::item::{self, Item},
    message::Outcome,
};

use crate::{
    config::{
        routes::{self, Spec},
        schema::Route,
    },
    route::{
        Answer,
        compile::{Build, CompileError, Maker},
        tree::{Begin, Give, NodeId, Run, Script, ScriptRequest, Turn},
    },
};

/// The route `l1_l2_cache`.
#[derive(Debug)]
pub(in crate::route) struct L1L2Cache {
    /// Seconds that values live in the first cache; 0: for ever.
    pub(in crate::route) ttl: i64,
    /// How misses are remembered; `None`: they are not.
    pub(in crate::route) misses: Option<Arc<Misses>>,
}

/// How misses are remembered in the first cache.
#[derive(Debug)]
pub(in crate::route) struct Misses {
    /// Seconds that a miss is remembered; 0: for ever.
    pub(in crate::route) ttl: i64,
    /// The number of reads that find a remembered miss before it is looked up again.
    pub(in crate::route) period: u32,
    /// The reads that have found a remembered miss.
    pub(in crate::route) found: AtomicU32,
}

/// The flag of a value that stands for a miss, and that value. They are mcrouter's.
const FLAG: u32 = 0x1_0000;
const VALUE: &[u8] = b"ncache";

const L1: usize = 0;
const L2: usize = 1;

impl Script for L1L2Cache {
    fn name(&self) -> &'static str {
        routes::L1L2Cache::NAME
    }

    fn begin(&self, asked: &ScriptRequest<'_>) -> Begin {
        if !matches!(asked.command, "get" | "gat" | "gats") {
            return Begin::Pass(L1);
        }
        let (ttl, misses) = (self.ttl, self.misses.clone());
        Begin::Run(Box::new(Get { ttl, misses }), Turn::own(L1, 0))
    }

    fn why(&self) -> String {
        match &self.misses {
            Some(misses) => format!(
                "reads of what the first has not go to the second; a miss is looked up again at each {} reads",
                misses.period
            ),
            None => "reads of what the first has not go to the second".into(),
        }
    }
}

struct Get {
    ttl: i64,
    misses: Option<Arc<Misses>>,
}

impl Get {
    /// The command for the first cache after this answer of the second.
    fn told(&self, command: &str, asked: &ScriptRequest<'_>, answer: &Answer<'_>) -> Option<Vec<u8>> {
        let key = asked.key;
        match (Item::of(answer.bytes()), &self.misses) {
            (Some(item), _) => Some(item::store(command, key, item.flags, self.ttl, item.value, None)),
            (None, Some(misses)) if answer.outcome() == Outcome::NotFound => {
                Some(item::store(command, key, FLAG, misses.ttl, VALUE, None))
            }
            _ => None,
        }
    }
}

impl Run for Get {
    fn next(&mut self, asked: &ScriptRequest<'_>, number: u32, answer: &Answer<'_>) -> Turn {
        let told = match number {
            0 => {
                let stands_for_miss = |item: &Item<'_>| item.flags & FLAG != 0;
                return match (&self.misses, Item::of(answer.bytes())) {
                    (_, None) => Turn::own(L2, 1),
                    (Some(misses), Some(item)) if stands_for_miss(&item) => {
                        let found = misses.found.fetch_add(1, Relaxed) + 1;
                        let turn = Turn::give(Give::Miss);
                        match found.is_multiple_of(misses.period) {
                            true => turn.and_own(L2, 2),
                            false => turn,
                        }
                    }
                    _ => Turn::give(Give::This),
                };
            }
            1 => self.told("add", asked, answer),
            _ => self.told("set", asked, answer),
        };
        let turn = match number {
            1 => Turn::give(Give::This),
            _ => Turn::default(),
        };
        match told {
            Some(told) => turn.and_tell(L1, told),
            None => turn,
        }
    }
}

impl<'a> Build<'a, [&'a Route; 2]> for routes::L1L2Cache {
    fn build(&'a self, [l1, l2]: [&'a Route; 2], maker: &mut Maker<'_, 'a>) -> Result<NodeId, CompileError> {
        let children = vec![maker.node(l1)?, maker.node(l2)?];
        let misses = self.misses.map(|(ttl, period)| {
            Arc::new(Misses {
                ttl,
                period: period.max(1),
                found: AtomicU32::new(0),
            })
        });
        maker.script(
            L1L2Cache {
                ttl: self.ttl,
                misses,
            },
            children,
        )
    }
}
