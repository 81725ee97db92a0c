//! size_split, mcrouter's L1L2SizeSplitRoute: large values are in a second cache, and the first one has a
//! marker in their place. Child 0 is the first cache, and child 1 the second.

use proxima_wire::{
    memcache::item::{self, Item, StoreRequest},
    message::Outcome,
};

use crate::{
    config::{
        routes::{SizeSplit, Spec},
        schema::Route,
    },
    route::{
        Answer, Answers,
        compile::{Build, CompileError, Maker},
        tree::{Begin, Give, NodeId, Run, Script, ScriptRequest, Turn},
    },
};

/// The flag of a marker, which is mcrouter's.
const MARKER: u32 = 0x20;
/// The separator of the key and the marker's value, in the key of the second cache.
const BETWEEN: &[u8] = b"|==|";

const L1: usize = 0;
const L2: usize = 1;

/// Bytes of the longest key whose large value may be in the second cache: a marker with a value makes it longer.
const LONGEST_KEY: usize = 250 - BETWEEN.len() - 20;

impl SizeSplit {
    fn is_split(&self, key: &[u8], stored: &StoreRequest<'_>) -> bool {
        let expires_soon = (1..self.ttl_threshold).contains(&stored.expiry);
        stored.value.len() >= self.threshold && !expires_soon && key.len() <= LONGEST_KEY
    }
}

impl Script for SizeSplit {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn begin(&self, asked: &ScriptRequest<'_>) -> Begin {
        match asked.command {
            "set" | "lease-set" => match StoreRequest::of(asked.message) {
                Some(stored) if !self.is_split(asked.key, &stored) => Begin::Pass(L1),
                Some(stored) if asked.command == "lease-set" => self.fill(asked, &stored),
                Some(_) if self.both => Begin::copy(L1, L2),
                Some(_) => {
                    let set = Set {
                        hides_server: self.hides_server,
                    };
                    Begin::Run(Box::new(set), Turn::own(L2, 0))
                }
                None => Begin::Pass(L1),
            },
            "get" | "gets" | "lease-get" => {
                let read = Read {
                    retries: if asked.command == "get" { 0 } else { self.retries },
                    is_get: asked.command == "get",
                    hides_server: self.hides_server,
                    marker: None,
                    then: Then::End,
                };
                Begin::Run(Box::new(read), Turn::own(L1, FIRST))
            }
            _ => Begin::Pass(L1),
        }
    }

    fn needs_values(&self) -> bool {
        true
    }

    fn why(&self) -> String {
        format!("values of {} bytes or more are in the second", self.threshold)
    }
}

/// The client's reply after this answer of the second cache.
fn told_of_failure(answer: &Answer<'_>, hides_server: bool) -> Give {
    match answer.outcome() {
        Outcome::Ejected | Outcome::ConnectError | Outcome::ConnectTimeout if hides_server => {
            Give::Fail(Outcome::Ejected, "Server unavailable")
        }
        _ => Give::This,
    }
}

/// A `set` of a large value.
struct Set {
    hides_server: bool,
}

impl SizeSplit {
    /// Begins a `lease-set`. The second cache stores its value under a key of its own, because another client
    /// may be filling the same key.
    fn fill(&self, asked: &ScriptRequest<'_>, stored: &StoreRequest<'_>) -> Begin {
        let set = |key: &[u8]| item::store("set", key, stored.flags, stored.expiry, stored.value, None);
        if self.both {
            let turn = Turn::own(L1, 1).and_tell(L2, set(asked.key));
            return Begin::Run(Box::new(Fill::default()), turn);
        }
        let name = asked.chance.to_string().into_bytes();
        let large = set(&[asked.key, BETWEEN, &name].concat());
        let fill = Fill {
            name,
            failure_ttl: self.failure_ttl,
        };
        Begin::Run(Box::new(fill), Turn::ask(L2, 0, large))
    }
}

/// A `lease-set` of a large value.
#[derive(Default)]
struct Fill {
    /// The value of the marker.
    name: Vec<u8>,
    failure_ttl: i64,
}

impl Run for Fill {
    fn next(&mut self, asked: &ScriptRequest<'_>, number: u32, answer: &Answer<'_>) -> Turn {
        let Some(stored) = StoreRequest::of(asked.message).filter(|_| number == 0) else {
            return Turn::give(Give::This);
        };
        let set = |flags, expiry, value: &[u8]| {
            item::store("lease-set", asked.key, flags, expiry, value, stored.version)
        };
        let first = match answer.outcome() {
            Outcome::Stored => set(stored.flags | MARKER, stored.expiry, &self.name),
            _ => {
                let soon = match stored.expiry {
                    0 => self.failure_ttl,
                    expiry => expiry.min(self.failure_ttl),
                };
                set(stored.flags, soon, stored.value)
            }
        };
        Turn::ask(L1, 1, first)
    }
}

