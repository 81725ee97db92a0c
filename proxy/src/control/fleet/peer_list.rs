//! Where the other peers are, as the configuration says it.

use std::{net::SocketAddr, path::Path, sync::Arc};

use super::{FleetError, pods::Pods};
use crate::{
    config::{
        Diagnostic, file,
        schema::{self, FleetPeers},
    },
    control::surroundings::{dns::Names, host},
};

/// Where the other peers are.
pub(super) enum PeerList {
    /// At these addresses.
    At(schema::Peers),
    /// They are the pods of a Service.
    Pods(Box<Pods>),
}

impl PeerList {
    pub(super) fn new(peers: &FleetPeers, names: &Arc<Names>) -> Self {
        match peers {
            FleetPeers::At(peers) => Self::At(peers.clone()),
            FleetPeers::Service(service) => {
                Self::Pods(Box::new(Pods::new(service.clone(), Arc::clone(names))))
            }
        }
    }

    /// The addresses of the peers, as they are now, sorted.
    pub(super) async fn addresses(&self) -> Vec<SocketAddr> {
        let mut addresses = match self {
            Self::At(peers) => looked_up(&named(peers).await).await,
            Self::Pods(pods) => pods.listed(),
        };
        addresses.sort_unstable();
        addresses.dedup();
        addresses
    }

    /// The address under which the others reach this proxy, which listens at `bound`. `announce` is what the
    /// configuration says.
    ///
    /// # Errors
    /// Nothing says which of this machine's addresses it is.
    pub(super) async fn reachable(
        &self,
        announce: Option<&str>,
        bound: SocketAddr,
    ) -> Result<SocketAddr, FleetError> {
        let announced = match announce {
            Some(address) => looked_up(&[address.to_owned()]).await.first().copied(),
            None => None,
        };
        if let Some(address) = announced {
            return Ok(address);
        }
        if !bound.ip().is_unspecified() {
            return Ok(bound);
        }
        // The way to a peer says which of this machine's addresses is the one that peers see.
        let others = match self {
            Self::At(peers) => looked_up(&named(peers).await).await,
            Self::Pods(pods) => pods.way(),
        };
        let own = others.into_iter().find_map(host::way_to);
        let own = own.ok_or(FleetError::Address(bound))?;
        Ok(SocketAddr::new(own, bound.port()))
    }
}

async fn named(peers: &schema::Peers) -> Vec<String> {
    match peers {
        schema::Peers::Dns(name) => vec![name.clone()],
        schema::Peers::Listed(names) => names.clone(),
        schema::Peers::File(path) => match read(path).await {
            Ok(peers) => peers,
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "fleet: the list of peers cannot be read");
                Vec::new()
            }
        },
    }
}

/// The addresses of these names. One that does not resolve now may do so later.
async fn looked_up(names: &[String]) -> Vec<SocketAddr> {
    let mut addresses = Vec::new();
    for name in names {
        if let Ok(found) = tokio::net::lookup_host(name).await {
            addresses.extend(found);
        }
    }
    addresses
}

/// The peers in a file, one a line.
async fn read(path: &Path) -> Result<Vec<String>, Diagnostic> {
    let path = path.to_owned();
    let read = tokio::task::spawn_blocking(move || file::read(&path)).await;
    let text = read.unwrap_or_else(|error| Err(Diagnostic::whole(error.to_string())))?;
    let lines = text.lines().map(str::trim);
    Ok(lines
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(str::to_owned)
        .collect())
}
