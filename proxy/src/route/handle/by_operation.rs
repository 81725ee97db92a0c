//! by_operation: the child of the command, or of the request's class. The table is made when the tree is
//! built.

use proxima_wire::message::Class;

use super::Random;
use crate::{
    micros::Micros,
    route::tree::{Children, Choose, Query},
};

/// The route `by_operation`.
#[derive(Debug)]
pub(in crate::route) struct ByOperation {
    /// The child by command number and class. Both are needed, because an `mg` may read, write or touch.
    pub(in crate::route) table: Box<[[u16; CLASSES]]>,
}

/// The number of classes.
pub(in crate::route) const CLASSES: usize = Class::Session as usize + 1;

impl Choose for ByOperation {
    fn name(&self) -> &'static str {
        "by_operation"
    }

    #[inline]
    fn choose(&self, query: &Query<'_>, _: &Children<'_>, _: &mut Random) -> usize {
        // Numbers beyond the last one are of requests like it.
        let children = self.table.get(usize::from(query.command)).or(self.table.last());
        children.map_or(0, |children| usize::from(children[query.class as usize]))
    }

    fn looks_at_key(&self, _: Micros) -> bool {
        false
    }

    fn why(&self, query: &Query<'_>, _: &Children<'_>, _: usize) -> String {
        let name = query.protocol.command_name(query.command);
        format!("operation {name} ({:?})", query.class).to_lowercase()
    }
}
