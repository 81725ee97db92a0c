//! by_key: one child for some keys, and another one for the rest. Child 0 is for the listed keys.

use std::collections::HashSet;

use super::Random;
use crate::{
    config::{
        routes::{self, Spec},
        schema::Route,
    },
    route::{
        compile::{Build, CompileError, Maker},
        tree::{Children, Choose, NodeId, Query},
    },
};

/// The route `by_key`.
#[derive(Debug)]
pub(in crate::route) struct ByKey {
    /// The keys.
    pub(in crate::route) keys: HashSet<Vec<u8>>,
}

impl Choose for ByKey {
    fn name(&self) -> &'static str {
        routes::ByKey::NAME
    }

    fn choose(&self, query: &Query<'_>, _: &Children<'_>, _: &mut Random) -> usize {
        usize::from(!self.keys.contains(query.key))
    }

    fn why(&self, _: &Query<'_>, _: &Children<'_>, chosen: usize) -> String {
        match chosen {
            0 => "a key of the list".into(),
            _ => "no key of the list".into(),
        }
    }
}

impl<'a> Build<'a, [&'a Route; 2]> for routes::ByKey {
    fn build(
        &'a self,
        [listed, default]: [&'a Route; 2],
        maker: &mut Maker<'_, 'a>,
    ) -> Result<NodeId, CompileError> {
        let children = vec![maker.node(listed)?, maker.node(default)?];
        let keys = self.keys.iter().map(|key| key.as_bytes().to_vec()).collect();
        Ok(maker.choose(ByKey { keys }, children))
    }
}
