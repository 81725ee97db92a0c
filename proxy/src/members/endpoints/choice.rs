//! The endpoints of a Service that are servers.

use std::{collections::BTreeMap, net::SocketAddr};

use super::{EndpointList, ServiceEndpoint, slice::Service};

/// The endpoints that are servers, and what operators should know of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// The servers, sorted. Those that are about to end are among them, and are given nothing new. So are those
    /// that are away: a pool that asks its servers itself knows better than their pods whether they serve.
    pub list: EndpointList,
    /// None serves: those that do not end are taken all the same.
    pub is_last_resort: bool,
    /// The number of endpoints that lack the port, or of which it is not known which port is meant.
    pub without_port: usize,
}

impl Choice {
    pub(super) fn of(found: Vec<(Service, ServiceEndpoint)>, without_port: usize) -> Self {
        let best = by_address(found);
        let serves = best.values().any(|(service, _)| *service == Service::Serves);
        let is_last_resort = !serves && best.values().any(|(service, _)| *service == Service::Away);
        let servers = best.into_values().map(|(_, endpoint)| ServiceEndpoint {
            is_away: endpoint.is_away && serves,
            ..endpoint
        });
        Self {
            list: EndpointList::new(servers.collect()),
            is_last_resort,
            without_port,
        }
    }

    pub(super) fn of_all(found: Vec<(Service, ServiceEndpoint)>, without_port: usize) -> Self {
        let all = by_address(found).into_values();
        Self {
            list: EndpointList::new(all.map(|(_, endpoint)| endpoint).collect()),
            is_last_resort: false,
            without_port,
        }
    }
}

/// The best endpoint at each address: one may be in two slices for a moment, and two pods may have it, of which
/// one ends.
fn by_address(found: Vec<(Service, ServiceEndpoint)>) -> BTreeMap<SocketAddr, (Service, ServiceEndpoint)> {
    let mut best: BTreeMap<_, (Service, ServiceEndpoint)> = BTreeMap::new();
    for (service, endpoint) in found {
        let known = best.get(&endpoint.at);
        if known.is_none_or(|(before, _)| service < *before) {
            best.insert(endpoint.at, (service, endpoint));
        }
    }
    best
}
