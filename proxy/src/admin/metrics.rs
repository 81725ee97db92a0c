//! `/metrics`. Counted by the workers for themselves; collected when asked for.
//!
//! A member has at most twelve rows: what is of use only for many members together is counted by pool.

use std::collections::BTreeMap;

use axum::{
    extract::State,
    http::{HeaderMap, header},
    response::Response,
};

use super::{
    Shared,
    format::Format,
    page::{Page, quoted},
    process::process,
    text,
};
use crate::{
    control::{CopyCounters, Proxy},
    figures::Figures,
    members::{Distance, Member, PoolId, State as Health},
    near::store::Counter,
};

pub(super) async fn metrics(State(proxy): Shared, headers: HeaderMap) -> Response {
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    let format = Format::preferred(accept);
    let body = tokio::task::spawn_blocking(move || render(&proxy, format))
        .await
        .unwrap_or_default();
    text(format.content_type(), body)
}

fn labels(member: &Member) -> String {
    let (pool, name) = (quoted(&member.pool.name), quoted(&member.name));
    format!("pool=\"{pool}\",member=\"{name}\"")
}

fn render(proxy: &Proxy, format: Format) -> String {
    let figures = proxy.figures();
    let mut page = Page::new(format);
    page.family("build", "info", "The running program.");
    page.row(
        "build_info",
        &format!("version=\"{}\",io=\"{}\"", env!("CARGO_PKG_VERSION"), proxy.io()),
        1,
    );
    page.gauge("uptime_seconds", "Since the start.", proxy.uptime().as_secs());
    page.gauge("workers", "Worker threads.", proxy.workers());

    let (reloads, failures, refused) = proxy.reloads();
    page.family("config", "info", "The running configuration.");
    page.row(
        "config_info",
        &format!("version=\"{}\"", quoted(&proxy.version())),
        1,
    );
    page.counter(
        "config_reloads",
        "Configurations that took effect after the first.",
        reloads,
    );
    page.counter("config_failures", "Configurations that were refused.", failures);
    page.gauge(
        "config_last_reload_successful",
        "Is what the configuration says now what runs?",
        u8::from(refused.is_none()),
    );

    questions(proxy, &mut page);
    agent(proxy, &figures, &mut page);
    page.gauge("clients", "Connected clients.", figures.open_clients);
    page.counter(
        "clients_accepted",
        "Clients that connected.",
        figures.clients.accepted,
    );
    page.family(
        "clients_closed",
        "counter",
        "Clients closed by the proxy, by reason.",
    );
    for (reason, count) in [
        ("limit", figures.clients.over_limit),
        ("idle", figures.clients.idle),
        ("slow", figures.clients.slow),
        ("request_timeout", figures.clients.unfinished),
        ("half_closed", figures.clients.half_closed),
        ("memory", figures.clients.greedy),
    ] {
        page.row("clients_closed_total", &format!("reason=\"{reason}\""), count);
    }
    page.counter(
        "requests_refused",
        "Requests answered with an error without being routed.",
        figures.clients.refused,
    );
    page.counter(
        "uploads",
        "Requests streamed because of their size.",
        figures.clients.uploads,
    );
    page.family(
        "descriptor_shortages",
        "counter",
        "Times that there was no descriptor for a client, who waits, or for a connection to a server.",
    );
    for (what, count) in ["accept", "connect"].into_iter().zip(figures.shortages) {
        page.row("descriptor_shortages_total", &format!("what=\"{what}\""), count);
    }
    page.gauge("lanes", "Connections to servers.", figures.open_lanes);
    page.counter(
        "lanes_opened",
        "Connections to servers that were opened.",
        figures.lanes_opened,
    );
    page.gauge(
        "requests_in_flight",
        "Requests sent to servers and not answered.",
        figures.in_flight,
    );
    page.counter(
        "failovers",
        "Requests that went on to another child.",
        figures.failovers,
    );

    traffic(&figures, &mut page);
    copies(proxy, &figures, &mut page);

    page.family("requests", "counter", "Requests of clients, by command.");
    for ((dialect, command), &count) in proxy.dialects().commands().zip(&figures.requests) {
        if count > 0 {
            let name = dialect.command_name(command);
            page.row("requests_total", &format!("command=\"{name}\""), count);
        }
    }
    page.family("replies", "counter", "Replies to clients, by outcome.");
    for (outcome, name) in crate::dialect::OUTCOMES {
        page.row(
            "replies_total",
            &format!("outcome=\"{name}\""),
            figures.replies.with(outcome),
        );
    }
    lookups(proxy, &figures, &mut page);
    page.family(
        "request_duration_seconds",
        "histogram",
        "From a request's last byte to its reply, by listener.",
    );
    for (number, address) in proxy.listeners().iter().enumerate() {
        if let (Some(address), Some(latency)) = (address, figures.latency.get(number)) {
            page.histogram(
                "request_duration_seconds",
                &format!("listener=\"{}\"", quoted(address)),
                latency,
            );
        }
    }
    members(proxy, &figures, &mut page);
    embedded(proxy, &mut page);
    process(&mut page);
    page.finish()
}

