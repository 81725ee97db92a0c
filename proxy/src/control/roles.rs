//! What members are to pools that have one writer.

use std::{collections::HashMap, sync::Arc};

use super::Proxy;
use crate::{
    members::{Member, MemberId},
    protocol::Standing,
};

impl Proxy {
    /// The members that have a role in their pool, each with it.
    pub fn standings(&self) -> HashMap<MemberId, Standing> {
        let state = self.state();
        let pools = state.tree.stateful().iter();
        let members = pools.flat_map(|pool| pool.members.iter().enumerate());
        let standing = |(position, member): (usize, &Arc<Member>)| {
            let standing = member.pool.state.as_ref()?.standing(&member.answerer(position))?;
            Some((member.id, standing))
        };
        members.filter_map(standing).collect()
    }
}
