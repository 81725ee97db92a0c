//! migrate, with mcrouter's four phases: requests move from one child to another, key by key, while deletes
//! go to both. Child 0 is the old one, child 1 the new one, and child 2 sends to both.

use std::time::Duration;

use proxima_wire::{
    hash::{routing_key, spooky32},
    message::Class,
};

use super::Random;
use crate::{
    micros::Micros,
    route::tree::{Children, Choose, Query},
};

/// The route `migrate`.
#[derive(Debug)]
pub(in crate::route) struct Migrate {
    /// The time since 1970 at which the migration begins.
    pub(in crate::route) start: Micros,
    /// The time from the start to the first key that moves. The last key moves after twice that time.
    pub(in crate::route) interval: Duration,
}

impl Migrate {
    const FROM: usize = 0;
    const TO: usize = 1;
    const BOTH: usize = 2;

    /// The time at which this key moves.
    fn moves(&self, key: &[u8]) -> Micros {
        let interval = self.interval.as_secs();
        let hash = u64::from(spooky32(routing_key(key, true), 0));
        self.start + Micros::secs(interval + hash.checked_rem(interval).unwrap_or(0))
    }

    fn child(&self, query: &Query<'_>) -> usize {
        match query.class {
            Class::Delete if query.unix < self.start => Self::FROM,
            Class::Delete if query.unix < self.start + (self.interval * 2).into() => Self::BOTH,
            Class::Delete => Self::TO,
            _ if query.unix < self.moves(query.key) => Self::FROM,
            _ => Self::TO,
        }
    }
}

impl Choose for Migrate {
    fn name(&self) -> &'static str {
        "migrate"
    }

    fn choose(&self, query: &Query<'_>, _: &Children<'_>, _: &mut Random) -> usize {
        self.child(query)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{dialect::Memcache, members::Locality};

    #[test]
    fn a_key_moves_once_and_deletes_reach_both_meanwhile() {
        let route = Migrate {
            start: Micros::secs(1000),
            interval: Duration::from_secs(100),
        };
        // SpookyHash of `key0` is 75843317, so it moves 17 s after the interval, `foo` after 59 s.
        let at = |class, key: &'static [u8], secs| {
            let query = Query {
                command: 0,
                class,
                key,
                dialect: &Memcache::PLAIN,
                locality: Locality::NONE,
                unix: Micros::secs(secs),
            };
            route.child(&query)
        };
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
        let at_once = Migrate {
            start: Micros::secs(1000),
            interval: Duration::ZERO,
        };
        assert_eq!(at_once.moves(b"key0"), Micros::secs(1000));
    }
}
