//! One question to DNS, and what became of it.

use std::{
    collections::BTreeMap,
    net::{IpAddr, SocketAddr},
    path::PathBuf,
    time::Duration,
};

use hickory_resolver::{
    Resolver, TokioResolver,
    config::{ConnectionConfig, NameServerConfig, ResolveHosts, ResolverConfig},
    lookup::Lookup,
    net::{DnsError, NetError, runtime::TokioRuntimeProvider},
    proto::{
        op::ResponseCode,
        rr::{Name, RData, Record as Answered, RecordType, rdata::SRV},
    },
};
use tokio::{task::JoinSet, time::timeout};

use super::answer;
use crate::{
    config::schema::{Dns, Record, Server},
    control::watch::Watch,
};

/// A DNS server that has not answered for so long is asked once more, or another one.
const TRY: Duration = Duration::from_secs(1);
/// And after so long it is a failure.
const PATIENCE: Duration = Duration::from_secs(4);
/// Targets of SRV records that are asked for at the same time.
const AT_ONCE: usize = 16;
/// More servers than any real answer has.
const LIMIT: usize = 10_000;

/// Why an answer cannot be used. What was known before it stays.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    #[error("there is no such name")]
    NoName,
    #[error("the name has no such records")]
    NoRecords,
    #[error("the DNS server answers {0}")]
    Refused(ResponseCode),
    #[error("no answer in time")]
    Late,
    #[error("no good answer: {0}")]
    Bad(String),
    #[error("more than {LIMIT} servers")]
    TooMany,
    #[error("whom to ask is not known: {0}")]
    Nobody(String),
}

impl Failure {
    /// Of the same kind, whatever the details say.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }

    /// The name is there, and empty; or it is not there.
    fn is_nothing(&self) -> bool {
        matches!(self, Self::NoName | Self::NoRecords)
    }
}

impl From<NetError> for Failure {
    fn from(error: NetError) -> Self {
        match error {
            NetError::Timeout => Self::Late,
            NetError::Dns(DnsError::NoRecordsFound(nothing)) => nothing.response_code.into(),
            NetError::Dns(DnsError::ResponseCode(code)) => code.into(),
            other => Self::Bad(other.to_string()),
        }
    }
}

impl From<ResponseCode> for Failure {
    fn from(code: ResponseCode) -> Self {
        match code {
            ResponseCode::NXDomain => Self::NoName,
            ResponseCode::NoError => Self::NoRecords,
            other => Self::Refused(other),
        }
    }
}

/// Asks one question, as often as one likes.
pub(super) struct Asker {
    question: Dns,
    resolver: Option<TokioResolver>,
    /// What the system says about whom to ask.
    system: Watch,
}

impl Asker {
    pub(super) fn new(question: Dns) -> Self {
        Self {
            question,
            resolver: None,
            system: Watch::default(),
        }
    }

    /// The servers that the answer names: one at least, each once, always in the same order.
    pub(super) async fn ask(&mut self) -> Result<Vec<Server>, Failure> {
        timeout(PATIENCE, self.answer())
            .await
            .unwrap_or(Err(Failure::Late))
    }

    async fn answer(&mut self) -> Result<Vec<Server>, Failure> {
        // With the dot at its end: no search domain is tried.
        let mut name =
            Name::from_ascii(&self.question.name).map_err(|error| Failure::Bad(error.to_string()))?;
        name.set_fqdn(true);
        let record = self.question.record;
        let resolver = self.resolver()?;
        let found = match record {
            Record::A(port) => at_port(addresses(&lookup(resolver, name, RecordType::A).await?), port),
            Record::Aaaa(port) => at_port(addresses(&lookup(resolver, name, RecordType::AAAA).await?), port),
            Record::Srv => services(resolver, name).await?,
        };
        let servers = answer::servers(found);
        match servers.len() {
            0 => Err(Failure::NoRecords),
            1..=LIMIT => Ok(servers),
            _ => Err(Failure::TooMany),
        }
    }

    /// It remembers which DNS servers answer. The files of the system may be written after the start, or anew.
    fn resolver(&mut self) -> Result<&TokioResolver, Failure> {
        let system = ["/etc/resolv.conf", "/etc/hosts"].map(PathBuf::from);
        if self.question.server.is_none() && self.system.changed(system.into()) {
            self.resolver = None;
        }
        let resolver = match self.resolver.take() {
            Some(resolver) => resolver,
            None => resolver(self.question.server).map_err(|error| Failure::Nobody(error.to_string()))?,
        };
        Ok(self.resolver.insert(resolver))
    }
}

