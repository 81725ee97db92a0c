//! Tries the logins anew that clients have brought and servers have accepted, and closes the clients of those that
//! a server rejects since.

use std::{collections::HashMap, io, sync::Arc, time::Duration};

use tokio::{
    sync::Semaphore,
    time::{sleep, timeout},
};

use crate::{
    control::{Proxy, membership::connection::Connection, unix_now},
    event_log::kind,
    members::Member,
    protocol::CachedLogin,
    worker::Order,
};

/// Time between two looks.
const LOOK: Duration = Duration::from_millis(200);
/// Logins of one pool that are tried at a time.
const AT_ONCE: usize = 4;

/// Closes clients for as long as the process lives.
pub(in crate::control) async fn end_logins(proxy: Arc<Proxy>) {
    loop {
        sleep(LOOK).await;
        let ended = proxy.register.logins.take_ended();
        if ended.is_empty() {
            continue;
        }
        let ended: Arc<[u64]> = ended.into();
        tracing::info!(target: kind::CLIENTS,
            logins = ended.len(),
            "servers reject logins that they have accepted: their clients are closed"
        );
        proxy.workers.order(|_| Order::EndLogins(Arc::clone(&ended)));
    }
}

/// Tries logins for as long as the process lives. Servers that do not answer delay the logins of their pool alone.
pub(in crate::control) async fn try_logins(proxy: Arc<Proxy>) {
    let mut permits: HashMap<Option<Arc<str>>, Arc<Semaphore>> = HashMap::new();
    loop {
        sleep(LOOK).await;
        for login in proxy.register.logins.due(unix_now().0) {
            let of_pool = permits.entry(login.pool.clone());
            let of_pool = Arc::clone(of_pool.or_insert_with(|| Arc::new(Semaphore::new(AT_ONCE))));
            let proxy = Arc::clone(&proxy);
            tokio::spawn(async move {
                let Ok(_permit) = of_pool.acquire_owned().await else {
                    return;
                };
                match proxy.try_anew(&login).await {
                    Ok(()) => proxy.register.logins.confirmed(login.number, unix_now().0),
                    Err(error) => {
                        tracing::debug!(%error, "a login was not confirmed");
                        proxy.register.logins.postpone(login.number, unix_now().0);
                    }
                }
            });
        }
    }
}

impl Proxy {
    /// Tries a login at the server that takes writes in the pool that has accepted it. What that server says of
    /// it is noted with the login itself.
    async fn try_anew(&self, login: &CachedLogin) -> io::Result<()> {
        let nobody = || io::Error::new(io::ErrorKind::NotFound, "no server can be asked");
        let pool = login.pool.as_ref().ok_or_else(nobody)?;
        let member = self.writer_of(pool).ok_or_else(nobody)?;
        let logins = &self.register.logins;
        let tried = async {
            let mut connection = Connection::open(&member).await?;
            connection.log_in_as(&login.words, logins).await
        };
        let late = |_| io::Error::from(io::ErrorKind::TimedOut);
        timeout(member.connect_timeout + member.timeout, tried)
            .await
            .map_err(late)??;
        Ok(())
    }

    /// The member of this pool that takes writes; where the pool does not know it, one that can be asked.
    fn writer_of(&self, pool: &str) -> Option<Arc<Member>> {
        let rooms = self.rooms();
        let mut stateful = rooms.configuration.tree().stateful().iter();
        match stateful.find(|stateful| *stateful.pool.name == *pool) {
            Some(stateful) => stateful.primary().cloned(),
            None => {
                let mut members = rooms.membership.members().iter();
                let is_it = |member: &&Arc<Member>| *member.pool.name == *pool && member.is_up();
                members.find(is_it).cloned()
            }
        }
    }
}
