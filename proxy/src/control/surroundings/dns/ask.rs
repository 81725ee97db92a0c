//! One question to DNS for a list of servers.

use std::{
    collections::BTreeMap,
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use hickory_resolver::proto::rr::{Name, RData, Record as Answered, RecordType, rdata::SRV};
use tokio::{task::JoinSet, time::timeout};

use super::{
    answer,
    failure::{LIMIT, LookupFailure},
    resolver::{NameServers, Resolver, addresses},
};
use crate::config::schema::{Dns, Record, Server};

/// Time for a whole answer, further look-ups included. A later answer is a failure.
const TIMEOUT: Duration = Duration::from_secs(4);
/// Targets of SRV records that are asked for at the same time.
const AT_ONCE: usize = 16;
/// Asks one question, any number of times.
pub(super) struct Asker {
    question: Dns,
    name_servers: NameServers,
}

impl Asker {
    pub(super) fn new(question: Dns) -> Self {
        let name_servers = NameServers::new(question.server);
        Self {
            question,
            name_servers,
        }
    }

    /// The servers of the answer: at least one, each once, always in the same order.
    pub(super) async fn ask(&mut self) -> Result<Vec<Server>, LookupFailure> {
        timeout(TIMEOUT, self.answer())
            .await
            .unwrap_or(Err(LookupFailure::Late))
    }

    async fn answer(&mut self) -> Result<Vec<Server>, LookupFailure> {
        // With a dot at its end no search domain is tried.
        let mut name =
            Name::from_ascii(&self.question.name).map_err(|error| LookupFailure::Bad(error.to_string()))?;
        name.set_fqdn(true);
        let record = self.question.record;
        let resolver = &self.name_servers.resolver()?;
        let found = match record {
            Record::A(port) => at_port(addresses(&resolver.lookup(name, RecordType::A).await?), port),
            Record::Aaaa(port) => at_port(addresses(&resolver.lookup(name, RecordType::AAAA).await?), port),
            Record::Srv => services(resolver, name).await?,
        };
        let servers = answer::servers(found);
        match servers.len() {
            0 => Err(LookupFailure::NoRecords),
            1..=LIMIT => Ok(servers),
            _ => Err(LookupFailure::TooMany),
        }
    }
}

fn at_port(addresses: Vec<IpAddr>, port: u16) -> Vec<(SocketAddr, u16)> {
    addresses
        .into_iter()
        .map(|ip| (SocketAddr::new(ip, port), 1))
        .collect()
}

/// The addresses of a service's targets, with their ports and weights. A target without an address is no
/// server: it has just gone, or is not there yet. A target that cannot be looked up makes the whole answer a
/// failure.
async fn services(resolver: &Resolver, name: Name) -> Result<Vec<(SocketAddr, u16)>, LookupFailure> {
    let answer = resolver.lookup(name, RecordType::SRV).await?;
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
        _ => Err(LookupFailure::TooMany),
    }
}

/// The addresses of the targets. Most name servers send them along, as far as there is room, and leave out
/// the rest without a sign, perhaps in the middle of the last target's addresses. A target with a single IPv4
/// address, as a pod has, is therefore believed if it is not the last; the others are looked up.
async fn targets(
    resolver: &Resolver,
    records: &[SRV],
    sent: &[Answered],
) -> Result<BTreeMap<Name, Vec<IpAddr>>, LookupFailure> {
    let mut known: BTreeMap<Name, Vec<IpAddr>> = BTreeMap::new();
    for record in sent {
        let address = record.data.ip_addr().filter(IpAddr::is_ipv4);
        known.entry(record.name.clone()).or_default().extend(address);
    }
    known.retain(|_, addresses| addresses.len() == 1);
    if let Some(last) = sent.last() {
        known.remove(&last.name);
    }
    let mut missing: Vec<Name> = records.iter().map(|record| record.target.clone()).collect();
    missing.sort();
    missing.dedup();
    missing.retain(|target| !known.contains_key(target));
    for some in missing.chunks(AT_ONCE) {
        let mut asked = JoinSet::new();
        for target in some {
            let (resolver, target) = (resolver.clone(), target.clone());
            asked.spawn(async move { (target.clone(), resolver.addresses(target).await) });
        }
        for (target, addresses) in asked.join_all().await {
            match addresses {
                Ok(addresses) => known.insert(target, addresses),
                Err(failure) if failure.is_nothing() => None,
                Err(failure) => return Err(failure),
            };
        }
    }
    Ok(known)
}
