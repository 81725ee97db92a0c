//! Every member that any snapshot names, by what makes it that member: across reloads the same one stays, with its number,
//! its lanes and its health.
#![allow(
    clippy::disallowed_methods,
    reason = "where members are made, off the workers"
)]

use std::{
    collections::HashMap,
    net::{SocketAddr, ToSocketAddrs},
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
    members: HashMap<String, Arc<Member>>,
    health: HashMap<String, Arc<Health>>,
    fail_open: HashMap<String, Arc<AtomicBool>>,
    free: Vec<u32>,
    next: u32,
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
        let key = format!(
            "{pool}\0{server:?}\0{:?}\0{:?}\0{:?}\0{}",
            spec.timeout,
            spec.connect_timeout,
            spec.eject,
            spec.replicated.is_some()
        );
        if let Some(member) = self.members.get(&key) {
            return Ok(Arc::clone(member));
        }
        let (socket, ip) = resolve(&server.address).map_err(|reason| AddressError {
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
        let member = Arc::new(Member {
            id: MemberId(self.free.pop().unwrap_or_else(|| {
                self.next += 1;
                self.next - 1
            })),
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
            health: Arc::clone(health),
            fail_open: Arc::clone(self.fail_open.entry(pool.into()).or_default()),
        });
        self.members.insert(key, Arc::clone(&member));
        Ok(member)
    }

    /// Forgets the members that nobody holds any more; their numbers may be given again.
    pub fn purge(&mut self) {
        let free = &mut self.free;
        self.members.retain(|_, member| {
            let held = Arc::strong_count(member) > 1;
            if !held {
                free.push(member.id.0);
            }
            held
        });
        self.health.retain(|_, health| Arc::strong_count(health) > 1);
    }
}

/// `host:port`, `[v6]:port` or `unix:/path`; names are looked up.
fn resolve(address: &str) -> Result<(SockAddr, Option<std::net::IpAddr>), String> {
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
