//! Routes without a child.

use super::{
    CompileError,
    maker::{Build, Maker},
};
use crate::{
    config::schema,
    route::tree::{Leaf, Node, NodeId},
};

impl<'a> Build<'a, ()> for schema::Leaf {
    fn build(&'a self, (): (), maker: &mut Maker<'_, 'a>) -> Result<NodeId, CompileError> {
        let leaf = match self {
            Self::Pool(name) => return maker.pool(name),
            Self::Member(address) => return maker.single(address),
            Self::Embedded if maker.protocol.embedded().is_none() => {
                return Err(CompileError::NotEmbedded(maker.protocol.name()));
            }
            Self::Embedded => {
                let leaf = maker.push(Node::Leaf(Leaf::Embedded));
                return Ok(maker.bare(leaf));
            }
            Self::Null => Leaf::Null,
            Self::Discard => Leaf::Discard,
            Self::OverLimit => Leaf::OverLimit,
            Self::Error(error) => Leaf::Error(error.clone()),
        };
        Ok(maker.push(Node::Leaf(leaf)))
    }
}
