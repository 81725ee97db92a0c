//! by_prefix: the child of the longest prefix that the key begins with.

use std::cmp::Reverse;

use super::Random;
use crate::{
    config::routes::{self, Spec},
    route::{
        compile::{Build, CompileError, Maker, Named},
        tree::{Children, Choose, NodeId, Query},
    },
};

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
        routes::ByPrefix::NAME
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

impl<'a> Build<'a, Named<'a>> for routes::ByPrefix {
    fn build(
        &'a self,
        (children, default): Named<'a>,
        maker: &mut Maker<'_, 'a>,
    ) -> Result<NodeId, CompileError> {
        let mut sorted: Vec<_> = children.iter().collect();
        sorted.sort_by_key(|(prefix, _)| Reverse(prefix.len()));
        let mut nodes = Vec::new();
        let mut table = Vec::new();
        for (prefix, route) in sorted {
            table.push((prefix.as_bytes().to_vec(), nodes.len()));
            nodes.push(maker.node(route)?);
        }
        nodes.push(maker.default(default, "no route for this key's prefix")?);
        let handle = ByPrefix {
            prefixes: table,
            default: nodes.len() - 1,
        };
        Ok(maker.choose(handle, nodes))
    }
}