fn traffic(figures: &Figures, page: &mut Page) {
    let (clients, servers) = (figures.client_traffic, figures.server_traffic);
    page.counter(
        "client_received_bytes",
        "Bytes received from clients.",
        clients.received,
    );
    page.counter("client_sent_bytes", "Bytes sent to clients.", clients.sent);
    page.counter(
        "server_received_bytes",
        "Bytes received from servers.",
        servers.received,
    );
    page.counter("server_sent_bytes", "Bytes sent to servers.", servers.sent);
}

fn lookups(proxy: &Proxy, figures: &Figures, page: &mut Page) {
    page.family(
        "lookups",
        "counter",
        "Keys that clients have looked for, by command and result.",
    );
    for (number, (dialect, command)) in proxy.dialects().commands().enumerate() {
        if figures.requests.get(number).is_none_or(|&asked| asked == 0) || !dialect.looks_up(command) {
            continue;
        }
        let name = dialect.command_name(command);
        let counts = figures.replies.lookups(number);
        for (result, count) in ["hit", "miss"].iter().zip(counts) {
            let labels = format!("command=\"{name}\",result=\"{result}\"");
            page.row("lookups_total", &labels, count);
        }
    }
}

/// The embedded store, where a listener leads to it.
fn embedded(proxy: &Proxy, page: &mut Page) {
    let Some((limit, totals)) = proxy.store() else {
        return;
    };
    page.gauge("embedded_items", "Values in the embedded store.", totals.items);
    page.gauge(
        "embedded_bytes",
        "Memory of the embedded store in use.",
        totals.bytes,
    );
    page.gauge("embedded_limit_bytes", "`embedded.memory`.", limit);
    for (name, counter, help) in [
        ("embedded_stored", Counter::TotalItems, "Values that were stored."),
        (
            "embedded_evictions",
            Counter::Evictions,
            "Values dropped for want of memory.",
        ),
        (
            "embedded_reclaimed",
            Counter::Reclaimed,
            "Values dropped because they had expired or were flushed.",
        ),
        (
            "embedded_too_large",
            Counter::TooLarge,
            "Values refused for their size.",
        ),
        ("embedded_flushes", Counter::Flushes, "`flush_all` commands."),
    ] {
        page.counter(name, help, totals.counters.get(counter));
    }
    page.family(
        "embedded_lookups",
        "counter",
        "Keys that were looked for in the embedded store, by operation and result.",
    );
    for (operation, hits, misses) in [
        ("get", Counter::GetHits, Counter::GetMisses),
        ("touch", Counter::TouchHits, Counter::TouchMisses),
        ("delete", Counter::DeleteHits, Counter::DeleteMisses),
        ("incr", Counter::IncrHits, Counter::IncrMisses),
        ("decr", Counter::DecrHits, Counter::DecrMisses),
        ("cas", Counter::CasHits, Counter::CasMisses),
    ] {
        for (result, counter) in [("hit", hits), ("miss", misses)] {
            let labels = format!("operation=\"{operation}\",result=\"{result}\"");
            page.row("embedded_lookups_total", &labels, totals.counters.get(counter));
        }
    }
}

