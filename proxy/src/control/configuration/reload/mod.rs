//! From a changed file to trees in every worker, as a whole or not at all.
//!
//! ```text
//!  read ─▶ ask DNS ─▶ compile ─▶ plan ─▶ bind, permit ──────▶ apply: copies removed, trees, record
//!  └─────────────── may fail, and is undone ──────────┘      └─ cannot fail ──────────────────────┘
//! ```
//!
//! Changes are made one after another by the task in `follow`, which owns the [`Reloader`]. So no lock keeps
//! them apart.

mod apply;
mod error;
mod plan;
mod prepare;

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::{Instant, SystemTime},
};

pub use self::error::ReloadError;
use self::plan::Listener;
pub(in crate::control) use self::prepare::{Change, Preparer, RunningState, Setup};
use crate::{
    config::{
        Loaded,
        schema::Config,
        source::{self, Lists},
    },
    control::{
        Proxy, Rooms,
        configuration::{Configuration, own_copies::with_own_copies},
        surroundings::dns::{LookupFailure, Questions},
    },
    event_log::kind,
};

/// Why there is to be a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::control) enum Cause {
    /// The configuration is to be read again.
    Text,
    /// The network names other servers, or a departed copy's grace has ended.
    Servers,
    /// A drain has ended: the listeners are to be opened again.
    Listeners,
}

/// Changes the running configuration.
pub(in crate::control) struct Reloader {
    proxy: Arc<Proxy>,
    preparer: Preparer,
    /// The newest configuration was refused for want of an answer of the network. It is tried again when one
    /// comes.
    waits: bool,
}

/// What DNS has to be asked for what runs.
fn questions(rooms: &Rooms) -> Questions {
    let Configuration { loaded, servers, .. } = &rooms.configuration;
    let mut questions = Questions::of(&loaded.config, servers);
    let departed = rooms.membership.departed().servers();
    questions.extend(Questions::of(&loaded.config, &departed));
    questions
}

/// What runs, as far as a change is compared with it.
fn running(rooms: &Rooms) -> RunningState {
    let (configuration, listening) = (&rooms.configuration, &rooms.listening);
    let addresses = listening.addresses().iter().enumerate();
    let listeners = addresses.map(|(number, address)| Listener {
        address: address.clone(),
        is_open: listening.bound().get(number).is_some_and(Option::is_some),
    });
    RunningState {
        version: Arc::clone(&configuration.version),
        config: configuration.loaded.config.clone(),
        servers: configuration.servers.clone(),
        departed: rooms.membership.departed().clone(),
        hosts: configuration.hosts.clone(),
        members: rooms.membership.members().to_vec(),
        listeners: listeners.collect(),
        accepts: listening.accepts(),
    }
}

impl Reloader {
    pub(in crate::control) fn new(proxy: Arc<Proxy>, preparer: Preparer) -> Self {
        Self {
            proxy,
            preparer,
            waits: false,
        }
    }

    /// Puts the first configuration into effect.
    pub(in crate::control) fn begin(&mut self, change: Change) {
        self.proxy.apply(change);
        self.preparer.purge();
    }

    /// Changes the running configuration, or leaves it as it is. Returns whether anything has changed. It
    /// waits for DNS and for the workers.
    ///
    /// # Errors
    /// The configuration was refused, which is also logged and counted.
    pub(in crate::control) fn change(&mut self, cause: Cause) -> Result<bool, ReloadError> {
        // Every step leaves a whole state, and the next change starts from what is in effect then.
        let changed = catch_unwind(AssertUnwindSafe(|| match cause {
            Cause::Text => self.read_again(),
            Cause::Servers | Cause::Listeners => self.renew(),
        }));
        changed.unwrap_or(Err(ReloadError::Panicked))
    }

    fn read_again(&mut self) -> Result<bool, ReloadError> {
        let result = self.try_to_read();
        self.waits = result.as_ref().is_err_and(ReloadError::retry_may_help);
        {
            let configuration = &mut self.proxy.rooms().configuration;
            configuration.attempted = SystemTime::now();
            let reloads = &mut configuration.reloads;
            match &result {
                Ok(changed) => {
                    if reloads.refused.take().is_some() {
                        tracing::info!(target: kind::CONFIGURATION, version = %configuration.version, "the configuration is good again");
                    }
                    reloads.done += u64::from(*changed);
                }
                Err(error) => {
                    reloads.failed += 1;
                    reloads.refused = Some(error.to_string());
                    tracing::error!(target: kind::REFUSED, "configuration refused, the running one stays: {error}");
                }
            }
        }
        self.ask_for_what_runs();
        result
    }

