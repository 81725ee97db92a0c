//! Asks the configuration endpoint of a cluster for its nodes.
//!
//! ```text
//!  endpoint ─▶ ask ─▶ NodeList ─▶ judge ─▶ known ─▶ servers of the pool
//!                                  │         └─▶ kept on disk, for a start without the endpoint
//!                                  └ gone: do the nodes of the list before still accept?
//! ```

mod ask;
mod connect;
mod failure;
mod gone;
mod judge;
mod kept;
mod tls;

use std::{net::IpAddr, sync::Arc, time::Duration};

pub use self::failure::DiscoveryFailure;
pub(in crate::control) use self::{ask::ask, kept::Keeper};
use self::{
    gone::are_gone,
    judge::{Judge, Verdict},
};
use crate::{
    config::schema::Endpoint,
    event_log::kind,
    members::{Address, discovery::NodeList},
    tls::{Certificates, Connector, TlsError},
};

/// Time until an endpoint is asked again that has failed. It is doubled until it is the interval.
const RETRY: Duration = Duration::from_secs(1);

/// Looks up hosts.
pub(in crate::control) trait Resolve: Sync {
    /// The addresses of a host. `None`: it has none, for sure.
    fn resolve(&self, host: &str) -> impl Future<Output = Result<Option<Vec<IpAddr>>, String>> + Send;
}

/// Follows one endpoint.
pub(in crate::control) struct Discovery {
    endpoint: Endpoint,
    keeper: Keeper,
    certificates: Arc<Certificates>,
    /// The last good list. `None`: there has never been one.
    known: Option<NodeList>,
    judge: Judge,
    /// The version of the last list that was passed over, which is logged once.
    passed_over: Option<u64>,
    /// Failures since the last answer.
    failures: u32,
}

impl Discovery {
    /// Begins with the list that an earlier process has kept, if it has.
    pub(in crate::control) async fn begin(
        endpoint: Endpoint,
        keeper: Keeper,
        certificates: Arc<Certificates>,
    ) -> Self {
        let known = keeper.read::<NodeList>().await;
        if let Some(list) = &known {
            let (version, nodes) = (list.version, list.nodes().len());
            tracing::info!(endpoint = %endpoint.address, version, nodes, "the list that was kept serves until the endpoint answers");
        }
        Self {
            endpoint,
            keeper,
            certificates,
            known,
            judge: Judge::default(),
            passed_over: None,
            failures: 0,
        }
    }

    /// The list in use. `None`: there has never been one.
    pub(in crate::control) fn known(&self) -> Option<&NodeList> {
        self.known.as_ref()
    }

    /// Asks once. Returns whether the list in use is another one than before. A failure leaves it as it is.
    pub(in crate::control) async fn ask(&mut self, resolve: &impl Resolve) -> Result<bool, DiscoveryFailure> {
        let answer = self.list(resolve).await;
        self.failures = match &answer {
            Ok(_) => 0,
            Err(_) => self.failures.saturating_add(1),
        };
        let list = answer?;
        if !self.is_to_be_taken(&list, resolve).await {
            return Ok(false);
        }
        self.passed_over = None;
        let is_new = self.known.as_ref() != Some(&list);
        self.known = Some(list);
        Ok(is_new)
    }

    /// Keeps the list in use for a start without the endpoint.
    pub(in crate::control) async fn keep(&self) {
        if let Some(list) = &self.known {
            self.keeper.write(list.text()).await;
        }
    }

    /// The time until the next question.
    pub(in crate::control) fn pause(&self) -> Duration {
        let interval = self.endpoint.interval;
        match self.failures {
            0 => interval,
            failures => interval.min(RETRY * 2u32.saturating_pow(failures - 1).min(1 << 16)),
        }
    }

    async fn list(&self, resolve: &impl Resolve) -> Result<NodeList, DiscoveryFailure> {
        let (addresses, port) = match Address::parse(&self.endpoint.address) {
            Some(Address::Ip(at)) => (vec![at.ip()], at.port()),
            Some(Address::Host(host, port)) => {
                let found = resolve.resolve(host).await.map_err(DiscoveryFailure::Name)?;
                (found.unwrap_or_default(), port)
            }
            // The configuration takes neither a path nor anything else.
            Some(Address::Path(_)) | None => (Vec::new(), 0),
        };
        let tls = self.connector()?;
        let mut failure = DiscoveryFailure::Name("there is no such name".to_owned());
        for ip in addresses {
            match ask((ip, port).into(), tls.as_ref()).await {
                Ok(list) => return Ok(list),
                Err(other) => failure = other,
            }
        }
        Err(failure)
    }

    /// TLS with the endpoint; `None`: it speaks plainly.
    fn connector(&self) -> Result<Option<Connector>, TlsError> {
        let Some(tls) = &self.endpoint.tls else {
            return Ok(None);
        };
        let host = self.endpoint.address.rsplit_once(':').map(|(host, _)| host);
        let host = host.map(|host| host.trim_matches(['[', ']']));
        self.certificates.connector(tls, host).map(Some)
    }

    async fn is_to_be_taken(&mut self, list: &NodeList, resolve: &impl Resolve) -> bool {
        let Some(known) = &self.known else {
            return true;
        };
        let is_taken = match self.judge.judge(known, list) {
            Verdict::Take => true,
            Verdict::Keep => false,
            Verdict::IfGone => are_gone(known.nodes(), resolve).await,
        };
        // With the same nodes nothing is passed over but a number.
        let is_other = list.nodes() != known.nodes();
        if !is_taken && is_other && self.passed_over != Some(list.version) {
            self.passed_over = Some(list.version);
            let (known, version) = (known.version, list.version);
            tracing::warn!(target: kind::SOURCE,
                endpoint = %self.endpoint.address, version, known,
                "passed over a list that is no newer than the one in use, whose nodes are still there"
            );
        }
        is_taken
    }
}