fn copies(proxy: &Proxy, figures: &Figures, page: &mut Page) {
    let copies = proxy.copies();
    if copies.is_empty() {
        return;
    }
    page.family(
        "copies",
        "gauge",
        "Copies of replicated pools, by what they may be used for.",
    );
    for (pool, state, count) in proxy.copy_states() {
        let labels = format!("pool=\"{}\",state=\"{state}\"", quoted(&pool));
        page.row("copies", &labels, count);
    }
    let mut counter = |name: &str, help: &str, of: &dyn Fn(&Member, CopyCounters) -> u64| {
        page.family(name, "counter", help);
        for (member, counts) in &copies {
            page.row(&format!("{name}_total"), &labels(member), of(member, *counts));
        }
    };
    counter(
        "copy_stale",
        "Times that this copy missed a write and was taken out of reads.",
        &|_, counts| counts.stale,
    );
    counter(
        "copy_repairs",
        "Repairs of this copy that deleted keys.",
        &|_, counts| counts.repairs,
    );
    counter(
        "copy_flushes",
        "Repairs of this copy that flushed it.",
        &|_, counts| counts.flushes,
    );
    counter(
        "skipped_writes",
        "Writes that went on without this copy.",
        &|member, _| {
            figures
                .members
                .get(member.id.0 as usize)
                .map_or(0, |counted| counted.skipped)
        },
    );
    let mut setbacks: BTreeMap<&str, u64> = BTreeMap::new();
    for (member, counts) in &copies {
        *setbacks.entry(&member.pool.name).or_default() += counts.setbacks;
    }
    page.family(
        "copy_setbacks",
        "counter",
        "Repairs of copies of a pool that failed.",
    );
    for (pool, count) in setbacks {
        page.row(
            "copy_setbacks_total",
            &format!("pool=\"{}\"", quoted(pool)),
            count,
        );
    }
    page.counter(
        "state_file_failures",
        "Times that the state file could not be written.",
        proxy.state_file_failures(),
    );
}

fn questions(proxy: &Proxy, page: &mut Page) {
    let questions = proxy.questions();
    if questions.is_empty() {
        return;
    }
    page.family("dns_up", "gauge", "Did DNS name servers when it was asked last?");
    for (pool, name, standing) in &questions {
        page.row(
            "dns_up",
            &format!("pool=\"{}\",name=\"{}\"", quoted(pool), quoted(name)),
            u8::from(standing.answers > 0 && standing.failure.is_none()),
        );
    }
    // One name is one server where servers are written with names, and there may be many of them.
    let mut pools: BTreeMap<String, [u64; 2]> = BTreeMap::new();
    for (pool, _, standing) in &questions {
        let [answers, failures] = pools.entry(quoted(pool)).or_default();
        *answers += standing.answers;
        *failures += standing.failures;
    }
    for (number, (name, help)) in [
        ("dns_answers", "Answers of DNS that name servers."),
        ("dns_failures", "Questions to DNS without such an answer."),
    ]
    .into_iter()
    .enumerate()
    {
        page.family(name, "counter", help);
        for (pool, counts) in &pools {
            page.row(
                &format!("{name}_total"),
                &format!("pool=\"{pool}\""),
                counts[number],
            );
        }
    }
}

