//! warm_up, with mcrouter's rules: reads that a cold server cannot answer go to a warm one, and what that has
//! is added to the cold one. Child 0 is cold, and child 1 is warm.

use proxima_wire::memcache::item::{self, Item};

use crate::route::{
    Answer, Answers,
    tree::{Asked, Begin, Give, Run, Script, Turn},
};

/// The route `warm_up`.
#[derive(Debug)]
pub(in crate::route) struct WarmUp {
    /// The rule by which added values expire.
    pub(in crate::route) expiry: AddedExpiry,
}

/// When values expire that were added to the cold server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::route) enum AddedExpiry {
    /// After so many seconds; 0: never.
    After(i64),
    /// When they expire in the warm server.
    AsWarm,
}

const COLD: usize = 0;
const WARM: usize = 1;

impl WarmUp {
    /// The commands that only look at values, and those that do more than that.
    fn reads(command: &str) -> Option<bool> {
        match command {
            "get" => Some(true),
            "gets" | "gat" | "gats" => Some(false),
            _ => None,
        }
    }
}

impl Script for WarmUp {
    fn name(&self) -> &'static str {
        "warm_up"
    }

    fn begin(&self, asked: &Asked<'_>) -> Begin {
        let expiry = self.expiry;
        let own = Turn::own(COLD, 0);
        match Self::reads(asked.command) {
            Some(true) => Begin::Run(Box::new(Get { expiry }), own),
            Some(false) => {
                // A value that is touched lives as long as the client says.
                let touched = item::touch_expiry(asked.message);
                let expiry = touched.map_or(expiry, AddedExpiry::After);
                let cold = None;
                Begin::Run(Box::new(Other { expiry, cold }), own)
            }
            None => Begin::Pass(COLD),
        }
    }

    fn why(&self) -> String {
        "a read that the first cannot answer goes to the second, whose value is added to the first".into()
    }
}

/// A `get`: the answer of the warm server is the client's, and is added in the background.
struct Get {
    expiry: AddedExpiry,
}

impl Run for Get {
    fn next(&mut self, asked: &Asked<'_>, number: u32, answer: &Answer<'_>) -> Turn {
        match (number, self.expiry) {
            (0, _) if answer.has_value() => Turn::give(Give::This),
            (0, _) => Turn::own(WARM, 1),
            (1, expiry) => {
                let turn = Turn::give(Give::This);
                match (Item::of(answer.bytes()), expiry) {
                    (Some(item), AddedExpiry::After(expiry)) => {
                        turn.and_tell(COLD, add(asked.key, &item, expiry))
                    }
                    (Some(_), AddedExpiry::AsWarm) => turn.and_ask(WARM, 2, item::read(asked.key)),
                    (None, _) => turn,
                }
            }
            _ => match Item::read(answer.bytes()) {
                Some(item) => {
                    let expiry = item.expiry(asked.unix.as_secs());
                    Turn::default().and_tell(COLD, add(asked.key, &item, expiry))
                }
                None => Turn::default(),
            },
        }
    }
}

/// Another read: the value is added first, and then the client's request is repeated.
struct Other {
    expiry: AddedExpiry,
    cold: Option<Answers>,
}

impl Run for Other {
    fn next(&mut self, asked: &Asked<'_>, number: u32, answer: &Answer<'_>) -> Turn {
        match number {
            0 if answer.has_value() => Turn::give(Give::This),
            0 => {
                self.cold = Some(Answers::of_one(answer));
                let read = match self.expiry {
                    AddedExpiry::After(_) => item::of_key("get", asked.key),
                    AddedExpiry::AsWarm => item::read(asked.key),
                };
                Turn::ask(WARM, 1, read)
            }
            1 => {
                let item = match self.expiry {
                    AddedExpiry::After(expiry) => Item::of(answer.bytes()).map(|item| (item, expiry)),
                    AddedExpiry::AsWarm => {
                        let item = Item::read(answer.bytes());
                        item.map(|item| (item, item.expiry(asked.unix.as_secs())))
                    }
                };
                match item {
                    Some((item, expiry)) => Turn::ask(COLD, 2, add(asked.key, &item, expiry)),
                    None => Turn::give(self.cold.take().map_or(Give::Miss, Give::Kept)),
                }
            }
            2 => Turn::own(COLD, 3),
            _ => Turn::give(Give::This),
        }
    }
}

fn add(key: &[u8], item: &Item<'_>, expiry: i64) -> Vec<u8> {
    item::store("add", key, item.flags, expiry, item.value, None)
}
