//! big_value, with mcrouter's form: a value that is too large for its server is stored in pieces, and in its
//! place stands what the pieces are. Child 0 is the target.

use std::collections::HashMap;

use proxima_wire::{
    hash::spooky32,
    memcache::{
        KEY,
        item::{self, Item, StoreRequest},
    },
    message::Outcome,
};

use crate::{
    config::{
        routes::{BigValue, Spec},
        schema::Route,
    },
    route::{
        Answer, Answers,
        compile::{Build, CompileError, Maker},
        tree::{Begin, Give, NodeId, Run, Script, ScriptRequest, Turn},
    },
};

/// The flag of a value in pieces, which is mcrouter's.
const FLAG: u32 = 0x8000;
/// The first number of what stands in place of such a value.
const VERSION: &[u8] = b"1";
/// The most pieces that a value can have here.
const MOST: u32 = 1 << 16;
/// The most pieces that are asked for at a time: a client's one request must not hold up others for long.
const AT_ONCE: u32 = 256;

/// Bytes that a piece takes beside its value, more or less.
const ENTRY: usize = 80;
/// The error text for a key that leaves no room for the numbers of pieces.
const LONG_KEY: &str = "bad key";
/// The error text for a value that would be in more pieces than could be read again.
const TOO_MANY: &str = "the value would be in too many pieces";
/// The error text for pieces that are more together than a value may be.
const TOO_LARGE: &str = "the value in pieces is too large";

const TARGET: usize = 0;
/// The client's own command, or what stands in place of the value.
const WHOLE: u32 = u32::MAX;
/// What stands in place of the value, with its version, because it is to be removed.
const REMOVES: u32 = u32::MAX - 1;
/// It is removed.
const REMOVED: u32 = u32::MAX - 2;
/// The token of a miss that nobody can fill.
const NO_TOKEN: u64 = u64::MAX;

/// What stands in place of a value in pieces: `1-COUNT-SUFFIX`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pieces {
    count: u32,
    suffix: u32,
}

impl Pieces {
    fn of(text: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?;
        let mut parts = text.split('-');
        let version = parts.next()?;
        let (count, suffix) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        let is_known = version.as_bytes() == VERSION && parts.next().is_none() && count <= MOST;
        is_known.then_some(Self { count, suffix })
    }

    fn text(self) -> String {
        format!("1-{}-{}", self.count, self.suffix)
    }

    fn key(self, key: &[u8], number: u32) -> Vec<u8> {
        [key, format!(":{number}:{}", self.suffix).as_bytes()].concat()
    }
}

impl Script for BigValue {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn begin(&self, asked: &ScriptRequest<'_>) -> Begin {
        match asked.command {
            "get" | "gets" | "gat" | "gats" | "lease-get" => {
                let read = Read {
                    route: *self,
                    leases: asked.command == "lease-get",
                    head: None,
                    pieces: None,
                    values: HashMap::new(),
                    bytes: 0,
                    awaited: 0,
                    asked: 0,
                    worst: Answers::default(),
                };
                Begin::Run(Box::new(read), Turn::own(TARGET, WHOLE))
            }
            _ => match StoreRequest::of(asked.message) {
                Some(stored) if stored.value.len() > self.threshold => {
                    let count = stored.value.len().div_ceil(self.threshold) as u32;
                    if count > MOST {
                        return Begin::Fail(Outcome::Overloaded, TOO_MANY);
                    }
                    let pieces = Pieces {
                        count,
                        suffix: spooky32(stored.value, 0),
                    };
                    if pieces.key(asked.key, count - 1).len() > KEY {
                        return Begin::Fail(Outcome::ClientError, LONG_KEY);
                    }
                    let mut store = Store {
                        route: *self,
                        pieces,
                        asked: 0,
                        done: 0,
                        worst: Answers::default(),
                    };
                    let turn = store.more(asked, &stored);
                    Begin::Run(Box::new(store), turn)
                }
                _ => Begin::Pass(TARGET),
            },
        }
    }

    fn needs_values(&self) -> bool {
        true
    }

    fn why(&self) -> String {
        format!("values of more than {} bytes are in pieces", self.threshold)
    }
}

impl BigValue {
    /// The number of pieces behind the first `from` that are asked for at once.
    fn batch_end(&self, from: u32, count: u32) -> u32 {
        let batch = match self.batch {
            0 => AT_ONCE,
            batch => batch.min(AT_ONCE),
        };
        from.saturating_add(batch).min(count)
    }
}

