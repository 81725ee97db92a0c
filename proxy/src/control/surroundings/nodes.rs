//! Follows the node agent, which tells on which NUMA node of this host clients and servers are.
//!
//! ```text
//!  agent ─ a line of JSON for each change ─▶ read ─▶ localities ─▶ orders of `nearest`
//!                                                   ─▶ workers, between two turns
//! ```
//!
//! The agent is trusted with distances and nothing else: whatever it sends, or does not send, only changes
//! which of several servers is asked first. Its socket must belong to root or to this process's user, a
//! snapshot is bounded in bytes and in time, and none is taken more often than every 100 ms. Where it is gone
//! its last word holds for `grace`.

use std::{
    convert::Infallible,
    future::pending,
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use rustix::process::geteuid;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, BufReader},
    net::UnixStream,
    sync::watch,
    time::{Instant, sleep, sleep_until, timeout},
};

use crate::{
    config::schema::Nodes,
    control::{Proxy, Rooms},
    event_log::kind,
    members::{BadSnapshot, Localities, Machine, SNAPSHOT_BYTES},
    random::Random,
    worker::Order,
};

/// The first pause before it is asked again; doubled after each failure.
const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(5);
/// A snapshot has come whole so long after its first byte, and the first one so long after the connection.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Snapshots are taken this often at most.
const PACE: Duration = Duration::from_millis(100);
/// The agent served for at least this long when the next pause is the first again.
const WELL: Duration = Duration::from_secs(10);

/// Why the agent is not followed.
#[allow(missing_docs, reason = "the messages say it")]
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// It is not there, or this process may not connect: the operator has to see to it, if it lasts.
    #[error("{path}: {source}{}", hint(.source))]
    Connect { path: PathBuf, source: io::Error },
    /// Anybody may have made the socket: the operator has to say which is the agent's.
    #[error(
        "{path}: the socket is that of user {user}; an agent is root, or the user that this process runs as"
    )]
    Owner { path: PathBuf, user: u32 },
    /// The agent has ended, or does not let this user read.
    #[error("{0}: the agent has closed the connection")]
    Closed(PathBuf),
    /// The network of this host, or the agent's fault.
    #[error("{path}: {source}")]
    Read { path: PathBuf, source: io::Error },
    /// The agent's fault.
    #[error("{path}: no whole snapshot came within {TIMEOUT:?}")]
    Late { path: PathBuf },
    /// The agent's fault.
    #[error("{path}: a snapshot is longer than {SNAPSHOT_BYTES} bytes")]
    Long { path: PathBuf },
    /// The agent's fault, or it is of another version.
    #[error("{path}: {source}")]
    Snapshot { path: PathBuf, source: BadSnapshot },
}

fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => " (is the node agent running here?)",
        io::ErrorKind::PermissionDenied => " (the agent's --nodes-readers says who may read)",
        _ => "",
    }
}

/// What is known of the agent.
#[derive(Clone, Debug, Default)]
pub struct Agent {
    /// It is connected, and has told something.
    pub is_up: bool,
    /// Why it is not; `None`: it is, or was not asked yet.
    pub why: Option<String>,
    /// Snapshots that were taken.
    pub snapshots: u64,
    /// Times that it could not be reached, ended or told what cannot be used.
    pub failures: u64,
    /// The machine as it was told last. `None`: it was not, or too long ago.
    pub machine: Option<Arc<Machine>>,
}

/// What a line of the agent says.
struct Snapshot {
    localities: Localities,
    /// `None`: it cannot be shown, which concerns no route.
    machine: Option<Machine>,
}

impl Snapshot {
    fn read(line: &[u8]) -> Result<Self, BadSnapshot> {
        Ok(Self {
            localities: Localities::read(line)?,
            machine: Machine::read(line).ok(),
        })
    }
}

/// A connection to the agent.
struct Connection<'a> {
    path: &'a Path,
    reader: BufReader<UnixStream>,
    line: Vec<u8>,
}

impl<'a> Connection<'a> {
    async fn open(path: &'a Path) -> Result<Self, AgentError> {
        let owned = || path.to_owned();
        let refused = |source| AgentError::Connect {
            path: owned(),
            source,
        };
        let stream = UnixStream::connect(path).await.map_err(refused)?;
        let user = stream.peer_cred().map_err(refused)?.uid();
        if user != 0 && user != geteuid().as_raw() {
            return Err(AgentError::Owner { path: owned(), user });
        }
        let (reader, line) = (BufReader::new(stream), Vec::new());
        Ok(Self { path, reader, line })
    }

    /// The next snapshot, whenever it comes.
    async fn next(&mut self) -> Result<Snapshot, AgentError> {
        let path = || self.path.to_owned();
        let broken = |source| AgentError::Read { path: path(), source };
        if self.reader.fill_buf().await.map_err(broken)?.is_empty() {
            return Err(AgentError::Closed(path()));
        }
        self.line.clear();
        let mut bounded = (&mut self.reader).take(SNAPSHOT_BYTES as u64 + 1);
        match timeout(TIMEOUT, bounded.read_until(b'\n', &mut self.line)).await {
            Err(_) => Err(AgentError::Late { path: path() }),
            Ok(Err(source)) => Err(broken(source)),
            Ok(Ok(_)) if self.line.len() > SNAPSHOT_BYTES => Err(AgentError::Long { path: path() }),
            Ok(Ok(_)) if self.line.last() != Some(&b'\n') => Err(AgentError::Closed(path())),
            Ok(Ok(_)) => {
                Snapshot::read(&self.line).map_err(|source| AgentError::Snapshot { path: path(), source })
            }
        }
    }
}

