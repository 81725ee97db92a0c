//! staging, with mcrouter's rules: a warm route answers everything, and a staging route is filled and kept
//! alike in the background. Child 0 is warm, child 1 is staging, and child 2 sends to both and answers the worse
//! reply.

use proxima_wire::{
    memcache::item::{self, Item, StoreRequest},
    message::{Class, Outcome},
};

use super::{TimeLeft, time_left::KnownExpiry};
use crate::{
    config::{
        routes::{self, Spec},
        schema::Route,
    },
    route::{
        Answer,
        compile::{Build, CompileError, Maker},
        tree::{Begin, Give, NodeId, Run, Script, ScriptRequest, Turn, Wait},
    },
};

/// The route `staging`.
#[derive(Debug, Default)]
pub(in crate::route) struct Staging {
    /// How the staging route is asked.
    staging: TimeLeft,
    /// How the warm route is asked.
    warm: TimeLeft,
}

const WARM: usize = 0;
const STAGING: usize = 1;
const BOTH: usize = 2;

impl Script for Staging {
    fn name(&self) -> &'static str {
        routes::Staging::NAME
    }

    fn begin(&self, asked: &ScriptRequest<'_>) -> Begin {
        match asked.command {
            "get" | "gets" | "lease-get" => {
                let read = Read {
                    staging: self.staging.clone(),
                    warm: self.warm.clone(),
                    found: None,
                };
                Begin::Run(Box::new(read), Turn::own(WARM, FIRST))
            }
            "set" | "cas" | "lease-set" => Begin::Run(Box::new(Store), Turn::own(WARM, FIRST)),
            _ if asked.request.class == Class::Delete => Begin::Pass(BOTH),
            _ => Begin::copy(WARM, STAGING),
        }
    }

    fn needs_values(&self) -> bool {
        true
    }

    fn why(&self) -> String {
        "the first answers, and what it has goes to the second in the background".into()
    }
}

/// The warm route has answered.
const FIRST: u32 = 0;
/// The staging route has told whether it has the key.
const THERE: u32 = 1;
/// The warm route has told when the value expires.
const LEFT: u32 = 2;

/// A read: what the warm route has, and the staging route has not, is added there.
struct Read {
    staging: TimeLeft,
    warm: TimeLeft,
    /// The flags and the value that the warm route has.
    found: Option<(u32, Vec<u8>)>,
}

impl Run for Read {
    fn next(&mut self, asked: &ScriptRequest<'_>, number: u32, answer: &Answer<'_>) -> Turn {
        match number {
            FIRST => match Item::of(answer.bytes()) {
                Some(item) => {
                    self.found = Some((item.flags, item.value.to_vec()));
                    Turn::give(Give::This).and_ask(STAGING, THERE, self.staging.question(asked.key))
                }
                None => Turn::give(Give::This),
            },
            THERE => match self.staging.answered(asked, answer) {
                KnownExpiry::Again => Turn::ask(STAGING, THERE, self.staging.question(asked.key)),
                KnownExpiry::Nothing => Turn::ask(WARM, LEFT, self.warm.question(asked.key)),
                KnownExpiry::Value(_) | KnownExpiry::Failed => Turn::default(),
            },
            _ => match (self.warm.answered(asked, answer), self.found.take()) {
                (KnownExpiry::Again, found) => {
                    self.found = found;
                    Turn::ask(WARM, LEFT, self.warm.question(asked.key))
                }
                (KnownExpiry::Value(Some(expiry)), Some((flags, value))) => {
                    let add = item::store("add", asked.key, flags, expiry, &value, None);
                    Turn::default().and_tell(STAGING, add)
                }
                _ => Turn::default(),
            },
        }
    }

    fn memory_bytes(&self) -> usize {
        self.found.as_ref().map_or(0, |(_, value)| value.len())
    }
}

/// A change that the warm route may refuse: the staging route gets what was stored.
struct Store;

impl Run for Store {
    fn next(&mut self, asked: &ScriptRequest<'_>, _: u32, answer: &Answer<'_>) -> Turn {
        let turn = Turn::give(Give::This);
        match StoreRequest::of(asked.message) {
            Some(stored) if answer.outcome() == Outcome::Stored => {
                let set = item::store("set", asked.key, stored.flags, stored.expiry, stored.value, None);
                turn.and_tell(STAGING, set)
            }
            _ => turn,
        }
    }
}

impl<'a> Build<'a, [&'a Route; 2]> for routes::Staging {
    fn build(
        &'a self,
        [warm, staging]: [&'a Route; 2],
        maker: &mut Maker<'_, 'a>,
    ) -> Result<NodeId, CompileError> {
        let mut children = vec![maker.node(warm)?, maker.node(staging)?];
        children.push(maker.gather_of(Wait::All, children.clone()));
        maker.script(Staging::default(), children)
    }
}
