//! Closes the connections to members where the state of their pool asks for that: to a server that took
//! writes, before another one does.

use std::{
    sync::{
        Arc,
        mpsc::{self, Receiver, TryRecvError},
    },
    time::Duration,
};

use tokio::{task::spawn_blocking, time::sleep};

use crate::{
    control::{Proxy, workers::wait},
    members::Pool,
    upstream::{Close, Closed},
    worker::Order,
};

/// Time between two looks whether a member is empty.
const LOOK: Duration = Duration::from_millis(1);

/// Closes them for as long as the process lives.
pub(in crate::control) async fn close_connections(proxy: Arc<Proxy>) {
    loop {
        proxy.pool_changed.notified().await;
        while let Some((pool, address)) = proxy.next_to_close() {
            let ended = proxy.close_all(&pool, &address, Close::Now);
            // A thread that cannot be started waits for nothing: workers have the order, and follow it in
            // this turn.
            let _ = spawn_blocking(move || wait(&ended)).await;
            tracing::info!(%pool, server = address, "closed the connections that there were to it");
            if let Some(state) = &pool.state {
                state.closed(&address);
            }
        }
        while let Some((pool, address, number)) = proxy.next_to_empty() {
            let ended = proxy.close_all(&pool, &address, Close::ForGood);
            tokio::spawn(told_when_empty(pool, address, number, ended));
        }
    }
}

/// Tells the state when all workers have said that nothing is left, unless it does not wait for that any
/// more.
async fn told_when_empty(pool: Arc<Pool>, address: String, number: u64, ended: Receiver<()>) {
    let Some(state) = &pool.state else { return };
    loop {
        match ended.try_recv() {
            Ok(()) => {}
            Err(_) if !state.is_emptying(number) => return,
            Err(TryRecvError::Empty) => sleep(LOOK).await,
            Err(TryRecvError::Disconnected) => break,
        }
    }
    tracing::info!(pool = %pool, server = address, "nothing is under way there any more");
    state.emptied(number);
}

impl Proxy {
    /// The first pool whose state waits for that, with the address.
    fn next_to_close(&self) -> Option<(Arc<Pool>, String)> {
        let rooms = self.rooms();
        rooms.configuration.tree().stateful().iter().find_map(|stateful| {
            let address = stateful.pool.state.as_ref()?.closing()?;
            Some((Arc::clone(&stateful.pool), address))
        })
    }

    /// The same for one that is to be emptied, with the number of the move.
    fn next_to_empty(&self) -> Option<(Arc<Pool>, String, u64)> {
        let rooms = self.rooms();
        rooms.configuration.tree().stateful().iter().find_map(|stateful| {
            let (address, number) = stateful.pool.state.as_ref()?.emptying()?;
            Some((Arc::clone(&stateful.pool), address, number))
        })
    }

    /// Has all workers close what the pool has to this address. The channel tells when that has happened. By
    /// address, as a member that has another name since a reload keeps what is under way.
    fn close_all(&self, pool: &Pool, address: &str, when: Close) -> Receiver<()> {
        let (done, ended) = mpsc::channel();
        self.workers.order(|_| Order::Close {
            closed: Closed::Address(pool.id, address.to_owned()),
            when,
            done: done.clone(),
        });
        ended
    }
}
