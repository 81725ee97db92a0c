//! key_split: every key has several copies, each under a name of its own, and each host uses one of them.
//! Child `n` asks for copy `n`; copy 0 has the key's own name.

use proxima_wire::message::Class;

use super::{Insert, Place, Random};
use crate::{
    config::{
        routes::{self, Spec},
        schema::Route,
    },
    route::{
        compile::{Build, CompileError, Maker},
        tree::{Children, Choose, Fan, NodeId, Query, Wait},
    },
};

/// The route `key_split`: the copies that a request goes to.
#[derive(Debug)]
pub(in crate::route) struct KeySplit {
    /// The number of copies.
    pub(in crate::route) copies: u32,
    /// The copy of this host.
    pub(in crate::route) own: u32,
    /// The numbers of the commands that store in all copies; empty: they store in this host's alone.
    pub(in crate::route) all: Vec<u16>,
}

/// Bytes that the name of a copy may have beyond the key's own.
const LONGEST: usize = 5;
/// The longest key of a server.
const KEY: usize = 250;

/// Commands that store a value whatever is there.
const STORES: [&str; 3] = ["set", "ms", "SET"];

fn is_split(key: &[u8]) -> bool {
    !key.is_empty() && key.len() + LONGEST <= KEY
}

impl Fan for KeySplit {
    fn name(&self) -> &'static str {
        routes::KeySplit::NAME
    }

    fn choose(&self, query: &Query<'_>, _: &mut Random, others: &mut Vec<u32>) -> usize {
        if !is_split(query.key) {
            return 0;
        }
        if query.class == Class::Delete || self.all.contains(&query.command) {
            others.extend((0..self.copies).filter(|&copy| copy != self.own));
        }
        self.own as usize
    }

    fn why(&self, query: &Query<'_>) -> String {
        match is_split(query.key) {
            true => format!("copy {} of {} is this host's", self.own, self.copies),
            false => "the key is too long to be split".into(),
        }
    }
}

/// Reads ask all copies, and the first that has the key answers. Child 0 is the route for everything else,
/// and child 1 asks all.
#[derive(Debug)]
pub(in crate::route) struct FirstHit {
    /// The numbers of the commands that are about this host's copy alone: a lease is filled where it was given.
    pub(in crate::route) own: Vec<u16>,
}

impl Choose for FirstHit {
    fn name(&self) -> &'static str {
        routes::KeySplit::NAME
    }

    fn choose(&self, query: &Query<'_>, _: &Children<'_>, _: &mut Random) -> usize {
        let asks_all = query.class == Class::Read && !self.own.contains(&query.command);
        usize::from(asks_all && is_split(query.key))
    }

    fn why(&self, _: &Query<'_>, _: &Children<'_>, chosen: usize) -> String {
        match chosen {
            0 => "this host's copy alone".into(),
            _ => "the first copy that has the key".into(),
        }
    }
}

impl<'a> Build<'a, &'a Route> for routes::KeySplit {
    fn build(&'a self, child: &'a Route, maker: &mut Maker<'_, 'a>) -> Result<NodeId, CompileError> {
        let child = maker.node(child)?;
        let mut children = vec![child];
        for copy in 1..self.copies {
            let insert = Insert {
                place: Place::Stop,
                text: format!("::{copy}").into(),
                of: Self::NAME,
            };
            children.push(maker.wrap(insert, child));
        }
        let stores = STORES.iter().filter(|_| self.all_sync);
        let handle = KeySplit {
            copies: self.copies,
            own: (maker.host_number("") % u64::from(self.copies.max(1))) as u32,
            all: stores.filter_map(|name| maker.protocol.command(name)).collect(),
        };
        let one = maker.fan(handle, children.clone());
        if !self.first_hit {
            return Ok(one);
        }
        let all = maker.gather_of(Wait::Hit, children);
        let own = ["lease-get", "metaget"];
        let own = own
            .iter()
            .filter_map(|name| maker.protocol.command(name))
            .collect();
        Ok(maker.choose(FirstHit { own }, vec![one, all]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{protocol::Protocol, protocols::Memcache};

    #[test]
    fn a_host_uses_its_copy_and_changes_reach_all_where_that_is_asked() {
        let number = |name| Memcache::PLAIN.command(name).unwrap();
        let alone = KeySplit {
            copies: 3,
            own: 1,
            all: Vec::new(),
        };
        let all = KeySplit {
            copies: 3,
            own: 1,
            all: vec![number("set")],
        };
        let long = "k".repeat(246);
        for (route, command, class, key, first, others) in [
            (&alone, "get", Class::Read, "k", 1, &[][..]),
            (&alone, "set", Class::Write, "k", 1, &[]),
            (&all, "set", Class::Write, "k", 1, &[0, 2]),
            (&all, "add", Class::Write, "k", 1, &[]),
            (&alone, "delete", Class::Delete, "k", 1, &[0, 2]),
            (&all, "delete", Class::Delete, &long, 0, &[]),
        ] {
            let query = Query {
                command: number(command),
                class,
                key: key.as_bytes(),
                ..Query::example()
            };
            let mut found = Vec::new();
            let chosen = route.choose(&query, &mut Random(0), &mut found);
            assert_eq!((chosen, &found[..]), (first, others), "{command} {key}");
        }
    }
}
