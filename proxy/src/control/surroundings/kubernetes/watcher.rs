//! Follows the endpoints of one Service: a list, and what changes behind it.

use std::{net::SocketAddr, time::Duration};

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use tokio::time::Instant;

use super::{
    ApiFailure,
    access::own_namespace,
    api::Api,
    lines::{LONGEST, Lines, whole},
    rights::SLICES,
};
use crate::{
    config::schema::{Service, ServicePort},
    control::surroundings::discovery::Resolve,
    members::endpoints::{BadAnswer, Choice, EndpointList, Listing, Slices},
};

/// Slices in a page of a list.
const PAGE: usize = 100;
/// The most bytes of a page.
const LONGEST_PAGE: usize = 4 * LONGEST;
/// The most pages of a list: so many hold more endpoints than are taken.
const PAGES: usize = 1_000;
/// Time between two parts of a list.
const PART: Duration = Duration::from_secs(10);
/// Time without a line of a watch. The API server marks the time once a minute or so.
const SILENCE: Duration = Duration::from_secs(90);
/// Time after which the API server ends a watch, in seconds, so that a way to it that has become a detour is
/// left.
const WATCH: u64 = 300;

/// Time for which a list that is older than what is known is refused: one API server of several may be late. One
/// whose store was put back to a former state stays older.
const LATER: Duration = Duration::from_secs(15);

/// Which endpoints of a Service are meant.
pub(in crate::control) type Select = fn(&Slices, &ServicePort) -> Choice;

/// Follows one Service.
pub(in crate::control) struct Watcher {
    service: Service,
    select: Select,
    api: Api,
    /// All slices, as far as they are known. `None`: they are to be listed.
    slices: Option<Slices>,
    /// What is known although a list is due.
    known: Option<Slices>,
    /// When the first list came that is older than that.
    older_since: Option<Instant>,
    watch: Option<Lines>,
    /// It has failed since it told what is known.
    has_failed: bool,
}

impl Watcher {
    pub(in crate::control) fn new(service: Service, select: Select, api: Api) -> Self {
        Self {
            service,
            select,
            api,
            slices: None,
            known: None,
            older_since: None,
            watch: None,
            has_failed: false,
        }
    }

    /// Waits until the endpoints are known, or others than before, or known again behind a failure.
    ///
    /// # Errors
    /// The API server does not tell. The next call tries again, and what was known stays known.
    pub(in crate::control) async fn next(&mut self, resolve: &impl Resolve) -> Result<Choice, ApiFailure> {
        let followed = self.follow(resolve).await;
        self.has_failed = followed.is_err();
        if let Err(failure) = &followed {
            self.watch = None;
            if let ApiFailure::Bad(bad) = failure {
                // What went before may be lost: all is listed anew.
                self.known = self.slices.take().or_else(|| self.known.take());
                self.judge_age(bad);
            }
        }
        followed
    }

    /// Forgets what is known if lists have been older for so long that they will not become younger.
    fn judge_age(&mut self, bad: &BadAnswer) {
        if !matches!(bad, BadAnswer::Older { .. }) {
            self.older_since = None;
            return;
        }
        let since = *self.older_since.get_or_insert_with(Instant::now);
        if since.elapsed() >= LATER {
            (self.known, self.older_since) = (None, None);
        }
    }

    async fn follow(&mut self, resolve: &impl Resolve) -> Result<Choice, ApiFailure> {
        let namespace = namespace_of(&self.service)?;
        if self.slices.is_none() {
            let listed = list(&self.service, &self.api, resolve).await?;
            let listed = listed.whole(self.known.as_ref())?;
            let choice = (self.select)(&listed, &self.service.port);
            self.slices = Some(listed);
            return Ok(choice);
        }
        loop {
            let Some(slices) = &mut self.slices else {
                return Err(ApiFailure::Late);
            };
            let watch = match &mut self.watch {
                Some(watch) => watch,
                None => {
                    let version = slices.version();
                    let more = format!(
                        "watch=1&allowWatchBookmarks=1&timeoutSeconds={WATCH}&resourceVersion={}",
                        encoded(version)
                    );
                    let path = path(&namespace, &self.service.name, &more);
                    let reply = self.api.get(resolve, &path, SLICES.of(&namespace)).await;
                    // A version that is no longer kept is told by a status as well.
                    let reply = reply.map_err(|failure| match failure {
                        ApiFailure::Status(410) => BadAnswer::Gone("410".to_owned()).into(),
                        other => other,
                    })?;
                    let watch = self.watch.insert(Lines::of(reply));
                    if self.has_failed {
                        return Ok((self.select)(slices, &self.service.port));
                    }
                    watch
                }
            };
            match watch.next(SILENCE).await? {
                Some(line) => {
                    if slices.hear(line)? {
                        return Ok((self.select)(slices, &self.service.port));
                    }
                }
                // Its time is over.
                None => self.watch = None,
            }
        }
    }

    /// The addresses that DNS has for the Service, each with this port. `None`: it tells none now.
    pub(in crate::control) async fn ask_dns(
        &self,
        resolve: &impl Resolve,
        port: u16,
    ) -> Option<Vec<SocketAddr>> {
        let namespace = namespace_of(&self.service).ok()?;
        // The system's search list has the domain of the cluster.
        let name = format!("{}.{namespace}.svc", self.service.name);
        let found = resolve.resolve(&name).await.ok()??;
        Some(found.into_iter().map(|ip| SocketAddr::new(ip, port)).collect())
    }
}

/// The namespace of a Service: that of this pod, if the Service does not say it.
///
/// # Errors
/// This process is in no pod.
pub(super) fn namespace_of(service: &Service) -> Result<String, ApiFailure> {
    match &service.namespace {
        Some(namespace) => Ok(namespace.clone()),
        None => own_namespace(),
    }
}

/// All endpoints of a Service. The list is consistent: it shows all that had happened when it was asked for.
///
/// # Errors
/// The API server does not tell.
pub(in crate::control) async fn list_endpoints(
    service: &Service,
    api: &Api,
    resolve: &impl Resolve,
) -> Result<EndpointList, ApiFailure> {
    let listed = list(service, api, resolve).await?.whole(None)?;
    Ok(listed.all(&service.port).list)
}

/// Lists all slices of a Service. The list is consistent, as above.
///
/// # Errors
/// The API server does not tell.
async fn list(service: &Service, api: &Api, resolve: &impl Resolve) -> Result<Listing, ApiFailure> {
    let namespace = namespace_of(service)?;
    let mut listing = Listing::of(&service.name);
    let mut more = String::new();
    for _ in 0..PAGES {
        let page = format!("limit={PAGE}&continue={}", encoded(&more));
        let path = path(&namespace, &service.name, &page);
        let reply = api.get(resolve, &path, SLICES.of(&namespace)).await?;
        let page = whole(reply, LONGEST_PAGE, PART).await?;
        match listing.page(&page)? {
            Some(next) => more = next,
            None => return Ok(listing),
        }
    }
    Err(BadAnswer::TooMany.into())
}

fn path(namespace: &str, service: &str, more: &str) -> String {
    let selector = format!("kubernetes.io/service-name={service}");
    format!(
        "/apis/discovery.k8s.io/v1/namespaces/{}/endpointslices?labelSelector={}&{more}",
        encoded(namespace),
        encoded(&selector)
    )
}

pub(super) fn encoded(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}
