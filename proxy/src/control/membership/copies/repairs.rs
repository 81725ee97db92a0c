//! Looks at copies that are out until they answer, and repairs what they missed.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::{Duration, Instant},
};

use proxima_wire::message::Outcome;
use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};

use super::{Copies, copies_of};
use crate::{
    config::schema::Rejoin,
    control::{
        Proxy,
        membership::{connection::Connection, probe::probe},
    },
    copies::{
        RepairTask,
        repair::{Connections, Exchange, RepairClient, RepairError, RepairReport},
    },
    event_log::kind,
    members::Member,
    protocol::{Incarnation, Unfit},
    random::Random,
};

/// The first pause between two looks at a copy that is out; doubled up to the pool's longest.
const FIRST_LOOK: Duration = Duration::from_millis(50);
/// The longest pause between two looks: a copy that comes back is read again soon after.
const LONGEST_LOOK: Duration = Duration::from_secs(1);
/// A copy that failed again and again waits this long times two to the number of failures, up to the longest
/// pause.
const SETBACK: Duration = Duration::from_millis(250);
const LONGEST_SETBACK: Duration = Duration::from_secs(30);
/// How long the start waits for servers to say which connections a process before this one has left there.
const START_TIMEOUT: Duration = Duration::from_secs(1);
/// Between two looks at these connections.
const LOOK_AT_CONNECTIONS: Duration = Duration::from_millis(20);

impl Exchange for Connection<'_> {
    fn local(&self) -> Option<SocketAddr> {
        self.local()
    }

    async fn send(&mut self, requests: &[u8]) -> Result<(), RepairError> {
        Ok(self.send(requests).await?)
    }

    async fn receive(&mut self, command: u16, reply: &mut Vec<u8>) -> Result<Outcome, RepairError> {
        Ok(self.receive(command, reply).await?)
    }
}

/// Connects to a copy's server, and logs in if its protocol demands that.
pub(super) async fn open(member: &Member) -> Result<RepairClient<Connection<'_>>, RepairError> {
    let no_copy = || Unfit::Limited("values of its protocol have no copies".to_owned());
    let copied = member.copied.ok_or_else(no_copy)?;
    let mut connection = Connection::open(member).await?;
    if copied.needs_login() {
        let late = |_| io::Error::new(io::ErrorKind::TimedOut, "it does not answer in time");
        let login = timeout(member.timeout, connection.log_in()).await;
        if let Some(limited) = login.map_err(late)?? {
            return Err(Unfit::Limited(limited).into());
        }
    }
    Ok(RepairClient::new(connection, member.protocol, copied))
}

/// Asks which life of its server a copy is in, and which address of ours it sees.
pub(super) async fn meet(member: &Member) -> Result<(Incarnation, Option<IpAddr>), RepairError> {
    let mut client = open(member).await?;
    let introduction = client.introduction().await?;
    Ok((introduction.life, client.from()))
}

/// Asks which connections a copy's server has from us, again and again until there are none, or until `end`:
/// then those of the first time that are left.
async fn connections_until(
    member: &Member,
    before: Option<IpAddr>,
    end: Instant,
) -> Result<Connections, RepairError> {
    let mut connections = open(member).await?.connections(before).await?;
    while let Some(first) = connections.ends.as_ref().filter(|ends| !ends.is_empty())
        && Instant::now() < end
    {
        sleep(LOOK_AT_CONNECTIONS).await;
        let Connections { ends: Some(now), .. } = open(member).await?.connections(before).await? else {
            break;
        };
        connections.ends = Some(first & &now);
    }
    Ok(connections)
}

impl Copies {
    /// After an unclean end, before any client is served: looks which copies have connections left of the
    /// process before this one. Most have none, and are read from the start on.
    pub(in crate::control) async fn look_for_orphans(&mut self, members: &[Arc<Member>]) {
        let ledger = &mut self.ledger;
        let Some(known) = ledger.saving.known().filter(|known| !known.clean) else {
            return;
        };
        let end = Instant::now() + START_TIMEOUT;
        let mut looks = JoinSet::new();
        for member in copies_of(members).filter(|member| member.socket.is_some()) {
            let (member, server) = (Arc::clone(member), member.identity.clone());
            let then = known.of(&server).and_then(|record| record.from);
            looks.spawn(async move {
                let connections = timeout(START_TIMEOUT, connections_until(&member, then, end)).await;
                Some((server, then, connections.ok()?.ok()?))
            });
        }
        while let Some(look) = looks.join_next().await {
            if let Ok(Some((server, then, connections))) = look {
                ledger.orphans.expect(&server);
                let from = connections.from.map(|from| (server.clone(), from));
                ledger.from.extend(from);
                ledger.orphans.listed(&server, connections, then, Instant::now());
            }
        }
    }

