//! by_routing_prefix: mcrouter's `/region/cluster/` before a key names the route. Child 2i is route i as
//! configured, for keys without a prefix. Child 2i+1 is the same route behind a strip_prefix.

use super::Random;
use crate::route::tree::{Children, Choose, Query};

/// The route `by_routing_prefix`.
#[derive(Debug)]
pub(in crate::route) struct ByRoutingPrefix {
    /// The prefix `/region/cluster/` of each route.
    pub(in crate::route) prefixes: Vec<Vec<u8>>,
    /// The number of the route for keys without a prefix.
    pub(in crate::route) default: usize,
    /// That route serves keys with a prefix that no route has, too.
    pub(in crate::route) takes_unknown: bool,
}

/// The `/region/cluster/` that a key begins with; `None`: the key has no such prefix.
pub(super) fn prefix(key: &[u8]) -> Option<&[u8]> {
    if key.first() != Some(&b'/') {
        return None;
    }
    let mut slashes = memchr::memchr_iter(b'/', key).skip(2);
    slashes.next().map(|end| &key[..=end])
}

impl Choose for ByRoutingPrefix {
    fn name(&self) -> &'static str {
        "by_routing_prefix"
    }

    #[inline]
    fn choose(&self, query: &Query<'_>, children: &Children<'_>, _: &mut Random) -> usize {
        match prefix(query.key) {
            None => 2 * self.default,
            Some(wanted) => match self.prefixes.iter().position(|prefix| prefix == wanted) {
                Some(route) => 2 * route + 1,
                None if self.takes_unknown => 2 * self.default + 1,
                // The last child answers that there is no such route.
                None => children.len() - 1,
            },
        }
    }

    fn why(&self, query: &Query<'_>, _: &Children<'_>, _: usize) -> String {
        match prefix(query.key) {
            None => format!("no prefix: {}", self.prefixes[self.default].escape_ascii()),
            Some(prefix) => format!("prefix {}", prefix.escape_ascii()),
        }
    }
}
