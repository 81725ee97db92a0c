//! Asks the members of pools again and again what the state of their pool wants to know, on connections of
//! the pool's own.

use std::{
    collections::HashMap,
    io,
    sync::{Arc, Weak},
    time::Duration,
};

use proxima_wire::message::{Outcome, Reply};
use tokio::{sync::futures::Notified, task::JoinHandle, time::sleep};

use super::connection::Connection;
use crate::{
    control::Proxy,
    members::{Member, MemberId},
    protocol::{Failed, Monitor, PoolState, ServerAnswer},
};

/// The least time between two questions to a member.
const LEAST: Duration = Duration::from_millis(20);
/// Time between two looks at which members there are.
const LOOK: Duration = Duration::from_millis(200);

/// Monitors the members of all pools whose state wants that, for as long as the process lives.
pub(in crate::control) async fn watch_pools(proxy: Arc<Proxy>) {
    let mut watched: HashMap<(MemberId, u64), (Weak<Member>, JoinHandle<()>)> = HashMap::new();
    loop {
        proxy.tell_members();
        let wanted = proxy.monitored();
        watched.retain(|id, (member, task)| {
            let is_same = |(other, _, question): &(Arc<Member>, usize, Monitor)| {
                (other.id, question.token) == *id && Weak::as_ptr(member) == Arc::as_ptr(other)
            };
            let stays = wanted.iter().any(is_same) && !task.is_finished();
            if !stays {
                task.abort();
            }
            stays
        });
        for (member, position, question) in wanted {
            watched.entry((member.id, question.token)).or_insert_with(|| {
                let (weak, proxy) = (Arc::downgrade(&member), Arc::clone(&proxy));
                let task = tokio::spawn(async move {
                    monitor(&member, position, &question, &|| proxy.now().0).await;
                });
                (weak, task)
            });
        }
        sleep(LOOK).await;
    }
}

impl Proxy {
    /// Tells the states of pools which members the pools have.
    fn tell_members(&self) {
        let rooms = self.rooms();
        for pool in rooms.configuration.tree().stateful() {
            if let Some(state) = &pool.pool.state {
                let has_it = |address: &str| pool.members.iter().any(|member| member.address == address);
                state.has_members(&has_it);
            }
        }
    }

    /// The members that are monitored, with their positions in their pools and what they are asked.
    fn monitored(&self) -> Vec<(Arc<Member>, usize, Monitor)> {
        let rooms = self.rooms();
        let pools = rooms.configuration.tree().stateful().iter();
        let asked = pools.flat_map(|pool| {
            let monitors = pool.pool.state.as_ref().map(|state| state.monitors());
            monitors
                .unwrap_or_default()
                .into_iter()
                .map(move |monitor| (pool, monitor))
        });
        let members = asked.flat_map(|(pool, monitor)| {
            let numbered = pool.members.iter().enumerate();
            numbered.map(move |(position, member)| (Arc::clone(member), position, monitor.clone()))
        });
        members.collect()
    }
}

/// Asks a member until the task is ended. Each answer, and each failure, goes to the state of its pool.
/// `now`: the present time, since 1970, in µs.
pub async fn monitor(member: &Member, position: usize, question: &Monitor, now: &(dyn Fn() -> u64 + Sync)) {
    let Some(state) = &member.pool.state else {
        return;
    };
    loop {
        let mut asked = 0;
        if let Err(error) = ask(member, position, question, &**state, now, &mut asked).await
            && !is_busy(member, asked, &error)
        {
            let what = error.to_string();
            let failed = Failed::at(&member.address, Outcome::ConnectError, &what);
            state.answered(
                question.token,
                &member.answerer(position),
                ServerAnswer::Failed(&failed),
            );
        }
        pause(question, member.noted.doubted()).await;
    }
}

/// Waits until the next question is due, or there is a doubt about what the last one has told. Clients can
/// raise doubts: they have a member asked more often, but not more often than that.
async fn pause(question: &Monitor, doubted: Notified<'_>) {
    sleep(LEAST).await;
    let rest = question.interval.saturating_sub(LEAST);
    tokio::select! {
        () = sleep(rest) => {}
        () = doubted => {}
    }
}

/// Does a member that is late with its answer to this question answer clients meanwhile? Then it has much to
/// do, and is not lost.
fn is_busy(member: &Member, asked: u32, error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::TimedOut && member.health.is_heard(asked)
}

/// Asks on one connection until that breaks. `asked` is the number of the last question.
async fn ask(
    member: &Member,
    position: usize,
    question: &Monitor,
    state: &dyn PoolState,
    now: &(dyn Fn() -> u64 + Sync),
    asked: &mut u32,
) -> io::Result<()> {
    let late = |_| io::Error::from(io::ErrorKind::TimedOut);
    *asked = member.health.listen();
    let opened = async {
        let mut connection = Connection::open(member).await?;
        connection.log_in().await?;
        Ok::<_, io::Error>(connection)
    };
    let limit = member.connect_timeout + member.timeout;
    let mut connection = tokio::time::timeout(limit, opened).await.map_err(late)??;
    let (mut bytes, mut is_first) = (Vec::new(), true);
    loop {
        *asked = member.health.listen();
        let is_new = std::mem::take(&mut is_first);
        // What raises a doubt from now on may not be in the answer.
        let doubted = member.noted.doubted();
        state.asks(question.token, &member.answerer(position), now(), is_new);
        connection.send(&question.message).await?;
        bytes.clear();
        let outcome = connection.receive(question.command, &mut bytes).await?;
        let reply = Reply::new(outcome, bytes.len());
        let heard = ServerAnswer::Reply(&reply, &bytes);
        state.answered(question.token, &member.answerer(position), heard);
        pause(question, doubted).await;
    }
}
