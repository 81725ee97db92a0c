//! Questions over the network: lists of servers, each asked for by a task of its own, and host names in
//! server addresses, asked for in rounds by one task. Lists come from DNS, from configuration endpoints
//! (`discovery`), or from the API server of Kubernetes (`kubernetes`). The newest good answer is kept; a
//! failure changes only what operators see.
//!
//! ```text
//!  configuration ─▶ questions ─▶ follow ─┬▶ a task for each list ─▶ ask ─▶ answer ─▶ newest ─▶ trees
//!                                        └▶ a task for all hosts ─▶ find ────────────▶ │
//!                                                                differs from before ─▶ changed ─▶ renew
//! ```

mod answer;
mod ask;
mod counts;
mod failure;
mod find;
mod hosts;
mod lookup_status;
mod questions;
mod resolver;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc},
    time::Duration,
};

use tokio::{
    runtime::Handle,
    sync::Notify,
    task::AbortHandle,
    time::{Instant, MissedTickBehavior, interval, sleep, timeout},
};

use self::{ask::Asker, hosts::Hosts, lookup_status::LookupStatus};
pub use self::{failure::LookupFailure, lookup_status::LookupCounts};
pub(in crate::control) use self::{
    find::System,
    questions::{Questions, hosts},
};
use crate::{
    config::{
        ConfigError,
        schema::{Config, Dns, Endpoint, Question, Server, Service, ServicePort},
        source::{self, Lists},
    },
    control::surroundings::{
        discovery::{Discovery, Keeper},
        kubernetes::{Api, Pauses, Select, Watcher},
    },
    event_log::kind,
    members::{
        discovery::NodeList,
        endpoints::{Choice, EndpointList, Slices},
    },
    tls::Certificates,
};

/// Time that a configuration waits for the first answers of its names.
const FIRST: Duration = Duration::from_secs(2);
/// Answers that come within this time take effect together, as one change. No copy is then alone for a
/// moment.
const SETTLE: Duration = Duration::from_millis(50);
/// Time without the API server of Kubernetes after which DNS is asked for the endpoints of its Services.
const WITHOUT: Duration = Duration::from_secs(5);
/// Shortest time between two questions to an endpoint, however many members are lost.
const SHORTEST: Duration = Duration::from_secs(1);

/// The look-ups of all configurations that run or are tried.
pub(in crate::control) struct Names {
    runtime: Handle,
    /// Whether lists are kept on disk.
    keeps: bool,
    /// For endpoints that speak TLS.
    certificates: Arc<Certificates>,
    known: Mutex<BTreeMap<Question, ListLookup>>,
    hosts: Mutex<Hosts>,
    /// Notified when an answer differs from the one before.
    changed: Notify,
    /// Notified when a question was answered, well or badly.
    asked: Notify,
}

/// The look-up of one list of servers.
struct ListLookup {
    status: LookupStatus<Vec<Server>>,
    task: AbortHandle,
    /// Notified when a member was lost: an endpoint is asked at once.
    lost: Arc<Notify>,
}

impl Names {
    /// Look-ups of a configuration that is to run.
    pub(in crate::control) fn new(runtime: Handle) -> Self {
        Self {
            keeps: true,
            ..Self::offline(runtime)
        }
    }

    /// Look-ups of a configuration that is only looked at. They leave no file behind.
    pub(in crate::control) fn offline(runtime: Handle) -> Self {
        Self {
            runtime,
            keeps: false,
            certificates: Arc::default(),
            known: Mutex::default(),
            hosts: Mutex::default(),
            changed: Notify::new(),
            asked: Notify::new(),
        }
    }

    /// The certificates of the process.
    pub(in crate::control) fn certificates(&self) -> &Arc<Certificates> {
        &self.certificates
    }

