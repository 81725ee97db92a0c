//! warm_up, with mcrouter's rules: reads that a cold server cannot answer go to a warm one, and what that has
//! is added to the cold one. Child 0 is cold, and child 1 is warm.

use proxima_wire::memcache::item::{self, Item};

use super::{TimeLeft, time_left::KnownExpiry};
use crate::{
    config::{
        routes::{self, Spec},
        schema::Route,
    },
    route::{
        Answer, Answers,
        compile::{Build, CompileError, Maker},
        tree::{Begin, Give, NodeId, Run, Script, ScriptRequest, Turn},
    },
};

/// The route `warm_up`.
#[derive(Debug)]
pub(in crate::route) struct WarmUp {
    /// The rule by which added values expire.
    pub(in crate::route) expiry: AddedExpiry,
}

/// When values expire that were added to the cold server.
#[derive(Clone, Debug)]
pub(in crate::route) enum AddedExpiry {
    /// After so many seconds; 0: never.
    After(i64),
    /// When they expire in the warm server.
    AsWarm(TimeLeft),
}

const COLD: usize = 0;
const WARM: usize = 1;

impl Script for WarmUp {
    fn name(&self) -> &'static str {
        routes::WarmUp::NAME
    }

    fn begin(&self, asked: &ScriptRequest<'_>) -> Begin {
        let fills = match asked.command {
            "get" => Fills::Behind,
            "lease-get" => Fills::WithToken(0),
            "gets" | "gat" | "gats" => Fills::First,
            "metaget" => return Begin::Run(Box::new(Metadata), Turn::own(COLD, FIRST)),
            _ => return Begin::Pass(COLD),
        };
        // A value that is touched lives as long as the client says.
        let expiry = match item::touch_expiry(asked.message) {
            Some(expiry) => AddedExpiry::After(expiry),
            None => self.expiry.clone(),
        };
        let read = Read {
            fills,
            expiry,
            cold: None,
            found: None,
        };
        Begin::Run(Box::new(read), Turn::own(COLD, FIRST))
    }

    fn why(&self) -> String {
        "a read that the first cannot answer goes to the second, whose value is added to the first".into()
    }
}

/// The cold server has answered.
const FIRST: u32 = 0;
/// The warm server has answered.
const SECOND: u32 = 1;
/// The warm server has told when the value expires.
const LEFT: u32 = 2;
/// The cold server has taken the value.
const ADDED: u32 = 3;

/// How the cold server is filled.
#[derive(Clone, Copy)]
enum Fills {
    /// In the background: the client has the answer of the warm server.
    Behind,
    /// In the same way, by `lease-set` with the token of the miss.
    WithToken(u64),
    /// First, because the client's request is repeated there.
    First,
}

struct Read {
    fills: Fills,
    expiry: AddedExpiry,
    cold: Option<Answers>,
    /// The flags and the value that the warm server has.
    found: Option<(u32, Vec<u8>)>,
}

impl Read {
    fn cold(&mut self, asked: &ScriptRequest<'_>, answer: &Answer<'_>) -> Turn {
        if answer.has_value() {
            return Turn::give(Give::This);
        }
        if let Fills::WithToken(token) = &mut self.fills {
            match item::token(answer.bytes()) {
                Some(given) => *token = given,
                // Somebody else fills it.
                None => return Turn::give(Give::This),
            }
        }
        self.cold = Some(Answers::of_one(answer));
        Turn::ask(WARM, SECOND, item::of_key("get", asked.key))
    }

    fn warm(&mut self, asked: &ScriptRequest<'_>, answer: &Answer<'_>) -> Turn {
        let Some(item) = Item::of(answer.bytes()) else {
            return match self.fills {
                Fills::Behind => Turn::give(Give::This),
                _ => self.as_cold(),
            };
        };
        let turn = match self.fills {
            Fills::First => Turn::default(),
            _ => Turn::give(Give::This),
        };
        match &mut self.expiry {
            AddedExpiry::After(expiry) => {
                let fill = self.fills.request(asked.key, item.flags, *expiry, item.value);
                self.filled(turn, fill)
            }
            AddedExpiry::AsWarm(left) => {
                let question = left.question(asked.key);
                self.found = Some((item.flags, item.value.to_vec()));
                turn.and_ask(WARM, LEFT, question)
            }
        }
    }

    fn left(&mut self, asked: &ScriptRequest<'_>, answer: &Answer<'_>) -> Turn {
        let AddedExpiry::AsWarm(left) = &mut self.expiry else {
            return Turn::default();
        };
        let expiry = match left.answered(asked, answer) {
            KnownExpiry::Again => return Turn::ask(WARM, LEFT, left.question(asked.key)),
            KnownExpiry::Value(expiry) => expiry,
            KnownExpiry::Nothing | KnownExpiry::Failed => None,
        };
        match (expiry, self.found.take(), self.fills) {
            (Some(expiry), Some((flags, value)), fills) => {
                let fill = fills.request(asked.key, flags, expiry, &value);
                self.filled(Turn::default(), fill)
            }
            (_, _, Fills::First) => self.as_cold(),
            _ => Turn::default(),
        }
    }

    /// Sends what fills the cold server.
    fn filled(&self, turn: Turn, fill: Vec<u8>) -> Turn {
        match self.fills {
            Fills::First => turn.and_ask(COLD, ADDED, fill),
            _ => turn.and_tell(COLD, fill),
        }
    }

    fn as_cold(&mut self) -> Turn {
        Turn::give(self.cold.take().map_or(Give::Miss, Give::Kept))
    }
}

impl Fills {
    fn request(self, key: &[u8], flags: u32, expiry: i64, value: &[u8]) -> Vec<u8> {
        match self {
            Self::WithToken(token) => item::store("lease-set", key, flags, expiry, value, Some(token)),
            Self::Behind | Self::First => item::store("add", key, flags, expiry, value, None),
        }
    }
}

impl Run for Read {
    fn next(&mut self, asked: &ScriptRequest<'_>, number: u32, answer: &Answer<'_>) -> Turn {
        match number {
            FIRST => self.cold(asked, answer),
            SECOND => self.warm(asked, answer),
            LEFT => self.left(asked, answer),
            ADDED => Turn::own(COLD, ADDED + 1),
            _ => Turn::give(Give::This),
        }
    }

    fn memory_bytes(&self) -> usize {
        self.found.as_ref().map_or(0, |(_, value)| value.len())
    }
}

/// A `metaget`.
struct Metadata;

impl Run for Metadata {
    fn next(&mut self, _: &ScriptRequest<'_>, number: u32, answer: &Answer<'_>) -> Turn {
        match number == FIRST && !answer.has_value() {
            true => Turn::own(WARM, SECOND),
            false => Turn::give(Give::This),
        }
    }
}

impl<'a> Build<'a, [&'a Route; 2]> for routes::WarmUp {
    fn build(
        &'a self,
        [cold, warm]: [&'a Route; 2],
        maker: &mut Maker<'_, 'a>,
    ) -> Result<NodeId, CompileError> {
        let children = vec![maker.node(cold)?, maker.node(warm)?];
        let expiry = match self.ttl {
            Some(ttl) => AddedExpiry::After(ttl),
            None => AddedExpiry::AsWarm(TimeLeft::default()),
        };
        maker.script(WarmUp { expiry }, children)
    }
}
