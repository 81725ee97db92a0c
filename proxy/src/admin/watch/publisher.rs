//! Tells all watchers the same, once a second. It works only while somebody watches, or while the configuration has
//! hot keys counted all the time.
#![allow(
    clippy::disallowed_types,
    reason = "watchers come, go and are told beside the requests"
)]

use std::{
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use axum::body::Body;
use serde_json::Value;
use tokio::{
    task::spawn_blocking,
    time::{MissedTickBehavior, interval},
};

use super::{document::Recorder, message, patch, traffic::Traffic, watcher::Watcher};
use crate::{
    admin::{connections::Lasts, sampling::Sampling},
    control::Proxy,
};

/// Watchers at a time.
const MOST: usize = 16;
/// Time between two documents.
const PACE: Duration = Duration::from_secs(1);

/// Tells watchers what changes.
#[derive(Clone)]
pub(in crate::admin) struct Publisher(Arc<Shared>);

struct Shared {
    proxy: Arc<Proxy>,
    sampling: Sampling,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    watchers: Vec<Watcher>,
    /// A task tells the watchers.
    runs: bool,
    /// What the next document is made with, while no task has it.
    recorder: Option<Recorder>,
}

impl Publisher {
    pub(in crate::admin) fn new(proxy: &Arc<Proxy>, sampling: &Sampling) -> Self {
        let shared = Arc::new(Shared {
            proxy: Arc::clone(proxy),
            sampling: sampling.clone(),
            state: Mutex::default(),
        });
        tokio::spawn(follow(Arc::clone(&shared)));
        Self(shared)
    }

    /// Takes one more who watches by this answer. `since`: the number of the last event that it knows; `None`: it wants those
    /// that come from now on. Returns `None` if there are too many watchers.
    pub(super) fn watch(&self, since: Option<u64>, samples: bool, answer: Lasts) -> Option<Body> {
        let events = self.0.proxy.events();
        let mut state = self.0.state();
        state.watchers.retain(|watcher| !watcher.has_gone());
        if state.watchers.len() >= MOST {
            return None;
        }
        let told = since.unwrap_or_else(|| *events.newest().borrow());
        let (mut watcher, body) = Watcher::new(told, samples, answer);
        watcher.tell(events);
        state.watchers.push(watcher);
        self.0.begin(&mut state);
        Some(body)
    }
}

impl Shared {
    /// Tells watchers, if no task does so yet.
    fn begin(self: &Arc<Self>, state: &mut State) {
        if !mem::replace(&mut state.runs, true) {
            tokio::spawn(tell(Arc::clone(self)));
        }
    }

    /// Does somebody watch, and are samples of requests wanted?
    fn wants(&self) -> (bool, bool) {
        let counts = self.proxy.counts_hot_keys();
        let state = self.state();
        let wants_samples = counts || state.watchers.iter().any(|watcher| watcher.samples);
        (!state.watchers.is_empty(), wants_samples)
    }

    /// What counts samples: as before, or one that begins now. `None`: none are wanted.
    fn followed(&self, wants_samples: bool, traffic: Option<Traffic>) -> Option<Traffic> {
        wants_samples.then(|| traffic.unwrap_or_else(|| Traffic::new(self.sampling.follow())))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Begins to count hot keys when a configuration takes effect that says so: the event log tells of each.
async fn follow(shared: Arc<Shared>) {
    let mut newest = shared.proxy.events().newest();
    loop {
        if shared.proxy.counts_hot_keys() {
            shared.begin(&mut shared.state());
        }
        if newest.changed().await.is_err() {
            return;
        }
    }
}

/// Tells the watchers until there are none, and hot keys need not be counted.
async fn tell(shared: Arc<Shared>) {
    let mut recorder = shared.state().recorder.take().unwrap_or_default();
    let mut pace = interval(PACE);
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut newest = shared.proxy.events().newest();
    newest.mark_unchanged();
    let (mut before, mut traffic) = (Value::Null, None);
    loop {
        let is_time = tokio::select! {
            _ = pace.tick() => true,
            Ok(()) = newest.changed() => false,
        };
        let (is_watched, wants_samples) = shared.wants();
        if !is_time {
            let events = shared.proxy.events();
            shared.state().watchers.retain_mut(|watcher| watcher.tell(events));
        } else if !is_watched {
            traffic = shared.followed(wants_samples, traffic);
            traffic.iter_mut().for_each(Traffic::count);
        } else {
            traffic = shared.followed(wants_samples, traffic);
            // The workers are asked for their metrics, which would block this thread.
            let proxy = Arc::clone(&shared.proxy);
            let made = spawn_blocking(move || {
                let mut document = recorder.document(&proxy);
                if let Some(traffic) = &mut traffic {
                    traffic.count();
                    document["hot_keys"] = traffic.hot_keys(proxy.sampled_keys());
                    document["edges"] = traffic.edges();
                }
                let change = patch::between(&before, &document);
                let whole = message::state(&document);
                let change = change.as_ref().map(message::change);
                ((recorder, traffic), document, whole, change)
            });
            // It was cancelled with the process, or has panicked, which is logged: the next watcher begins anew.
            let Ok(made) = made.await else { break };
            let (whole, change);
            ((recorder, traffic), before, whole, change) = made;
            shared.state().watchers.retain_mut(|watcher| {
                if !watcher.has_document {
                    watcher.begin(&whole);
                    return true;
                }
                change.as_ref().is_none_or(|change| watcher.send(change))
            });
        }
        let counts = shared.proxy.counts_hot_keys();
        let mut state = shared.state();
        state.watchers.retain(|watcher| !watcher.has_gone());
        if state.watchers.is_empty() && !counts {
            state.recorder = Some(recorder);
            state.runs = false;
            return;
        }
    }
    let mut state = shared.state();
    state.watchers.clear();
    state.runs = false;
}
