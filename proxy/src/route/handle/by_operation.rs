//! by_operation: the child of the command, or of the request's class. The table is made when the tree is
//! built.

use proxima_wire::message::Class;

use super::Random;
use crate::{
    config::routes::{self, Spec},
    micros::Micros,
    route::{
        compile::{Build, CompileError, Maker, Named},
        tree::{Children, Choose, Leaf, Node, NodeId, Query},
    },
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
        routes::ByOperation::NAME
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

impl<'a> Build<'a, Named<'a>> for routes::ByOperation {
    fn build(
        &'a self,
        (children, default): Named<'a>,
        maker: &mut Maker<'_, 'a>,
    ) -> Result<NodeId, CompileError> {
        // As in mcrouter, an operation without a route gets the answer of an empty cache.
        let mut nodes = vec![match default {
            Some(route) => maker.node(route)?,
            None => maker.push(Node::Leaf(Leaf::Null)),
        }];
        let mut table = vec![[0; CLASSES]; maker.protocol.commands().len()];
        let mut named = Vec::new();
        for (name, route) in children {
            nodes.push(maker.node(route)?);
            let child = nodes.len() as u16 - 1;
            match (group(name), maker.protocol.command(name)) {
                (Some(class), _) => table
                    .iter_mut()
                    .for_each(|children| children[class as usize] = child),
                // Single commands are set last, so that they win over their group.
                (None, Some(command)) => named.push((command, child)),
                (None, None) => return Err(CompileError::Operation(name.clone())),
            }
        }
        for (command, child) in named {
            if let Some(children) = table.get_mut(usize::from(command)) {
                children.fill(child);
            }
        }
        Ok(maker.choose(ByOperation { table: table.into() }, nodes))
    }
}

/// The class that a word for several commands names; `None`: it is no such word.
fn group(name: &str) -> Option<Class> {
    Some(match name {
        "read" => Class::Read,
        "write" => Class::Write,
        "delete" => Class::Delete,
        "arithmetic" => Class::Arithmetic,
        "touch" => Class::Touch,
        _ => return None,
    })
}