/// A command that stores a large value.
struct Store {
    route: BigValue,
    pieces: Pieces,
    asked: u32,
    done: u32,
    worst: Answers,
}

impl Store {
    /// The next pieces.
    fn more(&mut self, asked: &ScriptRequest<'_>, stored: &StoreRequest<'_>) -> Turn {
        let end = self.route.batch_end(self.asked, self.pieces.count);
        let size = self.route.threshold;
        let mut turn = Turn::default();
        for number in self.asked..end {
            let start = number as usize * size;
            let piece = &stored.value[start..stored.value.len().min(start + size)];
            let key = self.pieces.key(asked.key, number);
            let set = item::store("set", &key, stored.flags, stored.expiry, piece, None);
            turn = turn.and_ask(TARGET, number, set);
        }
        self.asked = end;
        turn
    }
}

impl Run for Store {
    fn next(&mut self, asked: &ScriptRequest<'_>, number: u32, answer: &Answer<'_>) -> Turn {
        if number == WHOLE {
            return Turn::give(Give::This);
        }
        self.worst.keep(answer);
        self.done += 1;
        let Some(stored) = StoreRequest::of(asked.message).filter(|_| self.done == self.asked) else {
            return Turn::default();
        };
        if self.worst.outcomes().any(|outcome| outcome != Outcome::Stored) {
            return Turn::give(Give::Kept(std::mem::take(&mut self.worst)));
        }
        if self.asked < self.pieces.count {
            return self.more(asked, &stored);
        }
        let (text, flags) = (self.pieces.text(), stored.flags | FLAG);
        let (expiry, version) = (stored.expiry, stored.version);
        let whole = item::store(asked.command, asked.key, flags, expiry, text.as_bytes(), version);
        Turn::ask(TARGET, WHOLE, whole)
    }
}

/// A read of a value that may be in pieces.
struct Read {
    route: BigValue,
    /// It is a `lease-get`, whose client fills what is missing.
    leases: bool,
    /// The flags and the version of what stands in place of the value.
    head: Option<(u32, Option<u64>)>,
    pieces: Option<Pieces>,
    /// The pieces that have come, by their numbers.
    values: HashMap<u32, Vec<u8>>,
    /// Their bytes.
    bytes: usize,
    /// The bytes of all pieces, which are reserved before the first is asked for: a thousand requests at once
    /// would otherwise read all their first pieces, and delay every other request to the server.
    awaited: usize,
    asked: u32,
    worst: Answers,
}

impl Read {
    fn more(&mut self, asked: &ScriptRequest<'_>, pieces: Pieces) -> Turn {
        let end = self.route.batch_end(self.asked, pieces.count);
        let mut turn = Turn::default();
        for number in self.asked..end {
            let get = item::of_key("get", &pieces.key(asked.key, number));
            turn = turn.and_ask(TARGET, number, get);
        }
        self.asked = end;
        turn
    }

    fn miss(&self, asked: &ScriptRequest<'_>) -> Turn {
        Turn::give(match self.leases {
            true => Give::Made(item::miss(asked.key, NO_TOKEN)),
            false => Give::Miss,
        })
    }

    /// Removes what stands in place of a value that is not there any more. A second look gives the client of a
    /// `lease-get` its token. It is the last one.
    fn again(&mut self, asked: &ScriptRequest<'_>) -> Turn {
        self.leases = false;
        self.worst = Answers::default();
        self.values.clear();
        (self.asked, self.bytes) = (0, 0);
        Turn::ask(TARGET, REMOVES, item::of_key("gets", asked.key))
    }

    fn removal(&self, asked: &ScriptRequest<'_>, item: Option<Item<'_>>) -> Turn {
        match item.filter(|item| item.flags & FLAG != 0) {
            Some(Item {
                flags,
                version: Some(version),
                ..
            }) => {
                let gone = item::store("cas", asked.key, flags, -1, b"", Some(version));
                Turn::ask(TARGET, REMOVED, gone)
            }
            _ => Turn::own(TARGET, WHOLE),
        }
    }

