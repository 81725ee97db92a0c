//! Every member that any snapshot names. What makes it that member is where it is and what it is called: when its settings
//! change, it keeps its number, its lanes, and what a copy owes.
#![allow(
    clippy::disallowed_methods,
    reason = "where members are made, off the workers"
)]

use std::{
    collections::{HashMap, HashSet},
    net::{IpAddr, SocketAddr, ToSocketAddrs},
    sync::{Arc, atomic::AtomicBool},
};

use proxima_wire::hash::ketama_name;
use socket2::SockAddr;

use super::{Eject, Health, Here, Member, MemberId};
use crate::{
    config::schema::{Pool, Server},
    dialect::Dialect,
};

/// The members of this process. Kept by the control thread.
#[derive(Debug)]
pub struct Registry {
    here: Here,
    /// By identity and settings.
    members: HashMap<(Identity, String), Arc<Member>>,
    known: HashMap<Identity, Known>,
    health: HashMap<String, Arc<Health>>,
    fail_open: HashMap<String, Arc<AtomicBool>>,
    free: Vec<u32>,
    next: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Identity {
    pool: String,
    address: String,
    name: Option<String>,
    is_copy: bool,
}

/// What stays the same for as long as a member lives.
#[derive(Clone, Debug)]
struct Known {
    id: MemberId,
    /// What its address meant when it came.
    socket: SockAddr,
    ip: Option<IpAddr>,
}

/// A server's address cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("server {address} of pool {pool}: {reason}")]
pub struct AddressError {
    pub pool: String,
    pub address: String,
    pub reason: String,
}

impl Registry {
    pub fn new(here: Here) -> Self {
        Self {
            here,
            members: HashMap::new(),
            known: HashMap::new(),
            health: HashMap::new(),
            fail_open: HashMap::new(),
            free: Vec::new(),
            next: 0,
        }
    }

    /// The member that `server` of `pool` is.
    ///
    /// # Errors
    /// Its address is none, or its name does not resolve.
    pub fn member(
        &mut self,
        pool: &str,
        spec: &Pool,
        server: &Server,
        dialect: &'static dyn Dialect,
    ) -> Result<Arc<Member>, AddressError> {
        let settings = format!(
            "{:?}\0{:?}\0{:?}\0{:?}\0{:?}",
            server.weight, server.zone, spec.timeout, spec.connect_timeout, spec.eject,
        );
        let identity = Identity {
            pool: pool.into(),
            address: server.address.clone(),
            name: server.name.clone(),
            is_copy: spec.replicated.is_some(),
        };
        let key = (identity, settings);
        if let Some(member) = self.members.get(&key) {
            return Ok(Arc::clone(member));
        }
        let Known { id, socket, ip } = self.know(&key.0).map_err(|reason| AddressError {
            pool: pool.into(),
            address: server.address.clone(),
            reason,
        })?;
        let eject = Eject {
            failures: spec.eject.failures,
            probe_initial: spec.eject.probe_initial,
            probe_max: spec.eject.probe_max,
        };
        let health_key = format!("{}\0{eject:?}", server.address);
        let health = self
            .health
            .entry(health_key)
            .or_insert_with(|| Arc::new(Health::new(eject)));
        let health = Arc::clone(health);
        let member = Arc::new(Member {
            id,
            pool: pool.into(),
            name: ketama_name(&server.address, server.name.as_deref()).to_owned(),
            address: server.address.clone(),
            socket,
            weight: server.weight,
            zone: server.zone.clone(),
            distance: self.here.distance(ip, server.zone.as_deref()),
            dialect,
            timeout: spec.timeout,
            connect_timeout: spec.connect_timeout,
            is_copy: spec.replicated.is_some(),
            health,
            fail_open: Arc::clone(self.fail_open.entry(pool.into()).or_default()),
        });
        self.members.insert(key, Arc::clone(&member));
        Ok(member)
    }

    fn know(&mut self, identity: &Identity) -> Result<Known, String> {
        if let Some(known) = self.known.get(identity) {
            return Ok(known.clone());
        }
        let (socket, ip) = resolve(&identity.address)?;
        let id = MemberId(self.free.pop().unwrap_or_else(|| {
            self.next += 1;
            self.next - 1
        }));
        let known = Known { id, socket, ip };
        self.known.insert(identity.clone(), known.clone());
        Ok(known)
    }

    /// Forgets the members that nobody holds any more; their numbers may be given again.
    pub fn purge(&mut self) {
        self.members.retain(|_, member| Arc::strong_count(member) > 1);
        let held: HashSet<MemberId> = self.members.values().map(|member| member.id).collect();
        let free = &mut self.free;
        self.known.retain(|_, known| {
            let keep = held.contains(&known.id);
            if !keep {
                free.push(known.id.0);
            }
            keep
        });
        self.health.retain(|_, health| Arc::strong_count(health) > 1);
    }
}

/// `host:port`, `[v6]:port` or `unix:/path`; names are looked up.
fn resolve(address: &str) -> Result<(SockAddr, Option<IpAddr>), String> {
    if let Some(path) = address.strip_prefix("unix:") {
        return Ok((SockAddr::unix(path).map_err(|error| error.to_string())?, None));
    }
    let first: Option<SocketAddr> = address
        .to_socket_addrs()
        .map_err(|error| error.to_string())?
        .next();
    match first {
        Some(found) => Ok((found.into(), Some(found.ip()))),
        None => Err("the name has no address".into()),
    }
}
