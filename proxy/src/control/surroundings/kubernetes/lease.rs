//! The object by which the pods of a Service agree on their fleet: a Lease with the Service's name, whose holder
//! is the fleet.

use hyper::Method;
use serde_json::{Value, json};
use time::OffsetDateTime;

use super::{
    ApiFailure,
    api::Api,
    rights::LEASES,
    watcher::{encoded, namespace_of},
};
use crate::{config::schema::Service, control::surroundings::discovery::Resolve};

/// The Lease of one Service.
pub(in crate::control) struct FleetLease {
    name: String,
    namespace: String,
    api: Api,
}

/// A Lease as it was read. Whoever changes it shows it: a change in between is then seen.
pub(in crate::control) struct Held {
    object: Value,
    /// The fleet that holds it. `None`: no proxy has written the Lease.
    pub(in crate::control) fleet: Option<u128>,
}

impl FleetLease {
    /// The Lease of this Service.
    ///
    /// # Errors
    /// This process is in no pod.
    pub(in crate::control) fn of(service: &Service, api: Api) -> Result<Self, ApiFailure> {
        Ok(Self {
            name: service.name.clone(),
            namespace: namespace_of(service)?,
            api,
        })
    }

    /// The Lease as it is now. `None`: no fleet has ever held it.
    ///
    /// # Errors
    /// The API server does not tell.
    pub(in crate::control) async fn read(&self, resolve: &impl Resolve) -> Result<Option<Held>, ApiFailure> {
        let needed = LEASES.of(&self.namespace);
        let found = self
            .api
            .object(resolve, &self.path(Some(&self.name)), needed)
            .await?;
        Ok(found.map(|object| {
            let holder = object["spec"]["holderIdentity"].as_str();
            let fleet = holder.and_then(|text| u128::from_str_radix(text, 16).ok());
            Held { object, fleet }
        }))
    }

    /// This fleet holds the Lease from now on, if nobody has changed it since it was `read`. Returns whether
    /// it does. `peer` is the name of the peer that says so, for people.
    ///
    /// # Errors
    /// The API server does not tell. It is not known then which fleet holds the Lease.
    pub(in crate::control) async fn hold(
        &self,
        resolve: &impl Resolve,
        read: Option<Held>,
        (fleet, peer): (u128, &str),
    ) -> Result<bool, ApiFailure> {
        let is_new = read.is_none();
        let mut object = match read {
            Some(held) => held.object,
            None => json!({
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": {"name": self.name, "namespace": self.namespace},
            }),
        };
        object["spec"]["holderIdentity"] = json!(format!("{fleet:032x}"));
        // The time differs each time, and so does the version of the object behind it.
        object["spec"]["renewTime"] = json!(now());
        object["metadata"]["annotations"]["proxima/peer"] = json!(peer);
        let (method, path) = match is_new {
            true => (Method::POST, self.path(None)),
            false => (Method::PUT, self.path(Some(&self.name))),
        };
        let needed = LEASES.of(&self.namespace);
        self.api.write(resolve, (method, &path), &object, needed).await
    }

    fn path(&self, name: Option<&str>) -> String {
        let all = format!(
            "/apis/coordination.k8s.io/v1/namespaces/{}/leases",
            encoded(&self.namespace)
        );
        match name {
            Some(name) => format!("{all}/{}", encoded(name)),
            None => all,
        }
    }
}

/// The time, as the API server writes it.
fn now() -> String {
    let now = OffsetDateTime::now_utc();
    format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}Z",
        now.year(),
        u8::from(now.month()),
        now.day(),
        now.hour(),
        now.minute(),
        now.second(),
        now.microsecond()
    )
}
