//! twemproxy's statistics port: one JSON document for each connection, which need not ask for it.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    io::{self, IoSlice},
    net::SocketAddr,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use proxima_wire::hash::twemproxy_order;
use tokio::{
    io::AsyncWriteExt,
    net::{TcpListener, TcpStream},
    time::{Instant, timeout},
};

use super::connections;
use crate::{
    control::{MemberView, Proxy},
    members::Member,
    metrics::{ListenerMetrics, MemberMetrics, Metrics},
};

/// Counters are gathered no more often than this, however often they are wanted: every worker is asked.
const LEAST: Duration = Duration::from_millis(100);
/// Time for a document to be taken.
const TAKE: Duration = Duration::from_secs(5);

/// Where the statistics are, and how often they are gathered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statistics {
    /// The address of the port.
    pub address: SocketAddr,
    /// The shortest time between two gatherings.
    pub interval: Duration,
}

/// Serves the statistics port for as long as the process lives. A connection asks nothing, so that the oldest
/// one gives way where there are too many.
///
/// # Errors
/// The address cannot be bound.
pub async fn serve_statistics(statistics: Statistics, proxy: Arc<Proxy>) -> io::Result<()> {
    let listener = TcpListener::bind(statistics.address).await?;
    let mut newest = CachedCounters::now(&proxy);
    tokio::spawn(async move {
        connections::serve(
            listener,
            |_| true,
            b"",
            |client, _| {
                if newest.at.elapsed() >= statistics.interval.max(LEAST) {
                    newest = CachedCounters::now(&proxy);
                }
                let told = tell(client, head(&proxy), Arc::clone(&newest.text));
                async move {
                    // A client that has left needs nothing.
                    let _ = timeout(TAKE, told).await;
                }
            },
        )
        .await;
    });
    Ok(())
}

/// The counters as they were.
struct CachedCounters {
    at: Instant,
    text: Arc<str>,
}

impl CachedCounters {
    fn now(proxy: &Proxy) -> Self {
        Self {
            at: Instant::now(),
            text: counters(proxy).into(),
        }
    }
}

async fn tell(mut client: TcpStream, head: String, counters: Arc<str>) -> io::Result<()> {
    let (head, counters) = (head.as_bytes(), counters.as_bytes());
    // One read gets all of it, as from twemproxy.
    let whole = [IoSlice::new(head), IoSlice::new(counters)];
    let sent = client.write_vectored(&whole).await?;
    client.write_all(&head[sent.min(head.len())..]).await?;
    client
        .write_all(&counters[sent.saturating_sub(head.len())..])
        .await?;
    client.shutdown().await
}

/// The beginning of the document, which is as of now.
#[allow(clippy::disallowed_methods, reason = "the document tells the time of day")]
fn head(proxy: &Proxy) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!(
        "{{\"service\":\"nutcracker\", \"source\":{}, \"version\":\"0.5.0\", \"uptime\":{}, \"timestamp\":{}, ",
        quoted(&proxy.host_name()),
        proxy.uptime().as_secs(),
        now.as_secs()
    )
}

/// The rest of the document.
fn counters(proxy: &Proxy) -> String {
    let metrics = proxy.metrics();
    let view = proxy.view();
    let listeners = view.listeners.iter().flatten().count() as u64;
    let total = metrics.clients.accepted + metrics.lanes_opened + listeners;
    let open = metrics.open_clients + metrics.open_lanes + listeners;
    let mut text = format!("\"total_connections\":{total}, \"curr_connections\":{open}");
    let mut pools: BTreeMap<Arc<str>, Vec<Arc<Member>>> = BTreeMap::new();
    for MemberView { member, .. } in &view.members {
        pools
            .entry(Arc::clone(&member.pool.name))
            .or_default()
            .push(Arc::clone(member));
    }
    let mut pools: Vec<_> = pools.into_iter().collect();
    pools.sort_by(|(one, _), (other, _)| twemproxy_order(one, other));
    for (name, mut members) in pools {
        members.sort_by(|one, other| twemproxy_order(&one.name, &other.name));
        let listener = view.listener_of(&name);
        let _ = write!(
            text,
            ", {}: {{{}",
            quoted(&name),
            pool(&members, listener, &metrics)
        );
        for member in &members {
            let counts = metrics
                .members
                .get(member.id.0 as usize)
                .cloned()
                .unwrap_or_default();
            let _ = write!(
                text,
                ", {}: {{{}}}",
                quoted(&member.name),
                server(member, &counts)
            );
        }
        text.push('}');
    }
    text.push_str("}\n");
    text
}

fn pool(members: &[Arc<Member>], listener: Option<usize>, metrics: &Metrics) -> String {
    let of_listener = listener.and_then(|number| metrics.listeners.get(number));
    let ListenerMetrics {
        eof,
        errors,
        fragments,
        failed,
        clients,
    } = of_listener.cloned().unwrap_or_default();
    fields(&[
        ("client_eof", eof),
        ("client_err", errors),
        ("client_connections", clients),
        (
            "server_ejects",
            members.iter().map(|member| member.health.ejections()).sum(),
        ),
        ("forward_error", failed),
        ("fragments", fragments),
    ])
}

fn server(member: &Member, counts: &MemberMetrics) -> String {
    fields(&[
        ("server_eof", counts.closed),
        ("server_err", counts.broken),
        ("server_timedout", counts.timed_out),
        ("server_connections", counts.lanes),
        ("server_ejected_at", member.health.ejected_at()),
        (
            "requests",
            counts.outcomes.replies() + counts.lost + counts.waiting,
        ),
        ("request_bytes", counts.sent_bytes),
        ("responses", counts.outcomes.replies()),
        ("response_bytes", counts.received_bytes),
        ("in_queue", counts.held),
        ("in_queue_bytes", counts.held_bytes),
        ("out_queue", counts.waiting - counts.held),
        ("out_queue_bytes", counts.unsent_bytes),
    ])
}

fn fields(fields: &[(&str, u64)]) -> String {
    let written: Vec<String> = fields
        .iter()
        .map(|(name, count)| format!("\"{name}\":{count}"))
        .collect();
    written.join(", ")
}

/// A text of JSON.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
