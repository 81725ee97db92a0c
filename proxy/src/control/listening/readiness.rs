//! Whether clients may be sent here, as load balancers and operators are told.

use std::collections::BTreeMap;

use crate::{
    control::{Proxy, Rooms},
    copies::CopyState,
};

/// The members of a pool, counted for readiness.
pub struct PoolState {
    /// The pool's name in the configuration.
    pub name: String,
    /// Members that may be asked.
    pub up: usize,
    /// Members in all.
    pub members: usize,
}

impl PoolState {
    fn empty(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            up: 0,
            members: 0,
        }
    }
}

/// Why clients are not to be sent here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unready {
    /// The proxy drains, or has not opened its listeners again since.
    #[error("draining: {0}")]
    Drains(String),
    /// The proxy has no lease of its fleet.
    #[error("fleet: {0}")]
    Fleet(String),
    /// There are as many clients as the limit on open files has room for.
    #[error("no room for more clients: the limit on open files is reached")]
    Full,
    /// A pool has too few members.
    #[error("pool {pool}: {up} of {members} members up, at least {least} wanted")]
    Pool {
        /// The pool's name.
        pool: String,
        /// Members that may be asked.
        up: usize,
        /// Members in all.
        members: usize,
        /// Members that must be up.
        least: usize,
    },
}

impl Proxy {
    /// Why clients are not to be sent here whatever the pools are like. `None`: only pools may speak against
    /// it.
    pub fn unready(&self) -> Option<Unready> {
        let fleet = || self.fleet().and_then(|fleet| fleet.unready());
        self.draining()
            .map(Unready::Drains)
            .or_else(|| fleet().map(Unready::Fleet))
            .or_else(|| (!self.register.has_room()).then_some(Unready::Full))
    }

    /// Checks that each of these pools has at least so many members up. Without any, each pool must have one.
    ///
    /// # Errors
    /// Clients are not to be sent here, for this reason.
    pub fn check_pools(pools: &[PoolState], least: &BTreeMap<String, u32>) -> Result<(), Unready> {
        let short = pools.iter().find_map(|pool| {
            let least = match least.is_empty() {
                true => 1,
                false => *least.get(&pool.name)? as usize,
            };
            (pool.up < least).then(|| Unready::Pool {
                pool: pool.name.clone(),
                up: pool.up,
                members: pool.members,
                least,
            })
        });
        short.map_or(Ok(()), Err)
    }

    /// The number of usable members of each pool. A pool that still waits for its first list of
    /// servers has none.
    pub fn pools(&self) -> Vec<PoolState> {
        self.pools_of(&self.rooms())
    }

    /// The same of these rooms.
    pub(in crate::control) fn pools_of(&self, rooms: &Rooms) -> Vec<PoolState> {
        let (configuration, membership) = (&rooms.configuration, &rooms.membership);
        let waiting = configuration.config().pools.iter().filter(|(name, pool)| {
            pool.source.may_be_empty() && configuration.servers().get(*name).is_none_or(Vec::is_empty)
        });
        let mut pools: Vec<PoolState> = waiting.map(|(name, _)| PoolState::empty(name)).collect();
        let members = membership.members().iter();
        for member in members.filter(|member| !membership.departed().contains(member)) {
            let at = match pools.iter().position(|pool| pool.name == *member.pool.name) {
                Some(at) => at,
                None => {
                    pools.push(PoolState::empty(&member.pool.name));
                    pools.len() - 1
                }
            };
            pools[at].members += 1;
            let current = membership.copies().state(member) == CopyState::Current;
            pools[at].up += usize::from(member.is_up() && current);
        }
        if let Some((fleet, _)) = &self.fleet {
            let is_of_fleet = |name: &str| {
                let pool = configuration.config().pools.get(name);
                pool.is_some_and(|pool| pool.source.own().is_some())
            };
            for pool in pools.iter_mut().filter(|pool| is_of_fleet(&pool.name)) {
                let (others, read) = fleet.copies_at_others(&pool.name);
                pool.members += others;
                pool.up += read;
            }
        }
        pools
    }
}