fn resolver(server: Option<SocketAddr>) -> Result<TokioResolver, NetError> {
    let mut builder = match server {
        None => TokioResolver::builder_tokio()?,
        Some(server) => {
            let mut config = NameServerConfig::udp_and_tcp(server.ip());
            config.connections = [ConnectionConfig::udp(), ConnectionConfig::tcp()]
                .map(|connection| at(connection, server.port()))
                .into();
            let config = ResolverConfig::from_parts(None, Vec::new(), vec![config]);
            let mut builder = Resolver::builder_with_config(config, TokioRuntimeProvider::default());
            builder.options_mut().use_hosts_file = ResolveHosts::Never;
            builder
        }
    };
    let options = builder.options_mut();
    options.timeout = TRY;
    options.attempts = 1;
    options.edns0 = true;
    // Every question is asked.
    options.cache_size = 0;
    // Of two truncated answers at once the resolver takes the second for a failure instead of asking by TCP.
    options.num_concurrent_reqs = 1;
    builder.build()
}

fn at(mut connection: ConnectionConfig, port: u16) -> ConnectionConfig {
    connection.port = port;
    connection
}

async fn lookup(resolver: &TokioResolver, name: Name, record: RecordType) -> Result<Lookup, Failure> {
    let answer = resolver.lookup(name, record).await?;
    match answer.message().response_code {
        ResponseCode::NoError => Ok(answer),
        code => Err(code.into()),
    }
}

fn addresses(answer: &Lookup) -> Vec<IpAddr> {
    answer
        .answers()
        .iter()
        .filter_map(|record| record.data.ip_addr())
        .collect()
}

fn at_port(addresses: Vec<IpAddr>, port: u16) -> Vec<(SocketAddr, u16)> {
    addresses
        .into_iter()
        .map(|ip| (SocketAddr::new(ip, port), 1))
        .collect()
}

/// The addresses of a service's targets, with their ports and weights. A target that has no address is no server (it
/// has just gone, or is not there yet); one that cannot be asked for makes the whole answer a failure.
async fn services(resolver: &TokioResolver, name: Name) -> Result<Vec<(SocketAddr, u16)>, Failure> {
    let answer = lookup(resolver, name, RecordType::SRV).await?;
    let records = answer::best(answer.answers().iter().filter_map(|record| match &record.data {
        RData::SRV(record) => Some(record.clone()),
        _ => None,
    }));
    let targets = targets(resolver, &records, answer.additionals()).await?;
    let at = |record: &SRV| {
        let addresses = targets.get(&record.target).cloned().unwrap_or_default();
        let (port, weight) = (record.port, record.weight);
        addresses
            .into_iter()
            .map(move |ip| (SocketAddr::new(ip, port), weight))
    };
    let found: Vec<_> = records.iter().flat_map(at).take(LIMIT + 1).collect();
    match found.len() {
        0..=LIMIT => Ok(found),
        _ => Err(Failure::TooMany),
    }
}

/// Most servers send the addresses of targets along; those that are missing are asked for.
async fn targets(
    resolver: &TokioResolver,
    records: &[SRV],
    sent: &[Answered],
) -> Result<BTreeMap<Name, Vec<IpAddr>>, Failure> {
    let mut known: BTreeMap<Name, Vec<IpAddr>> = BTreeMap::new();
    for record in sent {
        known
            .entry(record.name.clone())
            .or_default()
            .extend(record.data.ip_addr());
    }
    for addresses in known.values_mut() {
        if addresses.iter().any(IpAddr::is_ipv4) {
            addresses.retain(IpAddr::is_ipv4);
        }
    }
    known.retain(|_, addresses| !addresses.is_empty());
    let mut missing: Vec<Name> = records.iter().map(|record| record.target.clone()).collect();
    missing.sort();
    missing.dedup();
    missing.retain(|target| !known.contains_key(target));
    for some in missing.chunks(AT_ONCE) {
        let mut asked = JoinSet::new();
        for target in some {
            let (resolver, target) = (resolver.clone(), target.clone());
            asked.spawn(async move { (target.clone(), target_addresses(&resolver, target).await) });
        }
        for (target, addresses) in asked.join_all().await {
            known.insert(target, addresses?);
        }
    }
    Ok(known)
}

async fn target_addresses(resolver: &TokioResolver, target: Name) -> Result<Vec<IpAddr>, Failure> {
    for record in [RecordType::A, RecordType::AAAA] {
        match lookup(resolver, target.clone(), record).await {
            Ok(answer) => {
                let found = addresses(&answer);
                if !found.is_empty() {
                    return Ok(found);
                }
            }
            Err(failure) if failure.is_nothing() => {}
            Err(failure) => return Err(failure),
        }
    }
    Ok(Vec::new())
}
