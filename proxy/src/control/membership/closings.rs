//! Closes the connections to members where the state of their pool asks for that: to a server that took
//! writes, before another one does.

use std::sync::{Arc, mpsc};

use tokio::task::spawn_blocking;

use crate::{
    control::{Proxy, workers::wait},
    members::{MemberId, Pool},
    upstream::Close,
    worker::Order,
};

/// Closes them for as long as the process lives.
pub(in crate::control) async fn close_connections(proxy: Arc<Proxy>) {
    loop {
        proxy.pool_changed.notified().await;
        while let Some((pool, address, members)) = proxy.next_to_close() {
            let (done, ended) = mpsc::channel();
            for member in members {
                proxy.workers.order(|_| Order::Close {
                    member,
                    when: Close::Now,
                    done: done.clone(),
                });
            }
            drop(done);
            // A thread that cannot be started waits for nothing: workers have the order, and follow it in
            // this turn.
            let _ = spawn_blocking(move || wait(&ended)).await;
            tracing::info!(%pool, server = address, "closed the connections that there were to it");
            if let Some(state) = &pool.state {
                state.closed(&address);
            }
        }
    }
}

impl Proxy {
    /// The first pool whose state waits for that, with the address and the members that have it.
    fn next_to_close(&self) -> Option<(Arc<Pool>, String, Vec<MemberId>)> {
        let rooms = self.rooms();
        rooms.configuration.tree().stateful().iter().find_map(|stateful| {
            let pool = &stateful.pool;
            let address = pool.state.as_ref()?.closing()?;
            let members = stateful.members.iter();
            let found = members.filter(|member| member.address == address);
            let found = found.map(|member| member.id).collect();
            Some((Arc::clone(pool), address, found))
        })
    }
}
