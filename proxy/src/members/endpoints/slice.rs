//! One EndpointSlice, as the API server sends it.

use std::net::{IpAddr, SocketAddr};

use serde::Deserialize;

use super::{BadAnswer, Pod, ServiceEndpoint};
use crate::config::schema::ServicePort;

/// The label that names the Service of a slice.
const SERVICE: &str = "kubernetes.io/service-name";

/// The fields of any object that are of interest.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Metadata {
    pub(super) name: String,
    pub(super) resource_version: String,
    /// The place in a list from which the next page goes on.
    #[serde(rename = "continue")]
    pub(super) more: String,
    labels: std::collections::HashMap<String, String>,
}

/// A slice, field by field.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SliceObject {
    pub(super) metadata: Metadata,
    address_type: String,
    #[serde(default)]
    endpoints: Option<Vec<EndpointObject>>,
    #[serde(default)]
    ports: Option<Vec<PortObject>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct EndpointObject {
    addresses: Vec<String>,
    #[serde(default)]
    conditions: Conditions,
    #[serde(default)]
    target_ref: Option<Target>,
    #[serde(default)]
    node_name: Option<String>,
    #[serde(default)]
    zone: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
struct Conditions {
    #[serde(default)]
    ready: Option<bool>,
    #[serde(default)]
    serving: Option<bool>,
    #[serde(default)]
    terminating: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Target {
    kind: String,
    name: String,
    uid: String,
}

#[derive(Debug, Deserialize)]
struct PortObject {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    port: Option<u16>,
    #[serde(default)]
    protocol: Option<String>,
}

/// The family of the addresses of a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Family {
    Four,
    Six,
}

/// Whether an endpoint may be asked. The best is the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Service {
    /// It may.
    Serves,
    /// It is about to end, whether it still serves or not.
    Ends,
    /// It may not yet.
    Away,
}

/// A slice that has been read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Slice {
    pub(super) family: Family,
    endpoints: Vec<(IpAddr, Service, Facts)>,
    /// Names and numbers of its ports for TCP.
    ports: Vec<(String, u16)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Facts {
    pod: Option<Pod>,
    node: Option<String>,
    zone: Option<String>,
}

impl Slice {
    /// Reads a slice of this Service.
    ///
    /// # Errors
    /// It is a slice of another Service, or not one of addresses.
    pub(super) fn read(object: SliceObject, service: &str) -> Result<Self, BadAnswer> {
        let slice = object.metadata.name;
        if object.metadata.labels.get(SERVICE).is_none_or(|of| of != service) {
            return Err(BadAnswer::OtherService(slice));
        }
        let family = match &*object.address_type {
            "IPv4" => Family::Four,
            "IPv6" => Family::Six,
            _ => return Err(BadAnswer::Names(slice)),
        };
        let mut endpoints = Vec::new();
        for endpoint in object.endpoints.unwrap_or_default() {
            // All addresses of an endpoint lead to the same one.
            let Some(text) = endpoint.addresses.first() else {
                continue;
            };
            let is_of_family = |ip: &IpAddr| ip.is_ipv4() == (family == Family::Four);
            let ip = text.parse().ok().filter(is_of_family);
            let Some(ip) = ip else {
                let address = text.clone();
                return Err(BadAnswer::Address { slice, address });
            };
            endpoints.push((ip, endpoint.conditions.service(), endpoint.facts()));
        }
        let is_tcp = |port: &PortObject| port.protocol.as_deref().is_none_or(|protocol| protocol == "TCP");
        let ports = object.ports.unwrap_or_default().into_iter().filter(is_tcp);
        let ports = ports.filter_map(|port| Some((port.name.unwrap_or_default(), port.port?)));
        Ok(Self {
            family,
            endpoints,
            ports: ports.collect(),
        })
    }

    /// Its endpoints at this port. `None`: the slice does not have that port, or has several and none was
    /// named.
    pub(super) fn endpoints(&self, port: &ServicePort) -> Option<Vec<(Service, ServiceEndpoint)>> {
        let number = match port {
            ServicePort::Number(number) => *number,
            ServicePort::Name(name) => self.ports.iter().find(|(own, _)| own == name)?.1,
            ServicePort::Only => match &*self.ports {
                [(_, number)] => *number,
                _ => return None,
            },
        };
        let found = self.endpoints.iter().map(|(ip, service, facts)| {
            let endpoint = ServiceEndpoint {
                at: SocketAddr::new(*ip, number),
                pod: facts.pod.clone(),
                node: facts.node.clone(),
                zone: facts.zone.clone(),
                ends: *service == Service::Ends,
                is_away: *service == Service::Away,
            };
            (*service, endpoint)
        });
        Some(found.collect())
    }

    /// The number of its endpoints.
    pub(super) fn len(&self) -> usize {
        self.endpoints.len()
    }
}

impl Conditions {
    /// `ready` alone says nothing where a Service publishes addresses that are not ready.
    fn service(&self) -> Service {
        let serves = self.serving.or(self.ready).unwrap_or(true);
        match self.terminating.unwrap_or(false) {
            true => Service::Ends,
            false if serves => Service::Serves,
            false => Service::Away,
        }
    }
}

impl EndpointObject {
    fn facts(self) -> Facts {
        let pod = self.target_ref.filter(|target| target.kind == "Pod");
        Facts {
            pod: pod.map(|pod| Pod {
                name: pod.name,
                uid: pod.uid,
            }),
            node: self.node_name,
            zone: self.zone,
        }
    }
}