impl Run for Set {
    fn next(&mut self, asked: &ScriptRequest<'_>, number: u32, answer: &Answer<'_>) -> Turn {
        let stored = StoreRequest::of(asked.message).filter(|_| answer.outcome() == Outcome::Stored);
        match (number, stored) {
            (0, Some(stored)) => {
                let flags = stored.flags | MARKER;
                let marker = item::store("set", asked.key, flags, stored.expiry, b"", None);
                Turn::ask(L1, 1, marker)
            }
            (0, None) => Turn::give(told_of_failure(answer, self.hides_server)),
            _ => Turn::give(Give::This),
        }
    }
}

/// A read. A marker leads to the second cache; one that leads nowhere is removed.
struct Read {
    retries: u32,
    is_get: bool,
    hides_server: bool,
    /// The value and the version of the marker.
    marker: Option<(Vec<u8>, Option<u64>)>,
    /// What happens when the marker is removed.
    then: Then,
}

/// What happens when a marker is removed.
enum Then {
    /// Nothing: the client has its answer.
    End,
    /// The client gets this.
    Give(Give),
    /// The key is looked for again.
    Again,
}

/// The first cache has answered.
const FIRST: u32 = 0;
/// The second cache has answered.
const SECOND: u32 = 1;
/// The first cache has answered with the version of the marker that is to be removed.
const VERSION: u32 = 2;
/// The marker is removed.
const REMOVED: u32 = 3;

impl Read {
    fn first(&mut self, asked: &ScriptRequest<'_>, answer: &Answer<'_>) -> Turn {
        let Some(item) = Item::of(answer.bytes()).filter(|item| item.flags & MARKER != 0) else {
            return match item::stale(answer.bytes()) {
                Some((token, flags)) if token > 0 && flags & MARKER != 0 => {
                    Turn::give(Give::Made(item::miss(asked.key, token)))
                }
                _ => Turn::give(Give::This),
            };
        };
        self.marker = Some((item.value.to_vec(), item.version));
        let key = match item.value {
            b"" => asked.key.to_vec(),
            value => [asked.key, BETWEEN, value].concat(),
        };
        Turn::ask(L2, SECOND, item::of_key("get", &key))
    }

    fn second(&mut self, asked: &ScriptRequest<'_>, answer: &Answer<'_>) -> Turn {
        let (value, version) = self.marker.clone().unwrap_or_default();
        let told = told_of_failure(answer, self.hides_server);
        if let Some(item) = Item::of(answer.bytes()) {
            let mut out = Vec::with_capacity(item.value.len() + 300);
            Item { version, ..item }.put(asked.key, &mut out);
            return Turn::give(Give::Made(out));
        }
        let outcome = answer.outcome();
        let is_missing = outcome == Outcome::NotFound;
        let remove = item::of_key("gets", asked.key);
        if self.is_get && value.is_empty() {
            let turn = Turn::give(told);
            return match is_missing || outcome.is_failover() {
                true => turn.and_ask(L1, VERSION, remove),
                false => turn,
            };
        }
        self.then = match outcome {
            Outcome::NotFound if self.retries > 0 => {
                self.retries -= 1;
                Then::Again
            }
            Outcome::NotFound if self.is_get => Then::Give(Give::Fail(Outcome::LocalError, "local error")),
            Outcome::NotFound => return Turn::give(Give::Fail(Outcome::LocalError, "local error")),
            _ if outcome.is_failover() && !matches!(told, Give::This) => Then::Give(told),
            _ if outcome.is_failover() => Then::Give(Give::Kept(Answers::of_one(answer))),
            _ => return Turn::give(Give::This),
        };
        Turn::ask(L1, VERSION, remove)
    }

    /// Removes the marker, unless it is another one by now.
    fn removal(&mut self, asked: &ScriptRequest<'_>, answer: &Answer<'_>) -> Turn {
        let item = Item::of(answer.bytes()).filter(|item| item.flags & MARKER != 0);
        let (value, _) = self.marker.clone().unwrap_or_default();
        match item.filter(|item| item.value == value) {
            Some(Item {
                flags,
                version: Some(version),
                ..
            }) => {
                let gone = item::store("cas", asked.key, flags, -1, b"", Some(version));
                Turn::ask(L1, REMOVED, gone)
            }
            _ => self.removed(),
        }
    }

    fn removed(&mut self) -> Turn {
        match std::mem::replace(&mut self.then, Then::End) {
            Then::End => Turn::default(),
            Then::Give(give) => Turn::give(give),
            Then::Again => Turn::own(L1, FIRST),
        }
    }
}

impl Run for Read {
    fn next(&mut self, asked: &ScriptRequest<'_>, number: u32, answer: &Answer<'_>) -> Turn {
        match number {
            FIRST => self.first(asked, answer),
            SECOND => self.second(asked, answer),
            VERSION => self.removal(asked, answer),
            _ => self.removed(),
        }
    }
}

impl<'a> Build<'a, [&'a Route; 2]> for SizeSplit {
    fn build(&'a self, [l1, l2]: [&'a Route; 2], maker: &mut Maker<'_, 'a>) -> Result<NodeId, CompileError> {
        let children = vec![maker.node(l1)?, maker.node(l2)?];
        maker.script(*self, children)
    }
}
