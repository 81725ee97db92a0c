//! key_part: the routes below look at the first parts of the key alone, as below mcrouter's KeyParseRoute.
//! Nothing of it is left in the tree: each choice that stands below is wrapped when the tree is made.

use std::sync::Arc;

use proxima_wire::hash::routing_key;

use super::Random;
use crate::{
    config::{routes, schema::Route},
    micros::Micros,
    route::{
        compile::{Build, CompileError, Maker},
        order::Order,
        tree::{Children, Choose, NodeId, Query},
    },
};

/// The parts of a key that are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::route) struct Parts {
    /// The number of parts, each with the delimiter behind it. A key with fewer parts is looked at whole.
    pub(in crate::route) count: usize,
    /// The end of a part.
    pub(in crate::route) delimiter: u8,
}

impl Parts {
    fn of<'a>(&self, key: &'a [u8]) -> &'a [u8] {
        let mut ends = memchr::memchr_iter(self.delimiter, key);
        ends.nth(self.count.saturating_sub(1))
            .map_or(key, |end| &key[..=end])
    }
}

/// A choice that looks at a part of the key.
pub(in crate::route) struct ByPart {
    /// The parts, from the outermost route to the innermost. Each is a part of the one before.
    pub(in crate::route) parts: Arc<[Parts]>,
    /// The choice.
    pub(in crate::route) choice: Box<dyn Choose>,
}

/// The part of a key at which a choice looks.
pub(in crate::route) fn part<'a>(parts: &[Parts], key: &'a [u8]) -> &'a [u8] {
    parts
        .iter()
        .fold(routing_key(key, true), |key, parts| parts.of(key))
}

impl ByPart {
    fn narrowed<'a>(&self, query: &Query<'a>) -> Query<'a> {
        Query {
            key: part(&self.parts, query.key),
            ..*query
        }
    }
}

impl Choose for ByPart {
    fn name(&self) -> &'static str {
        self.choice.name()
    }

    fn choose(&self, query: &Query<'_>, children: &Children<'_>, random: &mut Random) -> usize {
        self.choice.choose(&self.narrowed(query), children, random)
    }

    fn is_hash(&self) -> bool {
        self.choice.is_hash()
    }

    fn varies(&self, query: &Query<'_>) -> bool {
        self.choice.varies(query)
    }

    fn looks_at_key(&self, unix: Micros) -> bool {
        self.choice.looks_at_key(unix)
    }

    fn set_order(&self, order: Option<&Arc<Order>>) {
        self.choice.set_order(order);
    }

    fn is_by_distance(&self) -> bool {
        self.choice.is_by_distance()
    }

    fn why(&self, query: &Query<'_>, children: &Children<'_>, chosen: usize) -> String {
        self.choice.why(&self.narrowed(query), children, chosen)
    }
}

impl<'a> Build<'a, &'a Route> for routes::KeyPart {
    fn build(&'a self, child: &'a Route, maker: &mut Maker<'_, 'a>) -> Result<NodeId, CompileError> {
        let parts = Parts {
            count: self.parts,
            delimiter: self.delimiter,
        };
        // Every choice below looks at these parts of the key alone.
        let narrower = [&maker.parts[..], &[parts]].concat();
        let outer = std::mem::replace(&mut maker.parts, narrower.into());
        let made = maker.node(child);
        maker.parts = outer;
        made
    }
}

#[cfg(test)]
mod tests {
    use super::{Parts, part};

    #[test]
    fn keys_are_cut_behind_so_many_parts() {
        let colons = |count| Parts {
            count,
            delimiter: b':',
        };
        for (parts, key, expected) in [
            (&[colons(1)][..], "a:b:c", "a:"),
            (&[colons(2)], "a:b:c", "a:b:"),
            (&[colons(2)], "a:b:", "a:b:"),
            (&[colons(3)], "a:b:c", "a:b:c"),
            (&[colons(1)], "abc", "abc"),
            (&[colons(1)], "abc|#|d:e", "abc"),
            (&[colons(1)], "a:bc|#|d", "a:"),
            (&[colons(3), colons(1)], "a:b:c:d", "a:"),
            (&[], "a:b", "a:b"),
        ] {
            assert_eq!(
                part(parts, key.as_bytes()),
                expected.as_bytes(),
                "{parts:?} of {key}"
            );
        }
    }
}
