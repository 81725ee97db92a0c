//! by_key: one child for some keys, and another one for the rest. Child 0 is for the listed keys.

use std::collections::HashSet;

use super::Random;
use crate::route::tree::{Children, Choose, Query};

/// The route `by_key`.
#[derive(Debug)]
pub(in crate::route) struct ByKey {
    /// The keys.
    pub(in crate::route) keys: HashSet<Vec<u8>>,
}

impl Choose for ByKey {
    fn name(&self) -> &'static str {
        "by_key"
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
