//! by_operation: by the command. Resolved to a table of command numbers when the tree is built.

use super::Random;
use crate::route::tree::{Children, Choose, Query};

#[derive(Debug)]
pub(in crate::route) struct ByOperation {
    /// Child by command number.
    pub(in crate::route) table: Box<[u16; 256]>,
}

impl Choose for ByOperation {
    fn name(&self) -> &'static str {
        "by_operation"
    }

    #[inline]
    fn choose(&self, query: &Query<'_>, _: &Children<'_>, _: &mut Random) -> usize {
        usize::from(self.table[usize::from(query.command)])
    }

    fn why(&self, query: &Query<'_>, _: &Children<'_>, _: usize) -> String {
        format!("operation {}", query.dialect.command_name(query.command))
    }
}