/// The node agent, where the configuration names one.
fn agent(proxy: &Proxy, figures: &Figures, page: &mut Page) {
    let Some((agent, localities)) = proxy.agent() else {
        return;
    };
    page.gauge("agent_up", "Is the node agent followed?", u8::from(agent.is_up));
    page.counter("agent_snapshots", "Snapshots of the node agent.", agent.snapshots);
    page.counter(
        "agent_failures",
        "Times that the node agent was not there, ended, or told what cannot be used.",
        agent.failures,
    );
    let (containers, _) = localities.map_or((0, 0), |localities| localities.counts());
    page.gauge(
        "agent_containers",
        "Containers that the node agent tells of.",
        containers,
    );
    page.family(
        "clients_located",
        "gauge",
        "Connected clients, by the smallest place of this host in which they are known to be.",
    );
    for (place, count) in [Distance::NumaNode, Distance::Socket, Distance::Host]
        .into_iter()
        .zip(figures.located)
    {
        page.row("clients_located", &format!("place=\"{}\"", place.name()), count);
    }
}

fn members(proxy: &Proxy, figures: &Figures, page: &mut Page) {
    let members: Vec<_> = proxy
        .members()
        .into_iter()
        .map(|member| {
            let labels = labels(&member);
            (member, labels)
        })
        .collect();
    page.family(
        "pool_members",
        "gauge",
        "Members of a pool, by whether they may be asked.",
    );
    for pool in proxy.pools() {
        let name = quoted(&pool.name);
        page.row("pool_members", &format!("pool=\"{name}\",up=\"true\""), pool.up);
        page.row(
            "pool_members",
            &format!("pool=\"{name}\",up=\"false\""),
            pool.members - pool.up,
        );
    }
    let mut distances: BTreeMap<(&str, &str, &str), u64> = BTreeMap::new();
    for (member, _) in &members {
        let (distance, source) = proxy.distance(member, None);
        *distances
            .entry((&member.pool.name, distance.name(), source.name()))
            .or_default() += 1;
    }
    page.family(
        "pool_distances",
        "gauge",
        "Members of a pool, by how far they are from a client of which nothing is known, and what that is known from.",
    );
    for ((pool, distance, source), count) in distances {
        let labels = format!(
            "pool=\"{}\",distance=\"{distance}\",source=\"{source}\"",
            quoted(pool)
        );
        page.row("pool_distances", &labels, count);
    }
    page.family("member_up", "gauge", "May this member be asked?");
    for (member, labels) in &members {
        page.row("member_up", labels, u8::from(member.is_up()));
    }
    page.family(
        "member_suspect",
        "gauge",
        "Has this member failed lately, without being ejected for it?",
    );
    for (member, labels) in &members {
        page.row(
            "member_suspect",
            labels,
            u8::from(member.health.state() == Health::Suspect),
        );
    }
    page.family("member_ejections", "counter", "Times this member was ejected.");
    for (member, labels) in &members {
        page.row("member_ejections_total", labels, member.health.ejections());
    }
    let counted = |id: crate::members::MemberId| figures.members.get(id.0 as usize);
    page.family("member_errors", "counter", "Error replies of this member.");
    for (member, labels) in &members {
        page.row(
            "member_errors_total",
            labels,
            counted(member.id).map_or(0, |figures| figures.errors),
        );
    }
    page.family(
        "member_failures",
        "counter",
        "Connections to this member that broke or were late.",
    );
    for (member, labels) in &members {
        page.row(
            "member_failures_total",
            labels,
            counted(member.id).map_or(0, |figures| figures.failures),
        );
    }
    page.family(
        "member_request_duration_seconds",
        "summary",
        "From sending to this member to its reply. How it is distributed: by pool.",
    );
    for (member, labels) in &members {
        if let Some(figures) = counted(member.id) {
            let name = "member_request_duration_seconds";
            page.summary(name, labels, figures.replies, figures.micros);
        }
    }
    page.family(
        "pool_request_duration_seconds",
        "histogram",
        "From sending to a member of this pool to its reply.",
    );
    let numbers: BTreeMap<&str, PoolId> = members
        .iter()
        .map(|(member, _)| (&*member.pool.name, member.pool.id))
        .collect();
    for (pool, number) in numbers {
        if let Some(latency) = figures.pools.get(number.0 as usize) {
            let labels = format!("pool=\"{}\"", quoted(pool));
            page.histogram("pool_request_duration_seconds", &labels, latency);
        }
    }
}