/// Asks the agent once.
///
/// # Errors
/// Why it does not tell.
pub(in crate::control) async fn ask(path: &Path) -> Result<Localities, AgentError> {
    open(path).await.map(|(_, snapshot)| snapshot.localities)
}

async fn open(path: &Path) -> Result<(Connection<'_>, Snapshot), AgentError> {
    let first = async {
        let mut connection = Connection::open(path).await?;
        let snapshot = connection.next().await?;
        Ok((connection, snapshot))
    };
    let late = |_| AgentError::Late {
        path: path.to_owned(),
    };
    timeout(TIMEOUT, first).await.map_err(late)?
}

impl Proxy {
    /// Follows whatever agent the configuration names, for as long as the process lives.
    pub(in crate::control) async fn follow_agent(
        self: Arc<Self>,
        mut wanted: watch::Receiver<Option<Nodes>>,
    ) {
        let mut before: Option<PathBuf> = None;
        loop {
            let nodes = wanted.borrow_and_update().clone();
            let path = nodes.as_ref().map(|nodes| nodes.from.clone());
            if path != before {
                // What another agent has told says nothing any more.
                self.locate(None);
                self.rooms().surroundings.agent = Agent::default();
            }
            before = path;
            tokio::select! {
                changed = wanted.changed() => if changed.is_err() { return },
                never = self.follow_this(nodes) => match never {},
            }
        }
    }

    async fn follow_this(&self, nodes: Option<Nodes>) -> Infallible {
        let Some(Nodes { from, grace }) = nodes else {
            return pending().await;
        };
        let mut random = Random(u64::from(std::process::id()));
        let (mut pause, mut said) = (Duration::ZERO, String::new());
        // What was told before holds until then.
        let mut end = self
            .rooms()
            .surroundings
            .localities
            .is_some()
            .then(|| Instant::now() + grace);
        loop {
            let again = async {
                sleep(pause.mul_f64(0.75 + random.fraction() / 2.0)).await;
                open(&from).await
            };
            let tried = tokio::select! {
                tried = again => tried,
                () = at(end) => {
                    end = None;
                    tracing::warn!(target: kind::SOURCE, ?grace, "the node agent has been gone for long: all on this host are equally near until it is back");
                    self.rooms().surroundings.agent.machine = None;
                    self.locate(None);
                    continue;
                }
            };
            let (mut connection, snapshot) = match tried {
                Ok(first) => first,
                Err(error) => {
                    self.lost(&error, &mut said, end.is_some());
                    pause = (pause * 2).clamp(FIRST, LONGEST);
                    continue;
                }
            };
            let begin = Instant::now();
            let (containers, addresses) = snapshot.localities.counts();
            tracing::info!(target: kind::SOURCE, path = %from.display(), host = snapshot.localities.host, containers, addresses, "the node agent is followed");
            said.clear();
            self.told(snapshot);
            let error = loop {
                sleep(PACE).await;
                match connection.next().await {
                    Ok(snapshot) => self.told(snapshot),
                    Err(error) => break error,
                }
            };
            pause = match begin.elapsed() >= WELL {
                true => FIRST,
                false => (pause * 2).clamp(FIRST, LONGEST),
            };
            end = Some(Instant::now() + grace);
            self.lost(&error, &mut said, true);
        }
    }

    /// The agent is not followed: said once for each reason.
    fn lost(&self, error: &AgentError, said: &mut String, holds: bool) {
        let why = error.to_string();
        {
            let agent = &mut self.rooms().surroundings.agent;
            agent.is_up = false;
            agent.failures += 1;
            agent.why = Some(why.clone());
        }
        if why == *said {
            return;
        }
        match holds {
            true => {
                tracing::warn!(target: kind::SOURCE, "the node agent is not followed: {why}; what it told last holds for now")
            }
            false => {
                tracing::warn!(target: kind::SOURCE, "the node agent is not followed: {why}; all on this host are equally near")
            }
        }
        *said = why;
    }

    fn told(&self, snapshot: Snapshot) {
        {
            let agent = &mut self.rooms().surroundings.agent;
            agent.is_up = true;
            agent.why = None;
            agent.snapshots += 1;
            agent.machine = snapshot.machine.map(Arc::new);
        }
        self.locate(Some(snapshot.localities));
    }

    /// Hands the workers what the agent tells; `None`: nothing.
    fn locate(&self, localities: Option<Localities>) {
        let Rooms {
            configuration,
            surroundings,
            ..
        } = &mut *self.rooms();
        let localities = localities.map(Arc::new);
        if surroundings.localities == localities {
            return;
        }
        surroundings.localities = localities;
        let orders = surroundings.orders(configuration.tree());
        configuration.tree().follow(&orders);
        self.workers.order(|_| Order::Locate {
            localities: surroundings.localities.clone(),
            orders: orders.clone(),
        });
    }
}

/// Waits until that time; forever, if there is none.
async fn at(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => pending().await,
    }
}
