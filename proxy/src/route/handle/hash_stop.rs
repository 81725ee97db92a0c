//! hash_stop: keys with a `|#|` must begin with one of the allowed prefixes, as mcrouter's
//! HashStopAllowListRoute has it. Child 0 is the target, and child 1 refuses the others.

use proxima_wire::hash::routing_key;

use super::Random;
use crate::{
    config::{
        routes::{self, Spec},
        schema::Route,
    },
    route::{
        compile::{Build, CompileError, Maker},
        tree::{Children, Choose, Leaf, Node, NodeId, Query},
    },
};

/// The route `hash_stop`.
#[derive(Debug)]
pub(in crate::route) struct HashStop {
    /// The prefixes of keys that may have a `|#|`.
    pub(in crate::route) prefixes: Vec<Vec<u8>>,
}

impl HashStop {
    /// The answer to other keys with a `|#|`, in mcrouter's words.
    pub(in crate::route) const REFUSED: &'static str = "Hash stop not permitted";

    fn is_refused(&self, key: &[u8]) -> bool {
        routing_key(key, true).len() < key.len()
            && !self.prefixes.iter().any(|prefix| key.starts_with(prefix))
    }
}

impl Choose for HashStop {
    fn name(&self) -> &'static str {
        routes::HashStop::NAME
    }

    fn choose(&self, query: &Query<'_>, _: &Children<'_>, _: &mut Random) -> usize {
        usize::from(self.is_refused(query.key))
    }

    fn why(&self, query: &Query<'_>, _: &Children<'_>, _: usize) -> String {
        match self.is_refused(query.key) {
            true => "the key has a `|#|` and no prefix that may have one".into(),
            false => "the key may be written so".into(),
        }
    }
}

impl<'a> Build<'a, &'a Route> for routes::HashStop {
    fn build(&'a self, child: &'a Route, maker: &mut Maker<'_, 'a>) -> Result<NodeId, CompileError> {
        let child = maker.node(child)?;
        let refused = maker.push(Node::Leaf(Leaf::Error(HashStop::REFUSED.into())));
        let prefixes = self.prefixes.iter().map(|prefix| prefix.as_bytes().to_vec());
        let handle = HashStop {
            prefixes: prefixes.collect(),
        };
        // It looks at the whole key, whatever its own children look at.
        Ok(maker.push(Node::Choose {
            handle: Box::new(handle),
            children: vec![child, refused],
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::HashStop;

    #[test]
    fn only_keys_with_a_stop_need_a_listed_prefix() {
        let route = HashStop {
            prefixes: vec![b"foo".to_vec(), b"baz".to_vec()],
        };
        for (key, refused) in [
            ("abc", false),
            ("abc|#|1", true),
            ("foo|#|1", false),
            ("bazaar|#|1", false),
            ("f|#|oo", true),
            ("a|#", false),
            ("|#|", true),
        ] {
            assert_eq!(route.is_refused(key.as_bytes()), refused, "{key}");
        }
    }
}