    /// The API server of Kubernetes.
    pub(in crate::control) fn api(&self) -> Api {
        Api::new(Arc::clone(&self.certificates))
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<Question, ListLookup>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks these questions from now on, and no others.
    pub(in crate::control) fn follow(self: &Arc<Self>, questions: &Questions) {
        self.follow_hosts(&questions.hosts);
        let mut known = self.known();
        known.retain(|question, known| {
            let wanted = questions.lists.contains(question);
            if !wanted {
                known.task.abort();
            }
            wanted
        });
        for question in &questions.lists {
            known.entry(question.clone()).or_insert_with(|| {
                let (names, lost) = (Arc::clone(self), Arc::<Notify>::default());
                let task = match question.clone() {
                    Question::Dns(question) => self.runtime.spawn(names.ask(question)),
                    Question::Endpoint(endpoint) => {
                        self.runtime.spawn(names.discover(endpoint, Arc::clone(&lost)))
                    }
                    Question::Service(service) => {
                        let keep = service.to_string();
                        self.runtime
                            .spawn(names.watch(question.clone(), service, (Slices::choose, keep)))
                    }
                    Question::Peers(service) => {
                        let keep = format!("peers of {service}");
                        self.runtime
                            .spawn(names.watch(question.clone(), service, (Slices::all, keep)))
                    }
                };
                ListLookup {
                    status: LookupStatus::default(),
                    task: task.abort_handle(),
                    lost,
                }
            });
        }
    }

    /// A member of the list that answers this question was lost. Its endpoint may know more.
    pub(in crate::control) fn lost_member(&self, question: &Question) {
        if let Some(known) = self.known().get(question) {
            known.lost.notify_one();
        }
    }

    /// Waits until each question has been answered once, for [`FIRST`] at most.
    pub(in crate::control) async fn first(&self) {
        let all = async {
            loop {
                let mut asked = std::pin::pin!(self.asked.notified());
                asked.as_mut().enable();
                let lists = self.known().values().all(|known| known.status.is_asked());
                if lists && self.hosts().known.values().all(LookupStatus::is_asked) {
                    return;
                }
                asked.await;
            }
        };
        // A question that is late shows as such to its reader.
        let _ = timeout(FIRST, all).await;
    }

    /// The same, for a thread that may wait. It returns early when the process ends.
    pub(in crate::control) fn wait_for_first(self: &Arc<Self>) {
        let (done, all) = mpsc::channel::<()>();
        let names = Arc::clone(self);
        self.runtime.spawn(async move {
            names.first().await;
            drop(done);
        });
        let _ = all.recv();
    }

    /// Asks the questions of a configuration, waits for the first answers, and returns the servers of its
    /// pools.
    pub(in crate::control) async fn begin(self: &Arc<Self>, config: &Config) -> Result<Lists, ConfigError> {
        let mut servers = source::lists(config)?;
        self.follow(&Questions::of(config, &servers));
        self.first().await;
        self.list(config, &mut servers);
        let questions = Questions::of(config, &servers);
        if !self.asks_for_hosts(&questions) {
            // Endpoints have named servers by their names.
            self.follow(&questions);
            self.first().await;
        }
        Ok(servers)
    }

    /// Whether every host of these questions is asked for.
    pub(in crate::control) fn asks_for_hosts(&self, questions: &Questions) -> bool {
        let hosts = self.hosts();
        questions.hosts.iter().all(|host| hosts.known.contains_key(host))
    }

    /// Returns when an answer differs from the one before.
    pub(in crate::control) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Waits for answers that come along with the last one.
    pub(in crate::control) async fn settled(&self) {
        sleep(SETTLE).await;
    }

    /// Puts the servers that the network names into `servers`; other lists stay as they are.
    pub(in crate::control) fn list(&self, config: &Config, servers: &mut Lists) {
        for (pool, spec) in &config.pools {
            if let Some(question) = spec.source.question()
                && let Some(named) = self.servers(&question)
            {
                servers.insert(pool.clone(), named);
            }
        }
    }

    /// A line for each pool that has no servers because nobody has named any, with the reason.
    pub(in crate::control) fn explain(&self, config: &Config, servers: &Lists) -> String {
        let waits = config.pools.iter().filter_map(|(pool, spec)| {
            let question = spec.source.question()?;
            if !servers.get(pool).is_none_or(Vec::is_empty) {
                return None;
            }
            let failure = self.status(&question).and_then(|asked| asked.failure);
            let failure = failure.unwrap_or(LookupFailure::Late);
            let (asked, name) = (question.asked(), question.name());
            Some(format!(
                "pool {pool} has no servers: {asked} has named none for {name} ({failure})\n"
            ))
        });
        waits.collect()
    }

    /// The newest good answer. `None`: there has never been one.
    pub(in crate::control) fn servers(&self, question: &Question) -> Option<Vec<Server>> {
        self.known().get(question)?.status.newest.clone()
    }

    /// The counts of this question. `None`: nobody asks it.
    pub(in crate::control) fn status(&self, question: &Question) -> Option<LookupCounts> {
        self.known().get(question).map(|known| known.status.asked.clone())
    }

    async fn ask(self: Arc<Self>, dns: Dns) {
        let mut asker = Asker::new(dns.clone());
        let mut next = interval(dns.interval);
        next.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let question = Question::Dns(dns);
        loop {
            next.tick().await;
            let answer = asker.ask().await;
            if !self.record(&question, answer, None) {
                return;
            }
        }
    }

    /// Asks an endpoint again and again, at once when a member `lost` is told of.
    async fn discover(self: Arc<Self>, endpoint: Endpoint, lost: Arc<Notify>) {
        let shortest = SHORTEST.min(endpoint.interval);
        let question = Question::Endpoint(endpoint.clone());
        let keeper = Keeper::new(endpoint.keep.as_deref(), &endpoint.address, self.keeps);
        let certificates = Arc::clone(&self.certificates);
        let mut discovery = Discovery::begin(endpoint, keeper, certificates).await;
        if let Some(list) = discovery.known()
            && let Some(known) = self.known().get_mut(&question)
        {
            known.status.newest = Some(list.servers());
            known.status.asked.version = Some(list.version);
        }
        let mut system = System::default();
        loop {
            let answer = discovery.ask(&system.read()).await;
            let is_new = matches!(answer, Ok(true));
            let servers = || discovery.known().map_or_else(Vec::new, NodeList::servers);
            let version = discovery.known().map(|list| list.version);
            let answer = answer.map(|_| servers()).map_err(LookupFailure::from);
            if !self.record(&question, answer, version) {
                return;
            }
            if is_new {
                discovery.keep().await;
            }
            sleep(shortest).await;
            let _ = timeout(discovery.pause().saturating_sub(shortest), lost.notified()).await;
        }
    }

    /// Follows a Service at the API server, which answers this question by these of its endpoints. What is
    /// known serves while that does not answer, and then what DNS tells.
    async fn watch(self: Arc<Self>, question: Question, service: Service, (select, keep): (Select, String)) {
        let keeper = Keeper::new(service.keep.as_deref(), &keep, self.keeps);
        let mut known: EndpointList = keeper.read().await.unwrap_or_default();
        if !known.endpoints().is_empty() {
            let servers = known.endpoints().len();
            tracing::info!(%service, servers, "the list that was kept serves until the API server answers");
            self.know(&question, known.servers());
        }
        let mut watcher = Watcher::new(service.clone(), select, self.api());
        let (mut pauses, mut without) = (Pauses::default(), None);
        let mut system = System::default();
        loop {
            let answer = watcher.next(&system.read()).await;
            if let Ok(choice) = &answer {
                tell(&service, choice);
                if known != choice.list {
                    known = choice.list.clone();
                    keeper.write(known.text()).await;
                }
            }
            let now = std::time::Instant::now();
            let pause = match &answer {
                Ok(_) => {
                    pauses.end(now);
                    without = None;
                    Duration::ZERO
                }
                Err(_) => {
                    without.get_or_insert_with(Instant::now);
                    pauses.next(now)
                }
            };
            let answer = answer
                .map(|choice| choice.list.servers())
                .map_err(LookupFailure::from);
            if !self.record(&question, answer, None) {
                return;
            }
            let until = Instant::now() + pause;
            while Instant::now() < until {
                if without.is_some_and(|since| since.elapsed() >= WITHOUT)
                    && let Some(port) = port_of(&service, &known)
                    && let Some(told) = watcher.ask_dns(&system.read(), port).await
                {
                    self.know(&question, known.as_told_by_dns(&told).servers());
                }
                sleep(until.saturating_duration_since(Instant::now()).min(Dns::INTERVAL)).await;
            }
        }
    }

    /// Takes these servers for the newest answer, although the one who is asked has not told them.
    fn know(&self, question: &Question, servers: Vec<Server>) {
        let mut known = self.known();
        let Some(known) = known.get_mut(question) else {
            return;
        };
        if known.status.newest.as_ref() != Some(&servers) {
            known.status.newest = Some(servers);
            self.changed.notify_one();
        }
    }

    /// Records the answer to a question. Returns whether it is still asked.
    fn record(
        &self,
        question: &Question,
        answer: Result<Vec<Server>, LookupFailure>,
        version: Option<u64>,
    ) -> bool {
        let is_new = match self.known().get_mut(question) {
            Some(known) => {
                known.status.asked.version = version;
                record(question, &mut known.status, answer)
            }
            None => return false,
        };
        if is_new {
            self.changed.notify_one();
        }
        self.asked.notify_waiters();
        true
    }
}

/// The port of the endpoints of a Service. `None`: it is not known.
fn port_of(service: &Service, known: &EndpointList) -> Option<u16> {
    match &service.port {
        ServicePort::Number(port) => Some(*port),
        _ => Some(known.endpoints().first()?.at.port()),
    }
}

/// Logs what operators should know of the endpoints of a Service.
fn tell(service: &Service, choice: &Choice) {
    if choice.is_last_resort {
        tracing::warn!(target: kind::SOURCE, %service, "no endpoint serves: those that are not about to end are asked all the same");
    }
    if choice.without_port > 0 {
        let endpoints = choice.without_port;
        tracing::warn!(
            %service, endpoints,
            "endpoints do not have the port, or have several. Write its name or number: `NAME:PORT`"
        );
    }
}

/// Records an answer and logs what operators should know. Returns whether the servers differ.
fn record(
    question: &Question,
    status: &mut LookupStatus<Vec<Server>>,
    answer: Result<Vec<Server>, LookupFailure>,
) -> bool {
    let (asked, name) = (question.asked(), question.name());
    let change = status.record(answer);
    let servers = status.newest.as_ref().map_or(0, Vec::len);
    if let Some(failure) = change.fails {
        tracing::warn!(target: kind::SOURCE, %name, %failure, servers, "{asked} fails; the servers that are known stay");
    }
    if change.again {
        tracing::info!(target: kind::SOURCE, %name, servers, "{asked} answers again");
    }
    change.new
}
