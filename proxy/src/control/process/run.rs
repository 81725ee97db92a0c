//! The life of the process: start, obey signals, drain, end.

use std::{pin::pin, sync::Arc, time::Duration};

use tokio::{
    runtime,
    signal::unix::{Signal, SignalKind, signal},
    time::{MissedTickBehavior, interval, sleep},
};

use super::{
    greet::{introduce, say_hello},
    pid_file::PidFile,
    start::{LogControl, Options, StartError, Started, start},
};
use crate::{
    admin::{self, Tokens},
    control::{
        Proxy,
        configuration::follow::follow,
        listening::{
            announce::announce,
            consult::answer_clients,
            drain::{drain, look_for_file},
            logins::{end_logins, try_logins},
        },
        membership::{closings::close_connections, monitor::watch_pools},
        surroundings::certificates::follow_certificates,
    },
    event_log::kind,
    frontdoor::ConfigSource,
    worker::Order,
};

/// Time between two looks at whether a worker has ended.
const LOOK: Duration = Duration::from_millis(200);
/// Time between two ticks, at which workers look at time-outs. A time-out is noticed this much late at most.
const TICK: Duration = Duration::from_millis(50);
/// Time for the last confirmations to reach the peers.
const CONFIRM: Duration = Duration::from_millis(50);

/// Serves until told to stop.
///
/// # Errors
/// The start failed; later failures are logged.
pub fn run(source: Box<dyn ConfigSource>, options: &Options) -> Result<(), StartError> {
    let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
    // Signals are taken before anything listens: a client that can connect may belong to a tool that sends a
    // signal.
    let signals = runtime.block_on(async { Signals::new(options.log.clone()) })?;
    let (io, why) = options.io.resolve()?;
    let Started {
        proxy,
        reloader,
        requests,
        events,
        writes,
        nodes,
        peering,
        questions,
    } = start(source, options, io, &runtime)?;
    let ended = runtime.block_on(async {
        // Nobody is told that all is well before the file was looked for.
        proxy.look_for_drain_file();
        let admin = serve_admin(&proxy).await?;
        admin::serve_health(&proxy)
            .await
            .map_err(|(address, source)| StartError::Health { address, source })?;
        if let Some(statistics) = options.statistics {
            let address = statistics.address;
            admin::serve_statistics(statistics, Arc::clone(&proxy))
                .await
                .map_err(|source| StartError::Statistics { address, source })?;
        }
        // A start that fails leaves the file of the process that serves as it is.
        let _pid_file = match &options.pid_file {
            None => None,
            Some(path) => Some(PidFile::write(path).map_err(|source| StartError::PidFile {
                path: path.clone(),
                source,
            })?),
        };
        say_hello(&proxy, admin.as_deref(), why);
        if options.introduce {
            introduce(&proxy, admin.as_deref());
        }
        tokio::spawn(Arc::clone(&proxy).hear_workers(events));
        tokio::spawn(Arc::clone(&proxy).hear_of_state_file(writes));
        tokio::spawn(Arc::clone(&proxy).follow_agent(nodes));
        if let Some((peering, events)) = peering {
            tokio::spawn(peering.run(Arc::clone(&proxy), events));
        }
        tokio::spawn(Arc::clone(&proxy).watch_foreign_connections());
        tokio::spawn(follow(reloader, Arc::clone(&proxy), requests));
        tokio::spawn(tick(Arc::clone(&proxy)));
        tokio::spawn(follow_certificates(Arc::clone(&proxy)));
        tokio::spawn(look_for_file(Arc::clone(&proxy)));
        tokio::spawn(drain(Arc::clone(&proxy)));
        tokio::spawn(announce(Arc::clone(&proxy)));
        tokio::spawn(close_connections(Arc::clone(&proxy)));
        tokio::spawn(watch_pools(Arc::clone(&proxy)));
        tokio::spawn(Arc::clone(&proxy).watch_near_memory());
        tokio::spawn(end_logins(Arc::clone(&proxy)));
        tokio::spawn(try_logins(Arc::clone(&proxy)));
        if let Some(door) = &options.door {
            let (door, log) = (Arc::clone(door), options.log.clone());
            tokio::spawn(admin::answer_clients(Arc::clone(&proxy), door, log, questions));
        } else {
            tokio::spawn(answer_clients(Arc::clone(&proxy), questions));
        }
        serve(&proxy, signals).await
    });
    // A disk that hangs does not keep the process from ending.
    runtime.shutdown_background();
    ended
}

/// Opens the admin port. Returns where it is; `None`: the configuration has none.
async fn serve_admin(proxy: &Arc<Proxy>) -> Result<Option<String>, StartError> {
    let (address, tls, tokens) = {
        let rooms = proxy.rooms();
        let config = rooms.configuration.config();
        let tokens = config.admin_tokens.clone().map(Tokens::new);
        (config.admin.clone(), config.admin_tls.clone(), tokens)
    };
    let Some(address) = address else {
        return Ok(None);
    };
    tokens.as_ref().map_or(Ok(()), Tokens::read)?;
    let acceptor = tls.map(|tls| proxy.certificates.acceptor(&tls)).transpose()?;
    let scheme = if acceptor.is_some() { "https" } else { "http" };
    match admin::serve(&address, (acceptor, tokens), Arc::clone(proxy)).await {
        Ok(bound) => Ok(Some(format!("{scheme}://{bound}"))),
        Err(source) => Err(StartError::Admin { address, source }),
    }
}

