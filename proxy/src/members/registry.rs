//! Every member that any snapshot names. A member's identity is its endpoint and its name. When only its
//! settings change it keeps its number, its lanes and its missed writes. When its host name resolves to
//! another address, it is another member.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    io,
    net::{IpAddr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
};

use proxima_wire::hash::ketama_name;
use socket2::SockAddr;

use super::{
    Address, Distance, DistanceSource, Draining, Eject, Health, Member, MemberId, OwnLocation, Pool, PoolId,
    SelfDescription, ServerIdentity,
};
use crate::{
    config::schema::{
        ClientTls, EjectBy, Login, OneWriter as OneWriterSpec, PlainLogins, Pool as PoolSpec, Server,
    },
    protocol::{
        Credentials, MemberNote, OneWriter, PoolChanges, PoolCount, PoolSettings, Protocol, ReachedCount,
        SharedCount, Wakers,
    },
    tls::{Certificates, Connector, TlsError},
};

/// The members of this process. The control thread keeps them.
#[derive(Debug)]
pub struct Registry {
    here: OwnLocation,
    certificates: Arc<Certificates>,
    /// The addresses of host names. A name that is missing has no address yet.
    hosts: BTreeMap<String, IpAddr>,
    /// By key, login and other settings.
    members: HashMap<(Key, Option<Credentials>, String), Arc<Member>>,
    known: HashMap<Key, Registration>,
    health: HashMap<(String, Option<SockAddr>), Arc<Health>>,
    /// Every pool since the start, by name and protocol, with the settings of its protocol's state. Its
    /// counters and that state go on when it is configured again with the same settings.
    pools: HashMap<(String, &'static str), (String, Arc<Pool>)>,
    wakers: Wakers,
    schema_changes: SharedCount,
    free: Vec<u32>,
    next: u32,
}

/// The identity of a member in this process.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    pool: String,
    address: String,
    /// Its name in consistent hashing: the default name stands for the same server, written or not.
    name: String,
    protocol: &'static str,
    is_copy: bool,
    /// The endpoint of its address. `None` until the name is resolved.
    socket: Option<SockAddr>,
    /// The pod, as far as it is known: another one at the same address is another process.
    pod: Option<String>,
}

/// The state of a member that outlives a reload, as long as anything refers to it.
#[derive(Clone, Debug)]
struct Registration {
    id: MemberId,
    draining: Draining,
    reached: ReachedCount,
    noted: MemberNote,
    said: SelfDescription,
}

/// A server's address cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("server {address} of pool {pool}: {reason}")]
pub struct AddressError {
    /// The pool that names it.
    pub pool: String,
    /// The address as configured.
    pub address: String,
    /// Why it cannot be used.
    pub reason: BadEndpoint,
}

