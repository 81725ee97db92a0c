//! What the admin port reads: all rooms, under one lock.

use std::{collections::BTreeMap, net::IpAddr, sync::Arc, time::SystemTime};

use super::{
    Agent, AnnouncementStatus, CopyCounters, Ejection, LookupCounts, PoolState, Proxy, Reloads, Rooms,
    membership, unix_now,
};
use crate::{
    config::schema::Question,
    copies::{CopyState, CopyStatus},
    members::{Distance, DistanceSource, Localities, Member},
    protocol::RoleStatus,
    route::Asker,
    spool::Spool,
};

/// The state of the control thread. All rooms were read under one lock, so that their parts agree; the counts
/// of DNS and the health of members go on. While a reload waits for the workers, `version`, `changed` and
/// `listeners` are still those before it.
pub struct View {
    /// The version of the running configuration, the same on every proxy that has the same text.
    pub version: String,
    /// How the configuration was changed since the start.
    pub reloads: Reloads,
    /// When the running configuration took effect.
    pub changed: SystemTime,
    /// When a configuration was last read, whatever became of it.
    pub attempted: SystemTime,
    /// The bound address of each listener, by number. `None`: the listener is closed.
    pub listeners: Vec<Option<String>>,
    /// The protocol of each listener, by number.
    pub protocols: Vec<&'static str>,
    /// What clients are told by the listeners that tell of proxies.
    pub announcements: Vec<AnnouncementStatus>,
    /// All members of the running configuration, departed copies included.
    pub members: Vec<MemberView>,
    /// The members of each pool, counted for readiness.
    pub pools: Vec<PoolState>,
    /// How often the state file could not be written.
    pub state_file_failures: u64,
    /// Connections that others than this proxy have to the servers of copies.
    pub foreign_connections: usize,
    /// Where failed deletes are kept. `None`: nowhere.
    pub spool: Option<Arc<Spool>>,
    /// The state of the node agent. `None`: the configuration names none.
    pub agent: Option<Agent>,
    /// The DNS look-ups of each pool: pool, name, and counts.
    pub lookups: Vec<(String, String, LookupCounts)>,
    /// The questions to configuration endpoints of each pool: pool, endpoint, and counts.
    pub endpoints: Vec<(String, String, LookupCounts)>,
    /// The Services that are followed, of each pool: pool, Service, and counts.
    pub services: Vec<(String, String, LookupCounts)>,
    localities: Option<Arc<Localities>>,
    /// The pools that routes of listeners name, each with the number of the first listener.
    entered_by: BTreeMap<String, usize>,
}

/// A member with what the control thread knows of it.
pub struct MemberView {
    /// The member.
    pub member: Arc<Member>,
    /// Since when and why it is ejected. `None`: it may be asked, or never was.
    pub ejection: Option<Ejection>,
    /// Why its address is unknown. `None`: it is known.
    pub unresolved: Option<String>,
    /// What it serves in a pool with one writer.
    pub role: Option<RoleStatus>,
    /// Its state as a copy. `None`: its pool is not replicated.
    pub copy: Option<CopyView>,
}

/// A copy with what the control thread knows of it.
pub struct CopyView {
    /// `None`: the copy is current.
    pub status: Option<CopyStatus>,
    /// What happened to it.
    pub counters: CopyCounters,
    /// Its state, or `departed` if it has left the list of servers.
    pub state: &'static str,
}

impl Proxy {
    /// The rooms as of now.
    pub fn view(&self) -> View {
        let rooms = &*self.rooms();
        let Rooms {
            configuration,
            listening,
            membership,
            surroundings,
        } = rooms;
        let config = configuration.config();
        let (changed, attempted) = configuration.times();
        let (agent, localities) = surroundings.agent();
        View {
            version: configuration.version().to_owned(),
            reloads: configuration.reloads().clone(),
            changed,
            attempted,
            listeners: listening.bound().to_vec(),
            protocols: configuration.tree().protocols(),
            announcements: listening.announced_by(&config.listeners),
            members: self.member_views(rooms),
            pools: self.pools_of(rooms),
            state_file_failures: membership.copies().state_file_failures(),
            foreign_connections: membership.copies().foreign_connections(),
            spool: configuration.tree().spool().cloned(),
            agent: config.nodes.is_some().then_some(agent),
            lookups: self.names.lookups(config, configuration.servers()),
            endpoints: self
                .names
                .counts(config, |question| matches!(question, Question::Endpoint(_))),
            services: self
                .names
                .counts(config, |question| matches!(question, Question::Service(_))),
            localities,
            entered_by: listening.entered_by(&config.listeners),
        }
    }

    fn member_views(&self, rooms: &Rooms) -> Vec<MemberView> {
        let membership = &rooms.membership;
        let mut roles = membership::roles::roles(rooms.configuration.tree());
        let copy = |member: &Member| CopyView {
            status: membership.copies().status(member),
            counters: membership.copies().counters(member),
            state: match membership.departed().contains(member) {
                true => CopyView::DEPARTED,
                false => membership.copies().state(member).name(),
            },
        };
        let view = |member: &Arc<Member>| MemberView {
            ejection: membership.ejection(member),
            unresolved: self.names.unresolved(member),
            role: roles.remove(&member.id),
            copy: member.is_copy().then(|| copy(member)),
            member: Arc::clone(member),
        };
        membership.members().iter().map(view).collect()
    }
}

impl View {
    /// The copies of replicated pools.
    pub fn copies(&self) -> impl Iterator<Item = (&Member, &CopyView)> {
        let members = self.members.iter();
        members.filter_map(|view| Some((&*view.member, view.copy.as_ref()?)))
    }

    /// The number of copies in each state, by pool. Copies that have left the lists of servers count as
    /// `departed`.
    pub fn copy_states(&self) -> BTreeMap<&str, BTreeMap<&'static str, usize>> {
        let none = || {
            let names = CopyState::ALL.iter().map(|state| state.name());
            names.chain([CopyView::DEPARTED]).map(|name| (name, 0)).collect()
        };
        let mut pools: BTreeMap<&str, BTreeMap<&'static str, usize>> = BTreeMap::new();
        for (member, copy) in self.copies() {
            let counts = pools.entry(&member.pool.name).or_insert_with(none);
            *counts.entry(copy.state).or_default() += 1;
        }
        pools
    }

    /// The number of the first listener whose route names this pool. `None`: no listener does.
    pub fn listener_of(&self, pool: &str) -> Option<usize> {
        self.entered_by.get(pool).copied()
    }

    /// The distance of a member from a client at this address, and its source. `None`: a client of which
    /// nothing is known.
    pub fn distance(&self, member: &Member, from: Option<IpAddr>) -> (Distance, DistanceSource) {
        Asker::at(self.localities(), from, unix_now()).distance(member)
    }

    /// The NUMA nodes of a member. `None`: the node agent does not know it.
    pub fn numa_nodes(&self, member: &Member) -> Option<Vec<u16>> {
        let localities = self.localities()?;
        Some(localities.nodes_of(localities.of_member(member)?))
    }

    /// Where processes run, as far as the node agent has told it.
    pub fn localities(&self) -> Option<&Localities> {
        self.localities.as_deref()
    }
}

impl CopyView {
    /// The state of a copy that has left the list of servers and may return.
    const DEPARTED: &str = "departed";
}
