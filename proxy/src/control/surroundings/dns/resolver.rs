//! Name servers, and one query: by UDP, and by TCP if the answer was truncated.

use std::{
    net::{IpAddr, SocketAddr},
    path::PathBuf,
    time::Duration,
};

use hickory_resolver::{
    Resolver as Hickory, TokioResolver,
    config::{ConnectionConfig, NameServerConfig, ResolveHosts, ResolverConfig},
    lookup::Lookup,
    net::{NetError, runtime::TokioRuntimeProvider},
    proto::{
        op::ResponseCode,
        rr::{Name, RecordType},
    },
    system_conf::read_system_conf,
};

use super::LookupFailure;
use crate::control::surroundings::file_watcher::FileWatcher;

/// Time after which a DNS server is given up for this query, repetitions included.
const TRY: Duration = Duration::from_secs(1);

/// The DNS servers to ask.
#[derive(Default)]
pub(super) struct NameServers {
    /// The server that the configuration names. `None`: the system's.
    own: Option<SocketAddr>,
    resolver: Option<Resolver>,
    /// The files that name the system's servers.
    system: FileWatcher,
}

impl NameServers {
    pub(super) fn new(own: Option<SocketAddr>) -> Self {
        Self {
            own,
            resolver: None,
            system: FileWatcher::default(),
        }
    }

    /// The resolver, which is the same at every call, as it remembers which servers answer. A new one is made
    /// when the system's files were written, which may happen after the start.
    pub(super) fn resolver(&mut self) -> Result<Resolver, LookupFailure> {
        let system = ["/etc/resolv.conf", "/etc/hosts"].map(PathBuf::from);
        if self.own.is_none() && self.system.changed(system.into()) {
            self.resolver = None;
        }
        if let Some(resolver) = &self.resolver {
            return Ok(resolver.clone());
        }
        let made = Resolver::new(self.own).map_err(|error| LookupFailure::NoServers(error.to_string()))?;
        Ok(self.resolver.insert(made).clone())
    }
}

/// Queries name servers.
#[derive(Clone)]
pub(super) struct Resolver {
    udp: TokioResolver,
    servers: Vec<SocketAddr>,
    /// The search domains of the system, and the number of dots from which on a name is first asked for as it
    /// stands.
    search: Vec<Name>,
    ndots: usize,
}

impl Resolver {
    fn new(own: Option<SocketAddr>) -> Result<Self, NetError> {
        // One server is asked at a time. A truncated answer would otherwise wait for the time-out of a dead
        // one.
        let udp = |servers: &[SocketAddr], hosts| hickory(servers, ConnectionConfig::udp, hosts, 1);
        if let Some(server) = own {
            return Ok(Self {
                udp: udp(&[server], ResolveHosts::Never)?,
                servers: vec![server],
                search: Vec::new(),
                ndots: 1,
            });
        }
        let (system, options) = read_system_conf()?;
        let servers = system.name_servers().iter();
        let servers: Vec<_> = servers.map(|server| (server.ip, 53).into()).collect();
        Ok(Self {
            udp: udp(&servers, ResolveHosts::Always)?,
            servers,
            search: system.search().to_vec(),
            ndots: options.ndots,
        })
    }

    pub(super) fn search(&self) -> &[Name] {
        &self.search
    }

    pub(super) fn ndots(&self) -> usize {
        self.ndots
    }

    /// The addresses of a host, at least one. They are IPv6 only where the host has no IPv4 address.
    pub(super) async fn addresses(&self, host: Name) -> Result<Vec<IpAddr>, LookupFailure> {
        let mut nothing = LookupFailure::NoRecords;
        for record in [RecordType::A, RecordType::AAAA] {
            match self.lookup(host.clone(), record).await {
                Ok(answer) => {
                    let found = addresses(&answer);
                    if !found.is_empty() {
                        return Ok(found);
                    }
                }
                Err(failure) if failure.is_nothing() => nothing = failure,
                Err(failure) => return Err(failure),
            }
        }
        Err(nothing)
    }

    /// A whole answer without an error. It may hold no records.
    pub(super) async fn lookup(&self, name: Name, record: RecordType) -> Result<Lookup, LookupFailure> {
        let mut answer = self.udp.lookup(name.clone(), record).await;
        if matches!(answer, Err(NetError::Timeout)) {
            // Another server, if there is one, now comes first.
            answer = self.udp.lookup(name.clone(), record).await;
        }
        let answer = match answer {
            // Each query has a TCP connection of its own: dnsmasq answers on each connection from what it
            // knew when it was made.
            Err(NetError::Truncated) => {
                let all = self.servers.len();
                let tcp = hickory(&self.servers, ConnectionConfig::tcp, ResolveHosts::Never, all)?;
                tcp.lookup(name, record).await?
            }
            other => other?,
        };
        match answer.message().response_code {
            ResponseCode::NoError => Ok(answer),
            code => Err(code.into()),
        }
    }
}

pub(super) fn addresses(answer: &Lookup) -> Vec<IpAddr> {
    answer
        .answers()
        .iter()
        .filter_map(|record| record.data.ip_addr())
        .collect()
}

fn hickory(
    servers: &[SocketAddr],
    connection: fn() -> ConnectionConfig,
    hosts: ResolveHosts,
    at_once: usize,
) -> Result<TokioResolver, NetError> {
    let servers = servers.iter().map(|server| {
        let mut connection = connection();
        connection.port = server.port();
        let mut config = NameServerConfig::udp_and_tcp(server.ip());
        config.connections = vec![connection];
        config
    });
    let config = ResolverConfig::from_parts(None, Vec::new(), servers.collect());
    let mut builder = Hickory::builder_with_config(config, TokioRuntimeProvider::default());
    let options = builder.options_mut();
    options.use_hosts_file = hosts;
    options.num_concurrent_reqs = at_once;
    options.timeout = TRY;
    // The next query is soon enough.
    options.attempts = 0;
    // There is no cache: every question is asked.
    options.cache_size = 0;
    builder.build()
}
