//! The locations of clients, by the node agent's report.

use std::{net::IpAddr, sync::Arc};

use crate::{
    engine::{ClientId, Endpoint, Engine},
    members::{ClientSource, Distance, Localities, Locality},
    route::Orders,
};

use super::Clients;

fn locality(localities: Option<&Arc<Localities>>, source: &ClientSource) -> Locality {
    localities.map_or(Locality::NONE, |localities| localities.of_client(source))
}

impl Clients {
    /// The location of this client; `None` if the client has gone.
    pub fn locality(&self, id: ClientId) -> Option<Locality> {
        self.table.get(id).map(|client| client.locality)
    }

    /// The address that this client connected from; `None` for a Unix socket, or if the client has gone.
    pub(crate) fn address(&self, id: ClientId) -> Option<IpAddr> {
        match self.table.get(id)?.source {
            ClientSource::Address(address) => Some(address),
            ClientSource::Unknown | ClientSource::Process(_) | ClientSource::Container(_) => None,
        }
    }

    /// The number of clients that are known to be on one NUMA node, on one socket, and anywhere on this host.
    pub fn located(&self) -> [u64; 3] {
        let mut counts = [0; 3];
        for (_, client) in self.table.iter() {
            counts[match client.locality.reach() {
                Distance::NumaNode => 0,
                Distance::Socket => 1,
                _ => 2,
            }] += 1;
        }
        counts
    }
}

impl Engine {
    /// Notes the source of a client that was just opened. Its location follows from the source.
    pub fn set_source(&mut self, endpoint: Endpoint, source: ClientSource) {
        let locality = locality(self.localities.as_ref(), &source);
        if let Endpoint::Client(id) = endpoint
            && let Some(client) = self.clients.table.get_mut(id)
        {
            (client.source, client.locality) = (source, locality);
        }
    }

    /// Notes the port that a client which was just opened has connected from.
    pub fn set_port(&mut self, endpoint: Endpoint, port: u16) {
        if let Endpoint::Client(id) = endpoint
            && let Some(client) = self.clients.table.get_mut(id)
        {
            client.port = port;
        }
    }

    /// Takes the newest report of the node agent; `None` if the agent is no longer followed. `orders` follow
    /// from the report, and `container_of` gives the container of a process id.
    pub fn locate(
        &mut self,
        localities: Option<Arc<Localities>>,
        orders: &Orders,
        container_of: &dyn Fn(u32) -> ClientSource,
    ) {
        self.tree.follow(orders);
        for (_, client) in self.clients.table.iter_mut() {
            if let (ClientSource::Process(process), Some(_)) = (client.source, &localities) {
                client.source = container_of(process);
            }
            client.locality = locality(localities.as_ref(), &client.source);
        }
        self.localities = localities;
    }
}