/// Why an address cannot be used. The operator has to correct it.
#[derive(Debug, thiserror::Error)]
pub enum BadEndpoint {
    /// It is neither `host:port` nor a path.
    #[error("this is no address")]
    Syntax,
    /// The system does not take this path for a socket's.
    #[error(transparent)]
    Path(#[from] io::Error),
    /// TLS with it cannot be set up.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

impl Registry {
    /// The location of this process.
    pub fn here(&self) -> &OwnLocation {
        &self.here
    }

    /// The same, with these certificates.
    pub fn sharing(mut self, certificates: &Arc<Certificates>) -> Self {
        self.certificates = Arc::clone(certificates);
        self
    }

    /// The certificates of the process.
    pub fn certificates(&self) -> &Arc<Certificates> {
        &self.certificates
    }

    /// An empty registry. `here` gives the distance of members.
    pub fn new(here: OwnLocation) -> Self {
        Self {
            here,
            certificates: Arc::default(),
            hosts: BTreeMap::new(),
            members: HashMap::new(),
            known: HashMap::new(),
            health: HashMap::new(),
            pools: HashMap::new(),
            wakers: Wakers::default(),
            schema_changes: SharedCount::default(),
            free: Vec::new(),
            next: 0,
        }
    }

    /// The wakers of the workers, for changes of a pool's state.
    pub fn wakers(&self) -> &Wakers {
        &self.wakers
    }

    /// Sets the addresses of host names.
    pub fn set_hosts(&mut self, hosts: BTreeMap<String, IpAddr>) {
        self.hosts = hosts;
    }

    /// The member for `server` of `pool`.
    ///
    /// # Errors
    /// The address is invalid.
    pub fn member(
        &mut self,
        pool: &str,
        spec: &PoolSpec,
        server: &Server,
        protocol: &'static dyn Protocol,
    ) -> Result<Arc<Member>, AddressError> {
        let tls = spec
            .tls
            .as_ref()
            .filter(|_| !spec.plain.contains(&server.address));
        let settings = format!(
            "{:?}\0{:?}\0{:?}\0{:?}\0{:?}\0{:?}\0{:?}\0{:?}\0{:?}",
            server.weight,
            server.zone,
            (spec.timeout, spec.connect_timeout),
            spec.eject,
            spec.dedicated,
            spec.preconnect,
            spec.keepalive,
            (spec.asks_version, spec.plain_logins, &spec.one_writer),
            tls,
        );
        let login = credentials(&spec.login);
        let refused = |reason| AddressError {
            pool: pool.into(),
            address: server.address.clone(),
            reason,
        };
        let socket = self.locate(&server.address).map_err(refused)?;
        let key = Key {
            pool: pool.into(),
            address: server.address.clone(),
            name: ketama_name(&server.address, server.name.as_deref()).to_owned(),
            protocol: protocol.name(),
            is_copy: spec.replicated.is_some(),
            socket: socket.clone(),
            pod: server.pod.as_ref().and_then(|pod| pod.uid.clone()),
        };
        let ends = server.pod.as_ref().is_some_and(|pod| pod.ends);
        let key = (key, login.clone(), settings);
        if let Some(member) = self.members.get(&key) {
            member.draining.note_end(ends);
            return Ok(Arc::clone(member));
        }
        let tls = match tls {
            Some(tls) => Some(Arc::new(
                self.connector(tls, &server.address)
                    .map_err(|error| refused(error.into()))?,
            )),
            None => None,
        };
        let Registration {
            id,
            draining,
            reached,
            noted,
            said,
        } = self.know(&key.0);
        draining.note_end(ends);
        // Where lost connections are counted, each pool counts for itself.
        let counted = match spec.eject.by {
            EjectBy::Suspicion => String::new(),
            EjectBy::LostConnections => format!("{pool}\0{}", key.0.name),
        };
        let pool = self.pool(pool, spec, login.as_ref(), protocol);
        let eject = Eject {
            by: spec.eject.by,
            failures: spec.eject.failures,
            probe_initial: spec.eject.probe_initial,
            probe_max: spec.eject.probe_max,
        };
        let health_key = (
            format!("{}\0{eject:?}\0{counted}", server.address),
            socket.clone(),
        );
        let health = self.health.entry(health_key).or_insert_with(|| {
            Arc::new(match socket {
                Some(_) => Health::new(eject),
                None => Health::nowhere(eject),
            })
        });
        let health = Arc::clone(health);
        let (distance, distance_source) = match &socket {
            Some(socket) => {
                let ip = socket.as_socket().map(|at| at.ip());
                let node = server.pod.as_ref().and_then(|pod| pod.node.as_deref());
                self.here.distance(ip, node, server.zone.as_deref())
            }
            // Its distance is unknown, and it is not asked.
            None => (Distance::Elsewhere, DistanceSource::Nothing),
        };
        let name = ketama_name(&server.address, server.name.as_deref());
        let at = socket.as_ref().and_then(SockAddr::as_socket);
        let identity = ServerIdentity {
            pool: Arc::clone(&pool.name),
            name: name.into(),
            address: at.map_or_else(|| server.address.as_str().into(), |at| at.to_string().into()),
        };
        let member = Arc::new(Member {
            id,
            pool,
            name: name.to_owned(),
            identity,
            address: server.address.clone(),
            socket,
            weight: server.weight,
            zone: server.zone.clone(),
            pod: server.pod.clone(),
            distance,
            distance_source,
            protocol,
            timeout: spec.timeout,
            connect_timeout: spec.connect_timeout,
            login: login.map(Arc::new),
            dedicated: spec.dedicated,
            preconnect: spec.preconnect,
            keepalive: spec.keepalive,
            asks_version: spec.asks_version,
            tls,
            may_encrypt: spec.plain_logins == PlainLogins::Rsa,
            copied: spec.replicated.and_then(|_| protocol.copy_support()),
            draining,
            reached,
            noted,
            said,
            health,
        });
        self.members.insert(key, Arc::clone(&member));
        Ok(member)
    }

    /// The endpoint that this address stands for. `None`: its name has no address yet.
    fn locate(&self, address: &str) -> Result<Option<SockAddr>, BadEndpoint> {
        match Address::parse(address) {
            Some(Address::Path(path)) => Ok(Some(SockAddr::unix(path)?)),
            Some(Address::Ip(at)) => Ok(Some(at.into())),
            Some(Address::Host(host, port)) => {
                Ok(self.hosts.get(host).map(|&ip| SocketAddr::new(ip, port).into()))
            }
            None => Err(BadEndpoint::Syntax),
        }
    }

    /// TLS with the server at this address.
    fn connector(&self, tls: &ClientTls, address: &str) -> Result<Connector, TlsError> {
        let ip;
        let host = match Address::parse(address) {
            Some(Address::Host(host, _)) => Some(host),
            Some(Address::Ip(at)) => {
                ip = at.ip().to_string();
                Some(&*ip)
            }
            Some(Address::Path(_)) | None => None,
        };
        self.certificates.connector(tls, host)
    }

    /// The pool with this name. Its state is made anew where what it is made from has changed.
    fn pool(
        &mut self,
        name: &str,
        spec: &PoolSpec,
        own: Option<&Credentials>,
        protocol: &'static dyn Protocol,
    ) -> Arc<Pool> {
        let one_writer = spec.one_writer.as_ref().map(one_writer);
        let settings = format!(
            "{:?}\0{:?}\0{:?}\0{:?}",
            spec.timeout, spec.connect_timeout, own, one_writer
        );
        let key = (name.to_owned(), protocol.name());
        let known = self.pools.get(&key);
        if let Some((made_from, pool)) = known
            && (*made_from == settings || pool.state.is_none())
        {
            return Arc::clone(pool);
        }
        let changes = known.map_or_else(
            || PoolChanges::new(self.wakers.clone()),
            |(_, pool)| pool.changes.clone(),
        );
        let orders = known.map_or_else(Arc::default, |(_, pool)| Arc::clone(&pool.orders));
        let count = known.map_or_else(PoolCount::default, |(_, pool)| pool.count.clone());
        let state = protocol.pool_state(&PoolSettings {
            name,
            own,
            one_writer: one_writer.as_ref(),
            timeout: spec.timeout,
            changes: changes.clone(),
            count: count.clone(),
            orders: Arc::clone(&orders),
            shared: known.and_then(|(_, pool)| pool.state.as_ref()?.shared()),
        });
        let before = known.map(|(_, pool)| pool);
        let pool = Arc::new(Pool {
            id: before.map_or(PoolId(self.pools.len() as u32), |pool| pool.id),
            name: name.into(),
            fail_open: AtomicBool::new(before.is_some_and(|pool| pool.fail_open.load(Relaxed))),
            version: AtomicU64::new(before.map_or(0, |pool| pool.version.load(Relaxed))),
            state,
            changes,
            count,
            schema_changes: self.schema_changes.clone(),
            orders,
        });
        self.pools.insert(key, (settings, Arc::clone(&pool)));
        pool
    }

    fn know(&mut self, key: &Key) -> Registration {
        if let Some(known) = self.known.get(key) {
            return known.clone();
        }
        let id = MemberId(self.free.pop().unwrap_or_else(|| {
            self.next += 1;
            self.next - 1
        }));
        let known = Registration {
            id,
            draining: Draining::default(),
            reached: ReachedCount::default(),
            noted: MemberNote::default(),
            said: SelfDescription::default(),
        };
        self.known.insert(key.clone(), known.clone());
        known
    }

    /// Forgets the members without references. Their numbers may be given again.
    pub fn purge(&mut self) {
        self.members.retain(|_, member| Arc::strong_count(member) > 1);
        let held: HashSet<MemberId> = self.members.values().map(|member| member.id).collect();
        let free = &mut self.free;
        self.known.retain(|_, Registration { id, draining, .. }| {
            let keep = held.contains(id);
            if !keep {
                free.push(id.0);
                // An order for a member ends with it.
                draining.end();
            }
            keep
        });
        self.health.retain(|_, health| Arc::strong_count(health) > 1);
    }
}

/// How the proxy logs in with these settings; `None`: without a login.
fn credentials(login: &Login) -> Option<Credentials> {
    let password = login
        .password
        .as_ref()
        .and_then(|password| password.secret.as_ref());
    let credentials = Credentials {
        user: login.user.clone().unwrap_or_default().into_bytes(),
        password: password.map(|secret| Arc::clone(secret.bytes())),
        database: login.database,
    };
    (credentials != Credentials::default()).then_some(credentials)
}

fn one_writer(spec: &OneWriterSpec) -> OneWriter {
    OneWriter {
        order: spec.order.clone(),
        wait: spec.wait,
        reads: spec.reads,
        donors: spec.donors,
        read_wait: spec.read_wait,
        read_age: spec.read_age,
        failback: spec.failback,
        conflict_retries: spec.conflict_retries,
        is_only_proxy: spec.is_only_proxy(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::Relaxed;

    use super::*;
    use crate::{members::Failure, protocols::Memcache};

    #[test]
    fn server_whose_default_name_is_written_is_the_same_member() {
        let mut registry = Registry::new(OwnLocation::new(&[], None));
        let mut server = Server {
            address: "10.0.0.1:11211".into(),
            name: None,
            weight: 1.0,
            zone: None,
            pod: None,
        };
        let spec = PoolSpec::of(vec![server.clone()]);
        let before = registry.member("pool", &spec, &server, &Memcache::PLAIN).unwrap();
        server.name = Some(ketama_name("10.0.0.1:11211", None).to_owned());
        let after = registry.member("pool", &spec, &server, &Memcache::PLAIN).unwrap();
        assert!(Arc::ptr_eq(&before, &after));
    }

    #[test]
    fn a_name_is_another_member_at_another_address_and_the_same_to_a_hash() {
        let mut registry = Registry::new(OwnLocation::new(&[], None));
        let server = Server {
            address: "mc-0.mc:11211".into(),
            name: None,
            weight: 1.0,
            zone: None,
            pod: None,
        };
        let spec = PoolSpec::of(vec![server.clone()]);
        let mut at = |ip: Option<[u8; 4]>| {
            let hosts = ip.map(|ip| ("mc-0.mc".to_owned(), IpAddr::from(ip)));
            registry.set_hosts(hosts.into_iter().collect());
            registry.member("pool", &spec, &server, &Memcache::PLAIN).unwrap()
        };
        let (nowhere, here, there) = (at(None), at(Some([127, 0, 0, 1])), at(Some([192, 0, 2, 1])));
        assert!(Arc::ptr_eq(&here, &at(Some([127, 0, 0, 1]))));
        assert!(nowhere.id != here.id && here.id != there.id);
        assert!(nowhere.name == here.name && here.name == there.name);
        assert_eq!(
            [&nowhere, &here, &there].map(|member| (member.is_up(), member.distance)),
            [
                (false, Distance::Elsewhere),
                (true, Distance::Host),
                (true, Distance::Elsewhere)
            ]
        );
        assert_eq!(there.endpoint(), "192.0.2.1:11211");
        // Failures at one address are not the other's.
        here.health.failed(Failure::Connection);
        assert!(!here.is_up() && there.is_up());
        // Fail-open brings suspected members back, but never one that is known to be gone.
        here.pool.fail_open.store(true, Relaxed);
        assert!(here.is_up() && !nowhere.is_up());
        here.health.failed(Failure::Refused);
        assert!(!here.is_up());
    }
}
