//! host_id: a fixed child for each host.

use super::Random;
use crate::{
    micros::Micros,
    route::tree::{Children, Choose, Query},
};

/// The route `host_id`.
#[derive(Debug)]
pub(in crate::route) struct HostId {
    /// A number that stays the same on this host.
    pub(in crate::route) id: u64,
}

impl Choose for HostId {
    fn name(&self) -> &'static str {
        "host_id"
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
