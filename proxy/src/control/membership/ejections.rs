//! Ejections, probes, and fail-open of pools with too many ejected members. Whether a failure ejects a member
//! is decided where workers count it (`members/health/ejection.rs`).

use std::{
    collections::BTreeMap,
    io,
    sync::{Arc, Weak, atomic::Ordering},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use tokio::time::sleep;

use super::probe::{flush, probe};
use crate::{
    config::schema::EjectBy,
    control::{Proxy, Rooms, membership::Membership},
    event_log::kind,
    frontdoor::{EjectedCounts, HealthChange},
    members::{Health, Member},
    random::Random,
};

/// The least time until a flush is tried again that has failed.
const FLUSH_AGAIN: Duration = Duration::from_secs(1);

/// An ejection of a member, for operators.
#[derive(Clone, Debug)]
pub struct Ejection {
    /// When it was ejected.
    pub since: Instant,
    /// The failure that ejected it.
    pub why: String,
    /// The time-out of the member that met the failure.
    pub timeout: Duration,
}

/// Current ejections by health, which all members with the same server share.
#[derive(Debug, Default)]
pub(in crate::control) struct Ejections(Vec<(Weak<Health>, Ejection)>);

impl Ejections {
    fn of(&self, health: &Arc<Health>) -> Option<&Ejection> {
        let mut all = self.0.iter();
        all.find_map(|(known, ejection)| (known.as_ptr() == Arc::as_ptr(health)).then_some(ejection))
    }

    fn begin(&mut self, health: &Arc<Health>, ejection: Ejection) {
        self.end(health);
        self.0.push((Arc::downgrade(health), ejection));
    }

    fn end(&mut self, health: &Arc<Health>) {
        self.0
            .retain(|(known, _)| known.strong_count() > 0 && known.as_ptr() != Arc::as_ptr(health));
    }
}

/// How many servers are not asked. Several members may be the same server.
fn ejected(members: &[Arc<Member>]) -> EjectedCounts {
    let down = members.iter().filter(|member| !member.health.is_up());
    let servers: BTreeMap<*const Health, bool> = down
        .map(|member| (Arc::as_ptr(&member.health), member.health.was_late()))
        .collect();
    let late = servers.values().filter(|was_late| **was_late).count();
    EjectedCounts {
        late,
        lost: servers.len() - late,
    }
}

/// Whether a member that has answered a probe like this is well: it wants a login, the proxy has none of its
/// own, and so its clients have theirs.
fn serves_logins_of_clients(member: &Member, error: &io::Error) -> bool {
    let wants_login = error.kind() == io::ErrorKind::PermissionDenied;
    let has_own = member
        .login
        .as_ref()
        .is_some_and(|login| login.password.is_some());
    wants_login && !has_own && !member.health.was_login()
}

impl Proxy {
    /// Notes that a worker has ejected this member, and starts the probes that end that. `random` spreads
    /// them.
    pub(in crate::control) fn ejected_by_worker(
        self: &Arc<Self>,
        member: Arc<Member>,
        reason: String,
        random: Random,
    ) {
        let (pool, address) = (&member.pool, &member.address);
        tracing::warn!(target: kind::EJECTED, %pool, member = %member.name, %address, %reason, "ejected");
        {
            let rooms = &mut *self.rooms();
            let (since, timeout) = (Instant::now(), member.timeout);
            let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            member.health.set_ejected_at(unix.as_micros() as u64);
            rooms.membership.ejections.begin(
                &member.health,
                Ejection {
                    since,
                    why: reason,
                    timeout,
                },
            );
            let was_late = member.health.was_late();
            self.source.say(
                &member.address,
                HealthChange::Ejected { was_late },
                ejected(&rooms.membership.members),
            );
            self.recount(rooms);
            let pool = rooms.configuration.config().pools.get(&*member.pool.name);
            if let Some(question) = pool.and_then(|pool| pool.source.question()) {
                self.names.lost_member(&question);
            }
        }
        tokio::spawn(Arc::clone(self).revive(member, random));
    }

    /// Probes a member until it answers. The pause grows with each failure and has jitter, so that proxies do
    /// not probe in step.
    async fn revive(self: Arc<Self>, mut member: Arc<Member>, mut random: Random) {
        let eject = *member.health.eject();
        if eject.by == EjectBy::LostConnections {
            sleep(eject.probe_initial).await;
            while self.is_flushed(&member)
                && let Err(error) = flush(&member).await
            {
                tracing::warn!(pool = %member.pool, member = %member.name, %error, "not flushed");
                sleep(eject.probe_initial.max(FLUSH_AGAIN)).await;
            }
            return self.returned(&mut self.rooms(), &member, "its time is over");
        }
        let mut pause = eject.probe_initial;
        loop {
            let jitter = 0.75 + random.fraction() / 2.0;
            sleep(pause.mul_f64(jitter).max(Duration::from_millis(1))).await;
            if member.health.is_up() {
                return;
            }
            match probe(&member).await {
                Ok(()) => return self.revived(&mut self.rooms(), &member),
                Err(error) if serves_logins_of_clients(&member, &error) => {
                    return self.revived(&mut self.rooms(), &member);
                }
                Err(error) => {
                    tracing::debug!(member = %member.name, %error, "probe failed");
                    pause = (pause * 2).min(eject.probe_max);
                }
            }
            let is_it = |known: &&Arc<Member>| Arc::ptr_eq(&known.health, &member.health);
            let known = self.rooms().membership.members.iter().find(is_it).cloned();
            match known {
                // Its login may be another one since.
                Some(known) => member = known,
                None => return,
            }
        }
    }

    /// Whether a member is flushed before it is asked again.
    fn is_flushed(&self, member: &Arc<Member>) -> bool {
        let rooms = self.rooms();
        let pool = rooms.configuration.config().pools.get(&*member.pool.name);
        let is_member = |known: &Arc<Member>| Arc::ptr_eq(&known.health, &member.health);
        pool.is_some_and(|pool| pool.eject.flush_on_return) && rooms.membership.members.iter().any(is_member)
    }

    /// Records that a member has answered a probe.
    pub(in crate::control) fn revived(&self, rooms: &mut Rooms, member: &Member) {
        self.returned(rooms, member, "it has answered a probe");
    }

    /// Makes an ejected member one that is asked.
    fn returned(&self, rooms: &mut Rooms, member: &Member, reason: &str) {
        if member.health.revived() {
            rooms.membership.ejections.end(&member.health);
            tracing::info!(target: kind::RETURNED, pool = %member.pool, member = %member.name, address = %member.address, reason, "up again");
            self.source.say(
                &member.address,
                HealthChange::Returned,
                ejected(&rooms.membership.members),
            );
            self.recount(rooms);
        }
    }

    /// Servers are no longer among the members, or only with other time-outs: their ejections are forgotten
    /// where that is wanted. `before` are the members until now.
    pub(in crate::control) fn follow_ejections(&self, rooms: &mut Rooms, before: &[Arc<Member>]) {
        let Membership {
            members, ejections, ..
        } = &mut rooms.membership;
        let mut seen: Vec<*const Health> = Vec::new();
        for member in before.iter().filter(|member| !member.health.is_up()) {
            let health = Arc::as_ptr(&member.health);
            if seen.contains(&health) {
                continue;
            }
            seen.push(health);
            let found = ejections.of(&member.health).map(|found| found.timeout);
            let same = |known: &&Arc<Member>| Arc::ptr_eq(&known.health, &member.health);
            let mut left = members.iter().filter(same).peekable();
            let is_named = left.peek().is_some();
            let is_same = left.any(|known| found.is_none_or(|timeout| known.timeout == timeout));
            if is_named && (is_same || !self.source.forgets_ejections()) {
                continue;
            }
            if is_named {
                member.health.revived();
            }
            ejections.end(&member.health);
            self.source
                .say(&member.address, HealthChange::Forgotten, ejected(members));
        }
        self.recount(rooms);
    }

    /// How many servers are not asked.
    pub fn ejected(&self) -> EjectedCounts {
        ejected(&self.rooms().membership.members)
    }

    /// Switches fail-open on or off for each pool. When more than its share of a pool is ejected, the network
    /// is more likely at fault than the servers: members that are only suspected are then asked again.
    fn recount(&self, rooms: &Rooms) {
        let members = || {
            let Membership {
                members, departed, ..
            } = &rooms.membership;
            members.iter().filter(|member| !departed.contains(member))
        };
        let mut pools: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        for member in members() {
            let (ejected, all) = pools.entry(&member.pool.name).or_default();
            *ejected += usize::from(!member.health.is_up());
            *all += 1;
        }
        for member in members() {
            let limit = rooms
                .configuration
                .config()
                .pools
                .get(&*member.pool.name)
                .map_or(1.0, |pool| pool.eject.fail_open_above);
            let (ejected, all) = pools.get(&*member.pool.name).copied().unwrap_or((0, 1));
            let open = ejected as f64 > limit * all as f64;
            if member.pool.fail_open.swap(open, Ordering::Relaxed) != open {
                tracing::warn!(target: kind::FAIL_OPEN, pool = %member.pool, ejected, all, open, "fail-open");
            }
        }
    }
}

impl Membership {
    /// The time and the reason of this member's ejection. `None`: it may be asked, or never was.
    pub(in crate::control) fn ejection(&self, member: &Member) -> Option<Ejection> {
        let ejection = self.ejections.of(&member.health).cloned();
        ejection.filter(|_| !member.health.is_up())
    }
}