    fn try_to_read(&mut self) -> Result<bool, ReloadError> {
        let names = Arc::clone(&self.proxy.names);
        let loaded = with_own_copies(self.proxy.source.load()?, self.preparer.registry.here())?;
        let mut servers = source::lists(&loaded.config)?;
        let mut questions = Questions::of(&loaded.config, &servers);
        let running = {
            let rooms = self.proxy.rooms();
            questions.extend(self::questions(&rooms));
            running(&rooms)
        };
        names.follow(&questions);
        names.wait_for_first();
        self.answered(&loaded.config, &running.config)?;
        names.list(&loaded.config, &mut servers);
        self.ask_for_hosts(&loaded.config, &servers);
        self.replace(running, loaded, servers)
    }

    /// A pool that serves is not exchanged for one without servers. A pool that has had none since the start,
    /// as nobody has answered, may go on waiting.
    fn answered(&self, config: &Config, running: &Config) -> Result<(), ReloadError> {
        for (pool, spec) in &config.pools {
            let before = running.pools.get(pool).map(|before| &before.source);
            if let Some(question) = spec.source.question()
                && before != Some(&spec.source)
                && self.proxy.names.servers(&question).is_none()
            {
                let asked = self.proxy.names.status(&question);
                return Err(ReloadError::Unanswered {
                    pool: pool.clone(),
                    name: question.name().to_owned(),
                    failure: asked
                        .and_then(|asked| asked.failure)
                        .unwrap_or(LookupFailure::Late),
                });
            }
        }
        Ok(())
    }

    /// Puts the newest answers of DNS into the running configuration, and waits no longer for departed copies
    /// whose grace has ended. Nothing else of the configuration is read again. A configuration that was
    /// refused for want of an answer is tried once more.
    fn renew(&mut self) -> Result<bool, ReloadError> {
        let (running, mut loaded) = {
            let rooms = self.proxy.rooms();
            (running(&rooms), rooms.configuration.loaded.clone())
        };
        let mut servers = running.servers.clone();
        self.proxy.names.list(&loaded.config, &mut servers);
        self.ask_for_hosts(&loaded.config, &servers);
        // They were logged when the configuration was read.
        loaded.warnings.clear();
        let result = self.replace(running, loaded, servers);
        {
            let reloads = &mut self.proxy.rooms().configuration.reloads;
            match &result {
                Ok(changed) => reloads.done += u64::from(*changed),
                Err(error) => {
                    reloads.failed += 1;
                    tracing::error!(target: kind::REFUSED,
                        "the servers or listeners cannot be changed, those before them stay: {error}"
                    );
                }
            }
        }
        if self.waits {
            return self.read_again();
        }
        self.ask_for_what_runs();
        result
    }

    /// Asks for the names of servers that the network has named, and waits for the first answers: such a
    /// server is not to be ejected for a moment.
    fn ask_for_hosts(&self, config: &Config, servers: &Lists) {
        let names = &self.proxy.names;
        let mut questions = Questions::of(config, servers);
        if !names.asks_for_hosts(&questions) {
            questions.extend(self::questions(&self.proxy.rooms()));
            names.follow(&questions);
            names.wait_for_first();
        }
    }

    /// Withdraws questions that nothing running needs, unless a refused configuration waits for their
    /// answers.
    fn ask_for_what_runs(&self) {
        if !self.waits {
            let questions = questions(&self.proxy.rooms());
            self.proxy.names.follow(&questions);
        }
    }

    /// Prepares a change, and applies it if anything differs from what runs.
    fn replace(
        &mut self,
        running: RunningState,
        loaded: Loaded,
        servers: Lists,
    ) -> Result<bool, ReloadError> {
        let departed = running.departed.after(
            (&running.config, &running.servers),
            (&loaded.config, &servers),
            Instant::now(),
        );
        let mut questions = Questions::of(&loaded.config, &servers);
        questions.extend(Questions::of(&loaded.config, &departed.servers()));
        let setup = Setup {
            loaded,
            servers,
            departed,
            hosts: self.proxy.names.addresses(&questions),
        };
        let change = self.preparer.prepare(&running, setup)?;
        // It holds members, which are forgotten when nobody does.
        drop(running);
        if change.is_empty() {
            return Ok(false);
        }
        self.proxy.apply(change);
        self.preparer.purge();
        Ok(true)
    }
}