    fn whole(&self, asked: &ScriptRequest<'_>, pieces: Pieces) -> Turn {
        let (flags, version) = self.head.unwrap_or_default();
        let mut value = Vec::with_capacity(self.bytes);
        for number in 0..pieces.count {
            value.extend_from_slice(self.values.get(&number).map_or(&[][..], Vec::as_slice));
        }
        let item = Item {
            flags: if self.route.hides_flag {
                flags & !FLAG
            } else {
                flags
            },
            value: &value,
            version,
        };
        let mut out = Vec::with_capacity(value.len() + 300);
        item.put(asked.key, &mut out);
        Turn::give(Give::Made(out))
    }
}

impl Run for Read {
    fn next(&mut self, asked: &ScriptRequest<'_>, number: u32, answer: &Answer<'_>) -> Turn {
        let item = Item::of(answer.bytes());
        if number == REMOVES {
            return self.removal(asked, item);
        }
        if number == REMOVED {
            return Turn::own(TARGET, WHOLE);
        }
        if number == WHOLE {
            let Some(item) = item.filter(|item| item.flags & FLAG != 0) else {
                // A miss may come with what stood in place of a value that is deleted. It is nothing to a
                // client.
                return Turn::give(match item::stale(answer.bytes()) {
                    Some((token, flags)) if flags & FLAG != 0 => Give::Made(item::miss(asked.key, token)),
                    _ => Give::This,
                });
            };
            let Some(pieces) = Pieces::of(item.value).filter(|pieces| pieces.count > 0) else {
                return self.miss(asked);
            };
            self.head = Some((item.flags, item.version));
            self.pieces = Some(pieces);
            let most = (pieces.count as usize).saturating_mul(self.route.threshold);
            self.awaited = most.min(asked.largest);
            return self.more(asked, pieces);
        }
        match item {
            Some(item) => {
                self.bytes += item.value.len();
                self.values.insert(number, item.value.to_vec());
            }
            None => drop(self.worst.keep(answer)),
        }
        let Some(pieces) = self.pieces else {
            return Turn::default();
        };
        let missing = self.worst.outcomes().count();
        let lost = self.worst.count();
        if self.values.len() as u32 + lost < self.asked {
            return Turn::default();
        }
        if missing > 0 {
            let has_failed = self.worst.outcomes().any(|outcome| outcome != Outcome::NotFound);
            return match has_failed {
                true => Turn::give(Give::Kept(std::mem::take(&mut self.worst))),
                false if self.leases => self.again(asked),
                false => self.miss(asked),
            };
        }
        if self.bytes > asked.largest {
            return Turn::give(Give::Fail(Outcome::Overloaded, TOO_LARGE));
        }
        match self.asked < pieces.count {
            true => self.more(asked, pieces),
            false => self.whole(asked, pieces),
        }
    }

    fn memory_bytes(&self) -> usize {
        self.awaited.max(self.bytes) + self.values.len() * ENTRY
    }
}

impl<'a> Build<'a, &'a Route> for BigValue {
    fn build(&'a self, child: &'a Route, maker: &mut Maker<'_, 'a>) -> Result<NodeId, CompileError> {
        let child = maker.node(child)?;
        maker.script(*self, vec![child])
    }
}

#[cfg(test)]
mod tests {
    use super::{AT_ONCE, BigValue, MOST, Pieces};

    #[test]
    fn place_of_a_value_in_pieces_is_read_as_it_is_written() {
        let pieces = Pieces {
            count: 2,
            suffix: 1234,
        };
        assert_eq!(pieces.text(), "1-2-1234");
        assert_eq!(pieces.key(b"k", 1), b"k:1:1234");
        for (text, expected) in [
            ("1-2-1234", Some(pieces)),
            ("2-2-1234", None),
            ("1-2", None),
            ("1-2-3-4", None),
            ("1--1", None),
            (
                "1-65536-1",
                Some(Pieces {
                    count: MOST,
                    suffix: 1,
                }),
            ),
            ("1-65537-1", None),
            ("", None),
        ] {
            assert_eq!(Pieces::of(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn no_request_asks_for_many_pieces_at_once() {
        for (batch, from, end) in [(2, 3, 5), (2, 99, 100), (0, 0, 100), (u32::MAX, 5, 100)] {
            let route = BigValue {
                threshold: 1,
                batch,
                hides_flag: false,
            };
            assert_eq!(route.batch_end(from, 100), end, "{batch} {from}");
            assert!(route.batch_end(0, MOST) <= AT_ONCE);
        }
    }
}
