//! The pods of a Service as the peers of a fleet: who is listed, and which fleet is theirs. The API server keeps that
//! in a Lease, so that pods that never see each other do not begin a fleet each.

use std::{
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::time::sleep;

use super::FleetError;
use crate::{
    config::schema::{Question, Server, Service},
    control::surroundings::{
        dns::{Names, System},
        kubernetes::{ApiFailure, FleetLease, Held, api_address, list_endpoints},
    },
    event_log::kind,
};

/// Pause before the API server is asked once more.
const AGAIN: Duration = Duration::from_millis(200);
/// Time without the API server after which a peer goes on by what it knew.
const WITHOUT: Duration = Duration::from_secs(5);
/// Time for a pod to be among the endpoints of its Service.
const LISTED: Duration = Duration::from_secs(30);

/// The pods of a Service.
pub(super) struct Pods {
    service: Service,
    question: Question,
    names: Arc<Names>,
}

/// Whether a fleet is that of the Service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// It is, and the Lease was written anew: nobody begins another fleet who has read it before.
    Same,
    /// Another one is.
    Other(u128),
    /// The pod that asks is not listed.
    Unlisted,
    /// Another peer has written at the same time.
    Changed,
}

impl Pods {
    pub(super) fn new(service: Service, names: Arc<Names>) -> Self {
        Self {
            question: Question::Peers(service.clone()),
            service,
            names,
        }
    }

    /// The addresses that are listed, as far as this process has heard.
    pub(super) fn listed(&self) -> Vec<SocketAddr> {
        addresses(&self.names.servers(&self.question).unwrap_or_default())
    }

    /// An address that leads to the others: that of one of them, or of the API server.
    pub(super) fn way(&self) -> Vec<SocketAddr> {
        let mut found = self.listed();
        found.extend(api_address());
        found
    }

    /// The Lease as it is now.
    ///
    /// # Errors
    /// The API server does not tell.
    pub(super) async fn lease(&self) -> Result<Option<Held>, ApiFailure> {
        self.own_lease()?.read(&System::default().read()).await
    }

    /// The addresses that are listed now, after all that has happened.
    ///
    /// # Errors
    /// The API server does not tell.
    pub(super) async fn list(&self) -> Result<Vec<SocketAddr>, ApiFailure> {
        let listed = list_endpoints(&self.service, &self.names.api(), &System::default().read()).await?;
        Ok(addresses(&listed.servers()))
    }

    /// Makes the Lease that of this fleet, unless it is not any more as it was read. Returns whether it is.
    ///
    /// # Errors
    /// The API server does not tell.
    pub(super) async fn hold(
        &self,
        read: Option<Held>,
        (fleet, peer): (u128, &str),
    ) -> Result<bool, ApiFailure> {
        let lease = self.own_lease()?;
        lease.hold(&System::default().read(), read, (fleet, peer)).await
    }

    fn own_lease(&self) -> Result<FleetLease, ApiFailure> {
        FleetLease::of(&self.service, self.names.api())
    }

    /// Whether the fleet in the directory of a peer is still that of the Service. Without the API server it is taken
    /// for that.
    ///
    /// # Errors
    /// The Service does not have the peer.
    pub(super) async fn is_still(
        &self,
        fleet: u128,
        (own, name): (SocketAddr, &str),
    ) -> Result<bool, FleetError> {
        let begun = Instant::now();
        loop {
            match self.take(fleet, (own, name)).await {
                Ok(Found::Same) => return Ok(true),
                Ok(Found::Other(other)) => {
                    tracing::warn!(target: kind::PEER,
                        ours = format!("{fleet:032x}"),
                        theirs = format!("{other:032x}"),
                        "fleet: the pods of the Service have begun another fleet: this peer begins anew"
                    );
                    return Ok(false);
                }
                Ok(Found::Unlisted) if begun.elapsed() > LISTED => {
                    return Err(FleetError::Unlisted {
                        service: self.service.to_string(),
                        address: own,
                    });
                }
                Err(failure) if begun.elapsed() > WITHOUT => {
                    tracing::warn!(
                        %failure,
                        "fleet: the API server does not say whether this fleet is still that of the Service; it goes on"
                    );
                    return Ok(true);
                }
                Ok(Found::Unlisted | Found::Changed) | Err(_) => sleep(AGAIN).await,
            }
        }
    }

    /// A pod takes a fleet that it has heard of, or that is in its directory. It says that the fleet is its own
    /// before it asks, so that nobody counts on it for another one.
    ///
    /// # Errors
    /// The API server does not tell.
    pub(super) async fn take(
        &self,
        fleet: u128,
        (own, name): (SocketAddr, &str),
    ) -> Result<Found, ApiFailure> {
        let read = self.lease().await?;
        if let Some(other) = read.as_ref().and_then(|held| held.fleet)
            && other != fleet
        {
            return Ok(Found::Other(other));
        }
        if !self.list().await?.contains(&own) {
            return Ok(Found::Unlisted);
        }
        let is_held = self.hold(read, (fleet, name)).await?;
        Ok(if is_held { Found::Same } else { Found::Changed })
    }
}

fn addresses(servers: &[Server]) -> Vec<SocketAddr> {
    servers
        .iter()
        .filter_map(|server| server.address.parse().ok())
        .collect()
}
