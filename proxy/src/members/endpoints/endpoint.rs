//! One endpoint of a Service.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::config::schema::{Server, ServerPod};

/// An endpoint that is a server of a pool.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ServiceEndpoint {
    /// Its address.
    pub at: SocketAddr,
    /// The pod that has the address. `None`: the Service has endpoints of another kind.
    pub pod: Option<Pod>,
    /// The node of the pod.
    pub node: Option<String>,
    /// The zone of the node.
    pub zone: Option<String>,
    /// It is about to end: it is given nothing new.
    pub ends: bool,
    /// It is not ready, and others are.
    #[serde(default)]
    pub is_away: bool,
}

impl ServiceEndpoint {
    /// The endpoint as a server of a pool. Hashes use the name of its pod: one of a StatefulSet that moves to
    /// another node keeps its keys.
    pub(super) fn server(&self) -> Server {
        Server {
            address: self.at.to_string(),
            name: self.pod.as_ref().map(|pod| pod.name.clone()),
            weight: 1.0,
            zone: self.zone.clone(),
            pod: Some(ServerPod {
                uid: self.pod.as_ref().map(|pod| pod.uid.clone()),
                node: self.node.clone(),
                ends: self.ends,
                is_away: self.is_away,
            }),
        }
    }
}

/// A pod. Another one with the same name, or at the same address, is another process.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Pod {
    /// Its name.
    pub name: String,
    /// Its unique id.
    pub uid: String,
}
