//! The look-up of one host as the system does it, without the C library: the file of hosts, then DNS with its
//! search domains.

use std::{net::IpAddr, path::PathBuf, sync::Arc, time::Duration};

use hickory_resolver::{
    Hosts as Listed,
    proto::{
        op::Query,
        rr::{Name, RecordType},
    },
};
use tokio::time::timeout;

use super::{
    LookupFailure,
    resolver::{NameServers, Resolver, addresses},
};
use crate::control::{surroundings::discovery::Resolve, surroundings::file_watcher::FileWatcher};

/// Time for a whole look-up. A later one is a failure.
const TIMEOUT: Duration = Duration::from_secs(4);

/// The address of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HostAddress {
    pub(super) ip: IpAddr,
    /// The whole name that DNS knows. `None`: the address stands in the file of hosts.
    name: Option<Name>,
}

/// The system's resolver configuration, which is read again when its files change.
#[derive(Default)]
pub(in crate::control) struct System {
    servers: NameServers,
    file: FileWatcher,
    listed: Option<Arc<Listed>>,
}

/// The resolver configuration as it was read last.
#[derive(Clone)]
pub(in crate::control) struct Finder {
    listed: Arc<Listed>,
    resolver: Result<Resolver, LookupFailure>,
}

impl System {
    pub(in crate::control) fn read(&mut self) -> Finder {
        if self.file.changed(vec![PathBuf::from("/etc/hosts")]) {
            self.listed = None;
        }
        let read = || Arc::new(Listed::from_system().unwrap_or_default());
        Finder {
            listed: Arc::clone(self.listed.get_or_insert_with(read)),
            resolver: self.servers.resolver(),
        }
    }
}

impl Finder {
    /// Looks up this host. `before` is the last result, which stays as long as it is one of the answers.
    pub(super) async fn find(
        &self,
        host: &str,
        before: Option<&HostAddress>,
    ) -> Result<HostAddress, LookupFailure> {
        let (name, found) = timeout(TIMEOUT, self.addresses(host, before))
            .await
            .unwrap_or(Err(LookupFailure::Late))?;
        let ip = keep(before.map(|before| before.ip), &found).ok_or(LookupFailure::NoRecords)?;
        Ok(HostAddress { ip, name })
    }

    async fn addresses(
        &self,
        host: &str,
        before: Option<&HostAddress>,
    ) -> Result<(Option<Name>, Vec<IpAddr>), LookupFailure> {
        let name = Name::from_ascii(host).map_err(|error| LookupFailure::Bad(error.to_string()))?;
        let own = self.own(&name);
        if !own.is_empty() {
            return Ok((None, own));
        }
        let resolver = self.resolver.as_ref().map_err(Clone::clone)?;
        let names = match before.and_then(|before| before.name.clone()) {
            // While a pod is away the search does not go on in other domains.
            Some(known) => vec![known],
            None => candidates(&name, resolver.search(), resolver.ndots()),
        };
        let (mut nothing, mut refused) = (LookupFailure::NoName, None);
        for name in names {
            match resolver.addresses(name.clone()).await {
                Ok(found) => return Ok((Some(name), found)),
                Err(failure) if failure.is_nothing() => nothing = failure,
                // The C library goes on as well: the next domain may be another server's.
                Err(failure @ LookupFailure::Refused(_)) => refused = Some(failure),
                Err(failure) => return Err(failure),
            }
        }
        Err(refused.unwrap_or(nothing))
    }

    /// The addresses in the file of hosts, and those of names that need no file.
    fn own(&self, name: &Name) -> Vec<IpAddr> {
        let listed = [RecordType::A, RecordType::AAAA]
            .into_iter()
            .filter_map(|record| {
                self.listed
                    .lookup_static_host(&Query::query(name.clone(), record))
            })
            .map(|answer| addresses(&answer))
            .find(|found| !found.is_empty());
        listed.unwrap_or_else(|| match name.is_localhost() {
            true => vec![IpAddr::from([127, 0, 0, 1])],
            false => Vec::new(),
        })
    }
}

/// Endpoints are looked up as hosts are.
impl Resolve for Finder {
    async fn resolve(&self, host: &str) -> Result<Option<Vec<IpAddr>>, String> {
        let found = timeout(TIMEOUT, self.addresses(host, None)).await;
        match found.unwrap_or(Err(LookupFailure::Late)) {
            Ok((_, found)) => Ok(Some(found)),
            Err(failure) if failure.is_nothing() => Ok(None),
            Err(failure) => Err(failure.to_string()),
        }
    }
}

/// The whole names that a host's name may stand for, in the order in which the system tries them.
fn candidates(name: &Name, search: &[Name], ndots: usize) -> Vec<Name> {
    let mut whole = name.clone();
    whole.set_fqdn(true);
    if name.is_fqdn() {
        return vec![whole];
    }
    let domains = search.iter();
    let mut names: Vec<Name> = domains
        .filter_map(|domain| name.clone().append_domain(domain).ok())
        .collect();
    match usize::from(name.num_labels()) > ndots {
        true => names.insert(0, whole),
        false => names.push(whole),
    }
    names
}

/// Chooses one of several addresses. The choice is not random: proxies with the same answer use the same
/// server.
fn keep(before: Option<IpAddr>, found: &[IpAddr]) -> Option<IpAddr> {
    before
        .filter(|before| found.contains(before))
        .or_else(|| found.iter().min().copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn search_domains_are_tried_as_resolv_conf_says() {
        let search =
            ["cache.svc.cluster.local.", "cluster.local."].map(|name| Name::from_ascii(name).unwrap());
        for (host, ndots, expected) in [
            (
                "mc-0.mc",
                5,
                [
                    "mc-0.mc.cache.svc.cluster.local.",
                    "mc-0.mc.cluster.local.",
                    "mc-0.mc.",
                ]
                .as_slice(),
            ),
            (
                "mc-0.mc",
                1,
                &[
                    "mc-0.mc.",
                    "mc-0.mc.cache.svc.cluster.local.",
                    "mc-0.mc.cluster.local.",
                ],
            ),
            (
                "mc",
                1,
                &["mc.cache.svc.cluster.local.", "mc.cluster.local.", "mc."],
            ),
            ("mc.", 5, &["mc."]),
        ] {
            let names = candidates(&Name::from_ascii(host).unwrap(), &search, ndots);
            let names: Vec<_> = names.iter().map(ToString::to_string).collect();
            assert_eq!(names, expected, "{host}");
        }
    }

    #[test]
    fn the_address_in_use_stays_while_it_is_an_answer() {
        let ip = |last| IpAddr::from([10, 0, 0, last]);
        for (before, found, kept) in [
            (None, &[][..], None),
            (Some(1), &[], None),
            (None, &[3, 2, 10], Some(2)),
            (Some(3), &[2, 3], Some(3)),
            (Some(1), &[3, 2], Some(2)),
        ] {
            let found: Vec<_> = found.iter().map(|&last| ip(last)).collect();
            assert_eq!(keep(before.map(ip), &found), kept.map(ip), "{before:?} {found:?}");
        }
    }

    #[test]
    fn localhost_needs_nobody() {
        let finder = Finder {
            listed: Arc::default(),
            resolver: Err(LookupFailure::Late),
        };
        for (name, found) in [("localhost", true), ("LOCALHOST.", true), ("local", false)] {
            let addresses = finder.own(&Name::from_ascii(name).unwrap());
            assert_eq!(addresses == [IpAddr::from([127, 0, 0, 1])], found, "{name}");
        }
    }
}
