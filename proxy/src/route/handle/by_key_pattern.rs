//! by_key_pattern: the child of the first glob (`*` any text, `?` any character) that the whole key matches.

use super::Random;
use crate::{
    config::routes::{self, Spec},
    route::{
        compile::{Build, CompileError, Maker, Named},
        glob::glob,
        tree::{Children, Choose, NodeId, Query},
    },
};

/// The route `by_key_pattern`.
#[derive(Debug)]
pub(in crate::route) struct ByKeyPattern {
    /// Child `i` is for pattern `i`; the child after the last is for every other key.
    pub(in crate::route) patterns: Vec<Vec<u8>>,
}

impl ByKeyPattern {
    fn find(&self, key: &[u8]) -> usize {
        self.patterns
            .iter()
            .position(|pattern| glob(pattern, key))
            .unwrap_or(self.patterns.len())
    }
}

impl Choose for ByKeyPattern {
    fn name(&self) -> &'static str {
        routes::ByKeyPattern::NAME
    }

    fn choose(&self, query: &Query<'_>, _: &Children<'_>, _: &mut Random) -> usize {
        self.find(query.key)
    }

    fn why(&self, query: &Query<'_>, _: &Children<'_>, _: usize) -> String {
        match self.patterns.get(self.find(query.key)) {
            Some(pattern) => format!("pattern {}", pattern.escape_ascii()),
            None => "no pattern of the list".into(),
        }
    }
}

impl<'a> Build<'a, Named<'a>> for routes::ByKeyPattern {
    fn build(
        &'a self,
        (children, default): Named<'a>,
        maker: &mut Maker<'_, 'a>,
    ) -> Result<NodeId, CompileError> {
        let mut nodes = Vec::new();
        for (_, route) in children {
            nodes.push(maker.node(route)?);
        }
        nodes.push(maker.default(default, "no route for this key")?);
        let patterns = children
            .iter()
            .map(|(pattern, _)| pattern.as_bytes().to_vec())
            .collect();
        Ok(maker.choose(ByKeyPattern { patterns }, nodes))
    }
}
