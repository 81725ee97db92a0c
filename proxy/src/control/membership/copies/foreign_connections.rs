//! Connections that the server of a copy has from others than this proxy. Who is connected there can write
//! past the proxies that keep the copies equal.

use std::{sync::Arc, time::Duration};

use tokio::time::sleep;

use super::{copies_of, repairs::open};
use crate::{
    control::Proxy,
    copies::repair::RepairError,
    event_log::kind,
    members::{Member, ServerIdentity},
};

/// Between two looks at the server of a keeper's copy.
const LOOK: Duration = Duration::from_secs(5);
/// The same without a fleet, where each proxy looks at all servers.
const LOOK_ALONE: Duration = Duration::from_secs(15);
/// Between two looks, of which both have to find others.
const AGAIN: Duration = Duration::from_secs(1);

impl Proxy {
    /// Looks again and again whether others are connected to the servers of copies, and says when that begins
    /// and when it ends.
    pub(in crate::control) async fn watch_foreign_connections(self: Arc<Self>) {
        let look = if self.fleet().is_some() { LOOK } else { LOOK_ALONE };
        loop {
            sleep(look).await;
            let copies: Vec<Arc<Member>> = copies_of(&self.rooms().membership.members).cloned().collect();
            let mut found: Vec<ServerIdentity> = Vec::new();
            for member in copies {
                if found.contains(&member.identity) {
                    continue;
                }
                // What cannot be asked has not changed, as far as anybody knows.
                if let Ok(count) = self.foreign_connections_of(&member).await {
                    let mut rooms = self.rooms();
                    let before = rooms
                        .membership
                        .copies
                        .foreign_connections
                        .insert(member.identity.clone(), count);
                    drop(rooms);
                    self.log_foreign_connections(&member, before.unwrap_or_default(), count);
                }
                found.push(member.identity.clone());
            }
            let foreign_connections = &mut self.rooms().membership.copies.foreign_connections;
            foreign_connections.retain(|server, _| found.contains(server));
        }
    }

    fn log_foreign_connections(&self, member: &Member, before: usize, count: usize) {
        let (pool, server) = (&*member.pool.name, &member.address);
        match (before, count) {
            (0, 1..) => {
                let meaning = match self.fleet() {
                    Some(_) => "no peer of the fleet sees what they write there",
                    None => "this proxy does not see what they write there; proxies of one fleet do",
                };
                tracing::warn!(target: kind::FOREIGN,
                    pool,
                    member = server,
                    connections = count,
                    "others are connected to the server of a copy: {meaning}"
                );
            }
            (1.., 0) => tracing::info!(target: kind::FOREIGN,
                pool,
                member = server,
                "nobody else is connected to the server of a copy any more"
            ),
            _ => {}
        }
    }

    /// How many connections the server has that are not this proxy's. Connections of this proxy, too, come
    /// and go while it looks, so that what it finds once only does not count.
    async fn foreign_connections_of(&self, member: &Member) -> Result<usize, RepairError> {
        let mut least = usize::MAX;
        for _ in 0..2 {
            let before = self.lanes_to(&member.identity);
            let listed = open(member).await?.connection_count().await?;
            let own = before.max(self.lanes_to(&member.identity)) + 1;
            least = least.min(listed.saturating_sub(own));
            if least == 0 {
                break;
            }
            sleep(AGAIN).await;
        }
        Ok(least)
    }

    fn lanes_to(&self, server: &ServerIdentity) -> usize {
        let metrics = self.metrics();
        let rooms = self.rooms();
        let same = rooms
            .membership
            .members
            .iter()
            .filter(|member| member.identity == *server);
        let lanes = same.filter_map(|member| metrics.members.get(member.id.0 as usize));
        lanes.map(|member| member.lanes as usize).sum()
    }
}
