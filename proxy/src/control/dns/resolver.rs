//! Whom to ask, and one look-up: by UDP, and what was truncated again by TCP.

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
use crate::control::file_watcher::FileWatcher;

/// A DNS server that has not answered for so long, repetitions included, is given up for this time.
const TRY: Duration = Duration::from_secs(1);

/// The DNS servers to ask.
#[derive(Default)]
pub(super) struct NameServers {
    /// The one to ask; none = as the system says.
    own: Option<SocketAddr>,
    resolver: Option<Resolver>,
    /// What the system says.
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

    /// The same one every time, as it remembers which servers answer; another when the system's files were written, which
    /// may be after the start.
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

/// Asks them.
#[derive(Clone)]
pub(super) struct Resolver {
    udp: TokioResolver,
    servers: Vec<SocketAddr>,
    /// The domains that the system completes names with, and how many dots a name has that is first asked as it stands.
    search: Vec<Name>,
    ndots: usize,
}

impl Resolver {
    fn new(own: Option<SocketAddr>) -> Result<Self, NetError> {
        // One at a time: a truncated answer would wait for the time-out of a server that is dead.
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

    /// The addresses of a host, one at least: IPv4 or, where it has none, IPv6.
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

    /// A whole answer without an error; there may be no records in it.
    pub(super) async fn lookup(&self, name: Name, record: RecordType) -> Result<Lookup, LookupFailure> {
        let mut answer = self.udp.lookup(name.clone(), record).await;
        if matches!(answer, Err(NetError::Timeout)) {
            // Another server comes first now, if there is one.
            answer = self.udp.lookup(name.clone(), record).await;
        }
        let answer = match answer {
            // By a connection of its own: dnsmasq answers on each from what it knew when the connection was made.
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
    // The next question is soon enough.
    options.attempts = 0;
    // Every question is asked.
    options.cache_size = 0;
    builder.build()
}
