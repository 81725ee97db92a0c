//! Health listeners: what load balancers ask. Every few milliseconds the control thread decides anew, so that
//! an answer costs the same however many members there are.

use std::{io, net::IpAddr, sync::Arc, time::Duration};

use axum::{Router, extract::State, http::StatusCode};
use tokio::{
    net::TcpListener,
    sync::watch,
    task::JoinHandle,
    time::{Instant, sleep},
};

use super::connections;
use crate::{
    client::listen_alone,
    config::schema::{HealthCheck, HealthListener},
    control::{Proxy, Unready},
    event_log::kind,
};

/// Time from one decision to the next, far less than a check may take.
const LOOK: Duration = Duration::from_millis(20);
/// The same where there is no health listener, which a new configuration may bring.
const SELDOM: Duration = Duration::from_millis(200);
/// Time until an address that could not be listened on is tried again.
const AGAIN: Duration = Duration::from_secs(1);

/// Why clients are not to be sent here; `None`: they may be.
type Verdict = Option<Unready>;

/// Serves the health listeners of the running configuration, whatever it becomes.
///
/// # Errors
/// One of the first listeners cannot be bound: its address, and why.
pub async fn serve(proxy: &Arc<Proxy>) -> Result<(), (String, io::Error)> {
    let mut health = Health {
        proxy: Arc::clone(proxy),
        checks: Vec::new(),
    };
    match health.look().await.pop() {
        Some(failed) => Err(failed),
        None => {
            tokio::spawn(health.follow());
            Ok(())
        }
    }
}

struct Health {
    proxy: Arc<Proxy>,
    checks: Vec<Check>,
}

impl Health {
    async fn follow(mut self) {
        loop {
            sleep(if self.checks.is_empty() { SELDOM } else { LOOK }).await;
            for (address, error) in self.look().await {
                tracing::error!(%address, %error, "cannot listen for checks of health; it is tried again");
            }
        }
    }

    /// Decides anew, and opens and closes listeners accordingly. Returns the addresses that could not be
    /// bound.
    async fn look(&mut self) -> Vec<(String, io::Error)> {
        let wanted = self.proxy.health_listeners();
        let mut kept = Vec::with_capacity(wanted.len());
        for mut check in std::mem::take(&mut self.checks) {
            match wanted.contains(&check.listener) {
                true => kept.push(check),
                false => check.close().await,
            }
        }
        for listener in wanted {
            if !kept.iter().any(|check| check.listener == listener) {
                kept.push(Check::new(listener));
            }
        }
        self.checks = kept;
        if self.checks.is_empty() {
            return Vec::new();
        }
        let (unready, pools) = (self.proxy.unready(), self.proxy.pools());
        let mut failed = Vec::new();
        for check in &mut self.checks {
            let least = &check.listener.pools;
            let of_pools = || Proxy::check_pools(&pools, least).err();
            let verdict = unready.clone().or_else(of_pools);
            if let Err(error) = check.follow(verdict).await {
                failed.push((check.listener.address.clone(), error));
            }
        }
        failed
    }
}

/// One health listener.
struct Check {
    listener: HealthListener,
    verdict: watch::Sender<Verdict>,
    /// Answers. `None`: the port is closed.
    task: Option<JoinHandle<()>>,
    not_before: Option<Instant>,
}

impl Check {
    fn new(listener: HealthListener) -> Self {
        Self {
            listener,
            verdict: watch::Sender::new(None),
            task: None,
            not_before: None,
        }
    }

    /// Answers by this verdict from now on.
    ///
    /// # Errors
    /// The address cannot be bound.
    async fn follow(&mut self, verdict: Verdict) -> io::Result<()> {
        let is_well = verdict.is_none();
        let turns = self.verdict.borrow().is_none() != is_well;
        if turns {
            let (address, why) = (
                &self.listener.address,
                verdict.as_ref().map(tracing::field::display),
            );
            tracing::info!(target: kind::HEALTH, %address, why, "{}", if is_well { "health: well" } else { "health: unwell" });
        }
        self.verdict.send_if_modified(|before| {
            let differs = *before != verdict;
            *before = verdict;
            differs
        });
        match self.listener.check == HealthCheck::Http || is_well {
            true => self.open(),
            false => {
                self.close().await;
                Ok(())
            }
        }
    }

    fn open(&mut self) -> io::Result<()> {
        let waits = self.not_before.is_some_and(|time| Instant::now() < time);
        if self.task.is_some() || waits {
            return Ok(());
        }
        self.not_before = Some(Instant::now() + AGAIN);
        let socket = listen_alone(&self.listener.address)?;
        let listener = TcpListener::from_std(socket.into())?;
        self.not_before = None;
        self.task = Some(match self.listener.check {
            HealthCheck::Http => {
                let router = Router::new()
                    .fallback(answer)
                    .with_state(self.verdict.subscribe());
                let allow = self.listener.allow.clone();
                let may =
                    move |ip: IpAddr| allow.is_empty() || allow.iter().any(|network| network.contains(ip));
                tokio::spawn(connections::answer(listener, router, may))
            }
            HealthCheck::Tcp => tokio::spawn(accept(listener)),
        });
        Ok(())
    }

    /// Closes the port. Returns when it is closed.
    async fn close(&mut self) {
        if let Some(task) = self.task.take() {
            task.abort();
            // It was cancelled: there is no other result.
            let _ = task.await;
        }
    }
}

/// One line on any path.
async fn answer(State(verdict): State<watch::Receiver<Verdict>>) -> (StatusCode, String) {
    match &*verdict.borrow() {
        None => (StatusCode::OK, "well\n".to_owned()),
        Some(why) => (StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")),
    }
}

/// Accepts and closes connections.
async fn accept(listener: TcpListener) {
    loop {
        if listener.accept().await.is_err() {
            // There is no descriptor for it now.
            sleep(LOOK).await;
        }
    }
}
