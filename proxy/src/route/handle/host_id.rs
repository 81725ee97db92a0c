//! host_id: a fixed child for each host.

use super::Random;
use crate::{
    config::routes::{self, Spec},
    micros::Micros,
    route::{
        compile::{Build, CompileError, Maker},
        tree::{Children, Choose, NodeId, Query},
    },
};

/// The route `host_id`.
#[derive(Debug)]
pub(in crate::route) struct HostId {
    /// A number that stays the same on this host.
    pub(in crate::route) id: u64,
}

impl Choose for HostId {
    fn name(&self) -> &'static str {
        routes::HostId::NAME
    }

    fn choose(&self, _: &Query<'_>, children: &Children<'_>, _: &mut Random) -> usize {
        (self.id % children.len().max(1) as u64) as usize
    }

    fn looks_at_key(&self, _: Micros) -> bool {
        false
    }

    fn why(&self, _: &Query<'_>, children: &Children<'_>, _: usize) -> String {
        format!("host id {} mod {}", self.id, children.len())
    }
}

impl<'a> Build<'a, &'a routes::Children> for routes::HostId {
    fn build(
        &'a self,
        children: &'a routes::Children,
        maker: &mut Maker<'_, 'a>,
    ) -> Result<NodeId, CompileError> {
        let nodes = maker.children(children)?;
        let id = maker.host_number(&self.salt);
        Ok(maker.one_of(HostId { id }, nodes))
    }
}
