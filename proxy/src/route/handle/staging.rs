//! staging, with mcrouter's rules: a warm route answers everything, and a staging route is filled and kept
//! alike in the background. Child 0 is warm, child 1 is staging, and child 2 sends to both and answers the worse
//! reply.

use proxima_wire::{
    memcache::item::{self, Item, Stored},
    message::{Class, Outcome},
};

use crate::route::{
    Answer,
    tree::{Asked, Begin, Give, Run, Script, Turn},
};

/// The route `staging`.
#[derive(Debug)]
pub(in crate::route) struct Staging;

const WARM: usize = 0;
const STAGING: usize = 1;
const BOTH: usize = 2;

impl Script for Staging {
    fn name(&self) -> &'static str {
        "staging"
    }

    fn begin(&self, asked: &Asked<'_>) -> Begin {
        match asked.command {
            "get" | "gets" => Begin::Run(Box::new(Read), Turn::own(WARM, 0)),
            "set" | "cas" => Begin::Run(Box::new(Store), Turn::own(WARM, 0)),
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

/// A read: what the warm route has, and the staging route has not, is added there.
struct Read;

impl Run for Read {
    fn next(&mut self, asked: &Asked<'_>, number: u32, answer: &Answer<'_>) -> Turn {
        match number {
            0 if answer.has_value() => Turn::give(Give::This).and_ask(STAGING, 1, item::probe(asked.key)),
            0 => Turn::give(Give::This),
            1 if answer.outcome() == Outcome::NotFound => Turn::ask(WARM, 2, item::read(asked.key)),
            2 => match Item::read(answer.bytes()) {
                Some(item) => {
                    let expiry = item.expiry(asked.unix.as_secs());
                    let add = item::store("add", asked.key, item.flags, expiry, item.value, None);
                    Turn::default().and_tell(STAGING, add)
                }
                None => Turn::default(),
            },
            _ => Turn::default(),
        }
    }
}

/// A change that the warm route may refuse: the staging route gets what was stored.
struct Store;

impl Run for Store {
    fn next(&mut self, asked: &Asked<'_>, _: u32, answer: &Answer<'_>) -> Turn {
        let turn = Turn::give(Give::This);
        match Stored::of(asked.message) {
            Some(stored) if answer.outcome() == Outcome::Stored => {
                let set = item::store("set", asked.key, stored.flags, stored.expiry, stored.value, None);
                turn.and_tell(STAGING, set)
            }
            _ => turn,
        }
    }
}
