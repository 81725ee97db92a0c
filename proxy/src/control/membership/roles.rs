//! What members are to pools that have one writer.

use std::{collections::HashMap, sync::Arc};

use crate::{
    members::{Member, MemberId},
    protocol::RoleStatus,
    route::Tree,
};

/// The members that have a role in their pool, each with it.
pub(in crate::control) fn roles(tree: &Tree) -> HashMap<MemberId, RoleStatus> {
    let pools = tree.stateful().iter();
    let members = pools.flat_map(|pool| pool.members.iter().enumerate());
    let status = |(position, member): (usize, &Arc<Member>)| {
        let status = member.pool.state.as_ref()?.role(&member.answerer(position))?;
        Some((member.id, status))
    };
    members.filter_map(status).collect()
}
