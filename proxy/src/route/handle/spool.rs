//! spool: deletes that the members below have not taken are kept, under the name of a pool. Nothing of it is
//! left in the tree: the members below know the name.

use crate::{
    config::{routes, schema::Route},
    route::{
        compile::{Build, CompileError, Maker},
        tree::NodeId,
    },
};

impl<'a> Build<'a, &'a Route> for routes::Spool {
    fn build(&'a self, child: &'a Route, maker: &mut Maker<'_, 'a>) -> Result<NodeId, CompileError> {
        let outer = maker.spools.replace(self.name.as_str().into());
        let node = maker.node(child);
        maker.spools = outer;
        node
    }
}