    /// This copy's server was met in this life, and sees us at this address.
    pub(super) fn met(&mut self, member: &Member, life: Incarnation, from: Option<IpAddr>) {
        let server = member.identity.clone();
        self.agreement.met(&server, life);
        self.ledger.from.extend(from.map(|from| (server, from)));
    }
}

impl Proxy {
    /// Proves that our old connections to this copy are gone, and repairs what it missed.
    pub(super) async fn repair(self: Arc<Self>, member: Arc<Member>, task: RepairTask, rejoin: Rejoin) {
        let server = &task.server;
        let result = self.try_repair(&member, &task, rejoin).await;
        if let Ok(RepairReport { life, .. }) = &result {
            self.save_repaired(server, *life).await;
        }
        let rooms = &mut *self.rooms();
        let Copies {
            agreement, ledger, ..
        } = &mut rooms.membership.copies;
        ledger.repaired.remove(server);
        ledger.count_repair(server, &result);
        let acts = agreement.repaired(server, task.epoch, result, Instant::now());
        self.execute(rooms, acts);
    }

    async fn try_repair(
        &self,
        member: &Member,
        task: &RepairTask,
        rejoin: Rejoin,
    ) -> Result<RepairReport, RepairError> {
        let known = match task.known {
            Some(known) => known,
            // Once it was met, a restart can be told.
            None => {
                let (life, from) = meet(member).await?;
                self.rooms().membership.copies.met(member, life, from);
                life
            }
        };
        open(member).await?.repair(&task.missed, rejoin, known).await
    }

    /// Looks at a copy that is out, until it answers and may rejoin.
    pub(super) async fn watch(self: Arc<Self>, member: Arc<Member>, epoch: u64, setbacks: u32) {
        let server = member.identity.clone();
        let mut random = Random(epoch ^ u64::from(std::process::id()) << 32);
        if setbacks > 0 {
            sleep((SETBACK * 2u32.saturating_pow(setbacks.min(16))).min(LONGEST_SETBACK)).await;
        }
        let mut pause = FIRST_LOOK;
        loop {
            let is_held = self.rooms().membership.copies.is_held;
            let answers = !is_held && probe(&member).await.is_ok() && self.has_no_orphans(&member).await;
            {
                let rooms = &mut *self.rooms();
                if !rooms.membership.copies.agreement.is_watched(&server, epoch) {
                    return;
                }
                if answers {
                    self.revived(rooms, &member);
                }
                let acts = rooms
                    .membership
                    .copies
                    .agreement
                    .reachable(&server, epoch, answers);
                if !acts.is_empty() {
                    return self.execute(rooms, acts);
                }
            }
            sleep(pause.mul_f64(0.75 + random.fraction() / 2.0)).await;
            // A proxy that joins its fleet reads its copy at once.
            if !is_held {
                pause = (pause * 2).min(LONGEST_LOOK);
            }
        }
    }

    /// Can nothing more come to this copy by connections of the process before this one? The server is asked
    /// before any worker connects. A server that does not answer counts as one to which something may come.
    async fn has_no_orphans(&self, member: &Member) -> bool {
        let server = member.identity.clone();
        let (is_first, then) = {
            let ledger = &self.rooms().membership.copies.ledger;
            if !ledger.orphans.threaten(&server) {
                return true;
            }
            let then = ledger.from.get(&server).copied();
            (ledger.orphans.is_unlisted(&server), then)
        };
        let connections = async { open(member).await?.connections(then).await };
        let Ok(connections) = connections.await else {
            return false;
        };
        let Copies {
            agreement, ledger, ..
        } = &mut self.rooms().membership.copies;
        let from = connections.from.map(|from| (server.clone(), from));
        ledger.from.extend(from);
        let waits = ledger.orphans.listed(&server, connections, then, Instant::now());
        let Some((connections, most)) = waits else {
            return true;
        };
        let (pool, name, seconds) = (&member.pool, &member.name, most.as_secs());
        let why = match connections {
            Some(1) => "1 connection".to_owned(),
            Some(connections) => format!("{connections} connections"),
            None => "connections that it cannot list".to_owned(),
        };
        let why = format!("what a process before this one has left may still come by {why}");
        if is_first {
            tracing::info!(target: kind::COPY, %pool, member = %name, "copy is not read for up to {seconds} s: {why}");
        }
        agreement.held_up(&server, format!("{why}, for up to {seconds} s"));
        false
    }
}
