//! Leads clients away: while a file is there, while an operator wants it, and at the end of the process.
//!
//! ```text
//!  file, call, SIGTERM ─▶ unwell, all are served ──delay──▶ no new clients ──limit──▶ the rest is cut off
//!  no cause is left    ─▶ listeners are opened ─▶ well
//! ```
//!
//! In a fleet this concerns clients only: the proxy keeps its copy for the others until it ends.

use std::{
    sync::{
        Arc,
        mpsc::{self, TryRecvError},
    },
    time::Duration,
};

use tokio::{
    sync::watch,
    time::{MissedTickBehavior, interval, sleep, timeout},
};

use crate::{config::schema, control::Proxy, embedded::Connections, worker::Order};

use crate::event_log::kind;

/// Time between two looks for the file.
const LOOK: Duration = Duration::from_millis(100);
/// Time between two looks whether clients are left.
const LEFT: Duration = Duration::from_millis(20);
/// Time until listeners that could not be opened again are tried once more.
const AGAIN: Duration = Duration::from_secs(1);

/// What wants a drain, and how far it has got.
pub(in crate::control) struct Drain {
    causes: watch::Sender<Causes>,
    phase: watch::Sender<Phase>,
}

impl Drain {
    pub(in crate::control) fn new() -> Self {
        Self {
            causes: watch::Sender::default(),
            phase: watch::Sender::new(Phase::Serves),
        }
    }
}

/// What wants a drain. It ends when nothing does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Causes {
    file: bool,
    call: bool,
    end: bool,
}

impl Causes {
    fn any(&self) -> bool {
        self.file || self.call || self.end
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Serves,
    /// Everybody is served, and load balancers are told to send nobody.
    Unwell,
    /// No new clients; each is closed when nothing is due to it.
    Leaves,
    /// No clients.
    Empty,
    /// The listeners are being opened again.
    Returns,
}

impl Proxy {
    /// Why the proxy drains, or does not accept clients again yet. `None`: it does not drain.
    pub fn draining(&self) -> Option<String> {
        let causes = *self.drain.causes.borrow();
        let file = self.drain_settings().file.filter(|_| causes.file);
        match causes {
            Causes { end: true, .. } => Some("the process ends".into()),
            Causes { call: true, .. } => Some("an operator has asked for it".into()),
            Causes { file: true, .. } => {
                let file = file.map(|file| file.display().to_string()).unwrap_or_default();
                Some(format!("the file {} is there", file.escape_debug()))
            }
            _ if *self.drain.phase.borrow() != Phase::Serves => {
                Some("listeners are being opened again".into())
            }
            _ => None,
        }
    }

    /// Drains from now on, or no longer, because an operator asks for it.
    pub fn set_draining(&self, drains: bool) {
        self.drain.causes.send_modify(|causes| causes.call = drains);
    }

    /// Drains for the end of the process. Returns when no client is left.
    pub(in crate::control) async fn drain_to_the_end(&self) {
        self.drain.causes.send_modify(|causes| causes.end = true);
        // It fails only when the proxy is gone.
        let _ = self
            .drain
            .phase
            .subscribe()
            .wait_for(|phase| *phase == Phase::Empty)
            .await;
    }

    /// Looks whether there is the file that asks for a drain. A look that fails changes nothing.
    pub(in crate::control) fn look_for_drain_file(&self) {
        let there = match self.drain_settings().file.map(|file| file.try_exists()) {
            None => false,
            Some(Ok(there)) => there,
            Some(Err(_)) => return,
        };
        self.drain
            .causes
            .send_if_modified(|causes| std::mem::replace(&mut causes.file, there) != there);
    }

    fn drain_settings(&self) -> schema::Drain {
        self.rooms().configuration.config().drain.clone()
    }

    /// Has no clients accepted any more, and returns when all workers know it.
    async fn stop_clients(&self) {
        let (done, all) = mpsc::channel();
        {
            // A change under way opens no listener after this.
            let listening = &mut self.rooms().listening;
            listening.accepts = false;
            listening.bound.fill(None);
            self.register.listening(&listening.bound);
            self.workers.order(|_| Order::Drain { done: done.clone() });
        }
        drop(done);
        while all.try_recv() != Err(TryRecvError::Disconnected) {
            sleep(LEFT).await;
        }
    }

    /// Returns when no client is left.
    async fn clients_have_gone(&self) {
        // Clients in the queues of the closed listeners are accepted first.
        sleep(LEFT).await;
        while self.register.current() > 0 {
            // What waits for a time-out need not wait for the next tick.
            self.workers.tick();
            sleep(LEFT).await;
        }
    }

    /// Accepts clients again. Returns when the listeners are open, or a drain is wanted again.
    async fn accept_clients(&self, causes: &mut watch::Receiver<Causes>) {
        self.rooms().listening.accepts = true;
        self.workers.order(|_| Order::Resume);
        while self.open_listeners_again().await.is_err() {
            if timeout(AGAIN, causes.wait_for(Causes::any)).await.is_ok() {
                return;
            }
        }
    }

    /// Returns when nothing wants a drain any more, or after this time. Returns whether the drain goes on.
    async fn wanted_for(causes: &mut watch::Receiver<Causes>, time: Duration) -> bool {
        timeout(time, causes.wait_for(|causes| !causes.any()))
            .await
            .is_err()
    }

    /// Stops clients. Returns `true` when they have gone, and `false` if nothing wants a drain any more
    /// before.
    async fn lead_clients_away(&self, causes: &mut watch::Receiver<Causes>) -> bool {
        let limit = self.drain_settings().limit;
        self.stop_clients().await;
        tracing::info!(target: kind::DRAIN, ?limit, "no new clients; each is closed when nothing is due to it");
        let is_late = tokio::select! {
            () = self.clients_have_gone() => {
                tracing::info!(target: kind::DRAIN, "drained: no client is left");
                return true;
            }
            goes_on = Self::wanted_for(causes, limit) => goes_on,
        };
        if is_late {
            tracing::warn!(target: kind::DRAIN, "clients are still connected after {limit:?}: cut off");
            self.workers.order(|_| Order::CutOff);
            self.clients_have_gone().await;
        }
        is_late
    }
}

/// Follows what wants a drain, until the process ends.
pub(in crate::control) async fn drain(proxy: Arc<Proxy>) {
    let mut causes = proxy.drain.causes.subscribe();
    let enter = |next| proxy.drain.phase.send_modify(|phase| *phase = next);
    // It fails only when the proxy is gone.
    while causes.wait_for(Causes::any).await.is_ok() {
        enter(Phase::Unwell);
        let delay = proxy.drain_settings().delay;
        tracing::info!(target: kind::DRAIN, why = proxy.draining(), ?delay, "draining");
        if Proxy::wanted_for(&mut causes, delay).await {
            enter(Phase::Leaves);
            if proxy.lead_clients_away(&mut causes).await {
                enter(Phase::Empty);
                let _ = causes.wait_for(|causes| !causes.any()).await;
            }
            enter(Phase::Returns);
            proxy.accept_clients(&mut causes).await;
        }
        enter(Phase::Serves);
        tracing::info!(target: kind::DRAIN, "clients are accepted again");
    }
}

/// Looks for the file that asks for a drain, until the process ends.
pub(in crate::control) async fn look_for_file(proxy: Arc<Proxy>) {
    let mut look = interval(LOOK);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        look.tick().await;
        proxy.look_for_drain_file();
    }
}
