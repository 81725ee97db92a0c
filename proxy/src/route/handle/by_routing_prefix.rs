//! by_routing_prefix: mcrouter's `/region/cluster/` before a key names the route, or several routes.

use super::{
    Random, StripPrefix,
    hidden_prefix::{HidePrefix, prefix},
};
use crate::{
    config::routes::{self, Spec},
    route::{
        compile::{Build, CompileError, Maker, Named},
        glob::glob,
        tree::{Children, Choose, Fan, Leaf, Node, NodeId, Query},
    },
};

/// The route `by_routing_prefix`. Child `2 i` is route `i` as configured, for keys without a prefix. Child
/// `2 i + 1` is the same route without the prefix of its keys. The last child knows the other prefixes.
#[derive(Debug)]
pub(in crate::route) struct ByRoutingPrefix {
    /// The prefix `/region/cluster/` of each route.
    pub(in crate::route) prefixes: Vec<Vec<u8>>,
    /// The number of the route for keys without a prefix.
    pub(in crate::route) default: usize,
}

impl Choose for ByRoutingPrefix {
    fn name(&self) -> &'static str {
        routes::ByRoutingPrefix::NAME
    }

    #[inline]
    fn choose(&self, query: &Query<'_>, children: &Children<'_>, _: &mut Random) -> usize {
        match prefix(query.key) {
            None => 2 * self.default,
            Some(wanted) => match self.prefixes.iter().position(|prefix| prefix == wanted) {
                Some(route) => 2 * route + 1,
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

/// Prefixes that are those of no route: patterns, and clusters without a route of their own. Child `i` is
/// route `i`, and the last child answers that there is no such route.
#[derive(Debug)]
pub(in crate::route) struct ByPrefixPattern {
    /// The prefix of each route.
    pub(in crate::route) prefixes: Vec<Vec<u8>>,
    /// The number of the first route that is the same under another prefix.
    pub(in crate::route) same: Vec<usize>,
    /// The number of the default route.
    pub(in crate::route) default: usize,
    /// Keys that lead to no route go to the default one.
    pub(in crate::route) takes_unknown: bool,
}

impl ByPrefixPattern {
    /// The routes for a prefix. The first one answers.
    fn routes(&self, wanted: &[u8]) -> Vec<usize> {
        if !wanted.contains(&b'*') {
            return self.fallback(wanted).into_iter().collect();
        }
        let matching = (0..self.prefixes.len()).filter(|&route| matches(wanted, &self.prefixes[route]));
        let mut routes: Vec<usize> = Vec::new();
        for route in matching {
            let is_new = !routes.iter().any(|&other| self.same[other] == self.same[route]);
            if is_new {
                routes.push(route);
            }
        }
        // The default route answers, if it is one of them.
        let default = routes
            .iter()
            .position(|&route| self.same[route] == self.same[self.default]);
        if let Some(place) = default {
            routes.remove(place);
            routes.insert(0, self.default);
        }
        routes
    }

    /// The route for the clusters of a region that have none.
    fn fallback(&self, wanted: &[u8]) -> Option<usize> {
        let region = memchr::memchr_iter(b'/', wanted).nth(1)?;
        let fallback = [&wanted[..=region], b"fallback/"].concat();
        self.prefixes.iter().position(|prefix| *prefix == fallback)
    }
}

/// Does a pattern with its two parts match this prefix? A `*` stands for anything within a part.
fn matches(pattern: &[u8], prefix: &[u8]) -> bool {
    let mut parts = prefix.split(|&byte| byte == b'/');
    let all = pattern
        .split(|&byte| byte == b'/')
        .all(|pattern| parts.next().is_some_and(|part| glob(pattern, part)));
    all && parts.next().is_none()
}

impl Fan for ByPrefixPattern {
    fn name(&self) -> &'static str {
        routes::ByRoutingPrefix::NAME
    }

    fn choose(&self, query: &Query<'_>, _: &mut Random, others: &mut Vec<u32>) -> usize {
        let routes = self.routes(prefix(query.key).unwrap_or_default());
        match routes.split_first() {
            Some((first, rest)) => {
                others.extend(rest.iter().map(|&route| route as u32));
                *first
            }
            None if self.takes_unknown => self.default,
            None => self.prefixes.len(),
        }
    }

    fn why(&self, query: &Query<'_>) -> String {
        let routes = self.routes(prefix(query.key).unwrap_or_default());
        format!(
            "{} of {} routes have such a prefix",
            routes.len(),
            self.prefixes.len()
        )
    }
}

impl<'a> Build<'a, Named<'a>> for routes::ByRoutingPrefix {
    fn build(&'a self, (children, _): Named<'a>, maker: &mut Maker<'_, 'a>) -> Result<NodeId, CompileError> {
        let mut nodes = Vec::new();
        // The routes for prefixes of none of them.
        let mut by_pattern = Vec::new();
        let mut same = Vec::new();
        for (prefix, route) in children {
            // A server that keeps prefixes gets that of the key.
            let plain = maker.node(route)?;
            let with_prefix = match maker.keeps_prefixes() {
                true => maker.with_prefix(Some(prefix), route)?,
                false => plain,
            };
            let strip = maker.wrap(StripPrefix, with_prefix);
            let first = children.iter().position(|(_, other)| other == route);
            same.push(first.unwrap_or(by_pattern.len()));
            nodes.extend([plain, strip]);
            by_pattern.push(match maker.keeps_prefixes() {
                true => {
                    let asked = maker.with_asked_prefix(route)?;
                    maker.wrap(HidePrefix, asked)
                }
                false => strip,
            });
        }
        let prefixes = children.iter().map(|(prefix, _)| prefix.as_bytes().to_vec());
        let prefixes: Vec<Vec<u8>> = prefixes.collect();
        let default = prefixes
            .iter()
            .position(|prefix| prefix == self.default.as_bytes())
            .ok_or_else(|| CompileError::Unknown(self.default.clone()))?;
        by_pattern.push(maker.push(Node::Leaf(Leaf::Error("RootRoute: No rh found".into()))));
        let several = ByPrefixPattern {
            prefixes: prefixes.clone(),
            same,
            default,
            takes_unknown: self.takes_unknown,
        };
        nodes.push(maker.fan(several, by_pattern));
        Ok(maker.choose(ByRoutingPrefix { prefixes, default }, nodes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_name_routes_and_the_default_one_comes_first() {
        let prefixes = ["/a/a/", "/a/b/", "/a/fallback/", "/b/b/", "/b/c/", "/b/d/"];
        let route = ByPrefixPattern {
            prefixes: prefixes.map(|prefix| prefix.as_bytes().to_vec()).into(),
            // `/b/d/` is another name of `/b/c/`.
            same: vec![0, 1, 2, 3, 4, 4],
            default: 3,
            takes_unknown: false,
        };
        for (wanted, routes) in [
            ("/*/*/", &[3, 0, 1, 2, 4][..]),
            ("/a/*/", &[0, 1, 2]),
            ("/*/a/", &[0]),
            ("/b*/*/", &[3, 4]),
            ("/b/*b*/", &[3]),
            ("/*/b/", &[3, 1]),
            ("/c*/*/", &[]),
            ("/a/x/", &[2]),
            ("/b/x/", &[]),
            ("/x/x/", &[]),
        ] {
            assert_eq!(route.routes(wanted.as_bytes()), routes, "{wanted}");
        }
    }
}