/// The signals that the process takes.
struct Signals {
    hangup: Signal,
    terminate: Signal,
    interrupt: Signal,
    /// The log, with the signals that change its level.
    log: Option<(Arc<dyn LogControl>, [Signal; 2])>,
    /// These signals have no meaning here. They would end the process if they were not taken, and other
    /// programs reopen their logs with them.
    unused: [Signal; 2],
}

impl Signals {
    fn new(log: Option<Arc<dyn LogControl>>) -> std::io::Result<Self> {
        let levels = || -> std::io::Result<[Signal; 2]> {
            Ok([
                signal(SignalKind::from_raw(libc::SIGTTIN))?,
                signal(SignalKind::from_raw(libc::SIGTTOU))?,
            ])
        };
        Ok(Self {
            log: log
                .map(|log| Ok::<_, std::io::Error>((log, levels()?)))
                .transpose()?,
            hangup: signal(SignalKind::hangup())?,
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            unused: [
                signal(SignalKind::user_defined1())?,
                signal(SignalKind::user_defined2())?,
            ],
        })
    }
}

/// Obeys signals until the end.
async fn serve(proxy: &Arc<Proxy>, signals: Signals) -> Result<(), StartError> {
    let Signals {
        mut hangup,
        mut terminate,
        mut interrupt,
        log,
        unused: [mut first, mut second],
    } = signals;
    let log = log.map(|(log, levels)| {
        tokio::spawn(change_levels(Arc::clone(&log), levels));
        log
    });
    let mut lost = pin!(lose_a_worker(proxy));
    let received = |signal, action| {
        if let Some(log) = &log {
            log.received(signal, action);
        }
    };
    loop {
        tokio::select! {
            // The worker's clients are gone and its listeners refuse: a fresh process serves them better.
            () = &mut lost => return Err(StartError::Worker),
            _ = hangup.recv() => {
                if let Some(log) = &log {
                    log.reopen();
                }
                tracing::info!("SIGHUP: reading the configuration again");
                proxy.request_reload();
            }
            _ = first.recv() => {
                received("10 (SIGUSR1)", "nothing is done");
                tracing::info!("SIGUSR1 has no meaning: nothing is done");
            }
            _ = second.recv() => {
                received("12 (SIGUSR2)", "nothing is done");
                tracing::info!("SIGUSR2 has no meaning: nothing is done");
            }
            _ = terminate.recv() => {
                received("15 (SIGTERM)", "draining");
                tracing::info!(target: kind::PROCESS, "SIGTERM: the process ends");
                return end(proxy, &mut interrupt).await;
            }
            () = proxy.shutdown.notified() => {
                tracing::info!(target: kind::PROCESS, "shutdown: a client ends the process");
                return end(proxy, &mut interrupt).await;
            }
            _ = interrupt.recv() => {
                received("2 (SIGINT)", "exiting");
                tracing::info!(target: kind::PROCESS, "SIGINT: stopping");
                if let Some((fleet, _)) = &proxy.fleet {
                    fleet.goodbye().await;
                }
                stop(proxy).await;
                return Ok(());
            }
        }
    }
}

/// Makes the log louder and quieter, as signals ask for it.
async fn change_levels(log: Arc<dyn LogControl>, [mut louder, mut quieter]: [Signal; 2]) {
    loop {
        tokio::select! {
            _ = louder.recv() => log.change_level(1),
            _ = quieter.recv() => log.change_level(-1),
        }
    }
}

/// Wakes the workers that have time-outs to look at. No other task of the control thread delays this.
async fn tick(proxy: Arc<Proxy>) {
    let mut tick = interval(TICK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        proxy.workers.tick();
    }
}

/// Returns when a worker has ended that was not told to.
async fn lose_a_worker(proxy: &Arc<Proxy>) {
    let mut look = interval(LOOK);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while !proxy.workers.any_ended() {
        look.tick().await;
    }
}

async fn end(proxy: &Arc<Proxy>, interrupt: &mut Signal) -> Result<(), StartError> {
    let drained = tokio::select! {
        () = proxy.drain_to_the_end() => Ok(()),
        _ = interrupt.recv() => {
            tracing::info!("SIGINT: stopping");
            Ok(())
        }
        // Its clients are never counted as gone: the drain would not end.
        () = lose_a_worker(proxy) => Err(StartError::Worker),
    };
    if let Some((fleet, _)) = &proxy.fleet {
        // What the last clients were answered is confirmed first: the others delete the keys in doubt of who
        // leaves.
        proxy.workers.tick();
        sleep(CONFIRM).await;
        // The last act: until now this proxy has kept its copy for the others.
        fleet.goodbye().await;
    }
    stop(proxy).await;
    drained
}

async fn stop(proxy: &Arc<Proxy>) {
    proxy.workers.order(|_| Order::Stop);
    proxy.workers.join();
    proxy.save_end().await;
}
