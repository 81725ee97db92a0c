//! by_prefix: the child of the longest prefix that the key begins with.

use super::Random;
use crate::route::tree::{Children, Choose, Query};

/// The route `by_prefix`.
#[derive(Debug)]
pub(in crate::route) struct ByPrefix {
    /// The prefixes, longest first, each with its child's index.
    pub(in crate::route) prefixes: Vec<(Vec<u8>, usize)>,
    /// The child for every other key.
    pub(in crate::route) default: usize,
}

impl Choose for ByPrefix {
    fn name(&self) -> &'static str {
        "by_prefix"
    }

    fn choose(&self, query: &Query<'_>, _: &Children<'_>, _: &mut Random) -> usize {
        let found = self
            .prefixes
            .iter()
            .find(|(prefix, _)| query.key.starts_with(prefix));
        found.map_or(self.default, |&(_, child)| child)
    }

    fn why(&self, query: &Query<'_>, _: &Children<'_>, _: usize) -> String {
        match self
            .prefixes
            .iter()
            .find(|(prefix, _)| query.key.starts_with(prefix))
        {
            Some((prefix, _)) => format!("prefix {}", prefix.escape_ascii()),
            None => "no prefix of the list".into(),
        }
    }
}
