//! migrate, with mcrouter's four phases: requests move from one child to another, key by key, while deletes
//! go to both. Child 0 is the old one, child 1 the new one, and child 2 sends to both. Child 3 is the new one for
//! a `lease-set` whose token may be of the old one.

use std::time::Duration;

use proxima_wire::{
    hash::{routing_key, spooky32},
    memcache::item::{self, StoreRequest},
    message::{Class, Outcome},
};

use super::Random;
use crate::{
    config::{
        routes::{self, Spec},
        schema::Route,
    },
    micros::Micros,
    route::{
        Answer,
        compile::{Build, CompileError, Maker},
        tree::{Begin, Children, Choose, Give, NodeId, Query, Run, Script, ScriptRequest, Turn, Wait},
    },
};

/// The route `migrate`.
#[derive(Debug)]
pub(in crate::route) struct Migrate {
    /// The time since 1970 at which the migration begins.
    pub(in crate::route) start: Micros,
    /// The time from the start to the first key that moves. The last key moves after twice that time.
    pub(in crate::route) interval: Duration,
    /// The number of the command `lease-set`.
    pub(in crate::route) lease_set: Option<u16>,
}

impl Migrate {
    const FROM: usize = 0;
    const TO: usize = 1;
    const BOTH: usize = 2;
    const FILL: usize = 3;
    /// The time after a key has moved in which a token may be of the old route.
    const SETTLING: Duration = Duration::from_secs(10);

    /// The time at which this key moves.
    fn moves(&self, key: &[u8]) -> Micros {
        let interval = self.interval.as_secs();
        let hash = u64::from(spooky32(routing_key(key, true), 0));
        self.start + Micros::secs(interval + hash.checked_rem(interval).unwrap_or(0))
    }

    /// Do keys move at this time? Before that all are at one place, and all at another one after it.
    fn moves_keys(&self, unix: Micros) -> bool {
        let (first, last) = (
            self.start + self.interval.into(),
            self.start + (self.interval * 2).into(),
        );
        first <= unix && unix < last
    }

    fn child(&self, query: &Query<'_>) -> usize {
        match query.class {
            Class::Delete if query.unix < self.start => Self::FROM,
            Class::Delete if query.unix < self.start + (self.interval * 2).into() => Self::BOTH,
            Class::Delete => Self::TO,
            _ => {
                let moves = self.moves(query.key);
                match Some(query.command) == self.lease_set && query.unix < moves + Self::SETTLING.into() {
                    _ if query.unix < moves => Self::FROM,
                    true => Self::FILL,
                    false => Self::TO,
                }
            }
        }
    }
}

impl Choose for Migrate {
    fn name(&self) -> &'static str {
        routes::Migrate::NAME
    }

    fn choose(&self, query: &Query<'_>, _: &Children<'_>, _: &mut Random) -> usize {
        self.child(query)
    }

    fn looks_at_key(&self, unix: Micros) -> bool {
        self.moves_keys(unix)
    }

    fn why(&self, query: &Query<'_>, _: &Children<'_>, chosen: usize) -> String {
        let when = match query.unix < self.start {
            true => "before the migration",
            false => "since the migration began",
        };
        let what = match chosen {
            Self::FROM => "the old route",
            Self::BOTH => "both routes",
            _ => "the new route",
        };
        format!("{when}: {what}")
    }
}

/// A `lease-set` soon after its key has moved. If the new route, child 0, refuses its token, what the old
/// route, child 1, has is made invalid.
#[derive(Debug)]
pub(in crate::route) struct Fill;

impl Script for Fill {
    fn name(&self) -> &'static str {
        routes::Migrate::NAME
    }

    fn begin(&self, asked: &ScriptRequest<'_>) -> Begin {
        match StoreRequest::of(asked.message) {
            Some(_) => Begin::Run(Box::new(Self), Turn::own(0, 0)),
            // A value that is not whole is not worth the memory.
            None => Begin::Pass(0),
        }
    }

    fn why(&self) -> String {
        "the new route, and if that refuses it, the old one with a value that has expired".into()
    }
}

impl Run for Fill {
    fn next(&mut self, asked: &ScriptRequest<'_>, _: u32, answer: &Answer<'_>) -> Turn {
        let turn = Turn::give(Give::This);
        match StoreRequest::of(asked.message).filter(|_| answer.outcome() != Outcome::Stored) {
            Some(stored) => {
                let (flags, value, token) = (stored.flags, stored.value, stored.version);
                turn.and_tell(1, item::store("lease-set", asked.key, flags, -1, value, token))
            }
            None => turn,
        }
    }
}

impl<'a> Build<'a, [&'a Route; 2]> for routes::Migrate {
    fn build(
        &'a self,
        [from, to]: [&'a Route; 2],
        maker: &mut Maker<'_, 'a>,
    ) -> Result<NodeId, CompileError> {
        let (from, to) = (maker.node(from)?, maker.node(to)?);
        let both = maker.gather_of(Wait::All, vec![from, to]);
        let mut children = vec![from, to, both];
        let lease_set = maker.protocol.command("lease-set");
        if lease_set.is_some() {
            children.push(maker.script(Fill, vec![to, from])?);
        }
        let handle = Migrate {
            start: Micros::secs(self.start),
            interval: self.interval,
            lease_set,
        };
        Ok(maker.choose(handle, children))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_moves_once_and_deletes_reach_both_meanwhile() {
        let route = Migrate {
            start: Micros::secs(1000),
            interval: Duration::from_secs(100),
            lease_set: Some(7),
        };
        // SpookyHash of `key0` is 75843317, so it moves 17 s after the interval, `foo` after 59 s.
        let of = |command, class, key: &'static [u8], secs| {
            let query = Query {
                command,
                class,
                key,
                unix: Micros::secs(secs),
                ..Query::example()
            };
            route.child(&query)
        };
        let at = |class, key, secs| of(0, class, key, secs);
        for (class, key, secs, child) in [
            (Class::Read, &b"key0"[..], 999, 0),
            (Class::Write, b"key0", 1050, 0),
            (Class::Write, b"key0", 1116, 0),
            (Class::Write, b"key0", 1117, 1),
            (Class::Write, b"key0|#|more", 1117, 1),
            (Class::Read, b"foo", 1158, 0),
            (Class::Read, b"foo", 1159, 1),
            (Class::Read, b"foo", 1200, 1),
            (Class::Delete, b"key0", 999, 0),
            (Class::Delete, b"key0", 1000, 2),
            (Class::Delete, b"key0", 1199, 2),
            (Class::Delete, b"key0", 1200, 1),
        ] {
            let name = key.escape_ascii();
            assert_eq!(at(class, key, secs), child, "{class:?} {name} at {secs}");
        }
        for (secs, child) in [(1116, 0), (1117, 3), (1126, 3), (1127, 1)] {
            assert_eq!(of(7, Class::Write, b"key0", secs), child, "lease-set at {secs}");
        }
        let at_once = Migrate {
            start: Micros::secs(1000),
            interval: Duration::ZERO,
            lease_set: None,
        };
        assert_eq!(at_once.moves(b"key0"), Micros::secs(1000));
    }
}
