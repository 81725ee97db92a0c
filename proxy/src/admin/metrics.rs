//! `/metrics`: OpenMetrics. Counted by the workers for themselves; collected when asked for.

use std::fmt::Write;

use axum::{extract::State, response::Response};

use super::{Shared, text};
use crate::{
    control::{CopyFigures, Proxy},
    dialect::{Dialect, Memcache},
    figures::{BUCKETS, Figures, Latency},
    members::{Member, State as Health},
};

pub(super) async fn metrics(State(proxy): Shared) -> Response {
    let body = tokio::task::spawn_blocking(move || render(&proxy))
        .await
        .unwrap_or_default();
    text("application/openmetrics-text; version=1.0.0; charset=utf-8", body)
}

struct Page(String);

impl Page {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        let _ = write!(
            self.0,
            "# TYPE proxima_{name} {kind}\n# HELP proxima_{name} {help}\n"
        );
    }

    fn row(&mut self, name: &str, labels: &str, value: impl std::fmt::Display) {
        let braces = if labels.is_empty() {
            String::new()
        } else {
            format!("{{{labels}}}")
        };
        let _ = writeln!(self.0, "proxima_{name}{braces} {value}");
    }

    fn counter(&mut self, name: &str, help: &str, value: u64) {
        self.family(name, "counter", help);
        self.row(&format!("{name}_total"), "", value);
    }

    fn gauge(&mut self, name: &str, help: &str, value: impl std::fmt::Display) {
        self.family(name, "gauge", help);
        self.row(name, "", value);
    }

    fn histogram(&mut self, name: &str, labels: &str, latency: &Latency) {
        let mut below = 0;
        for (bucket, count) in latency.buckets.iter().enumerate() {
            below += count;
            let bound = if bucket + 1 == BUCKETS {
                "+Inf".into()
            } else {
                ((1u64 << bucket) as f64 / 1e6).to_string()
            };
            self.row(
                &format!("{name}_bucket"),
                &format!("{labels},le=\"{bound}\""),
                below,
            );
        }
        self.row(&format!("{name}_count"), labels, latency.count());
        self.row(&format!("{name}_sum"), labels, latency.sum as f64 / 1e6);
    }
}

fn quoted(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

fn labels(member: &Member) -> String {
    let (pool, name) = (quoted(&member.pool), quoted(&member.name));
    format!("pool=\"{pool}\",member=\"{name}\"")
}

fn render(proxy: &Proxy) -> String {
    let figures = proxy.figures();
    let mut page = Page(String::with_capacity(16 * 1024));
    page.family("build", "info", "The running program.");
    page.row(
        "build_info",
        &format!("version=\"{}\",io=\"{}\"", env!("CARGO_PKG_VERSION"), proxy.io()),
        1,
    );
    page.gauge("uptime_seconds", "Since the start.", proxy.uptime().as_secs());
    page.gauge("workers", "Worker threads.", proxy.workers());

    let (reloads, failures, _) = proxy.reloads();
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

    questions(proxy, &mut page);
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

    copies(proxy, &figures, &mut page);

    page.family("requests", "counter", "Requests of clients, by command.");
    for (command, &count) in figures
        .requests
        .iter()
        .enumerate()
        .filter(|(_, count)| **count > 0)
    {
        let name = Memcache::PLAIN.command_name(command as u8);
        page.row("requests_total", &format!("command=\"{name}\""), count);
    }
    page.family("replies", "counter", "Replies to clients, by outcome.");
    for (outcome, name) in crate::dialect::OUTCOMES {
        page.row(
            "replies_total",
            &format!("outcome=\"{name}\""),
            figures.replies[outcome as usize],
        );
    }
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
    page.0.push_str("# EOF\n");
    page.0
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
    for (pool, standing, count) in proxy.standings() {
        let labels = format!("pool=\"{}\",standing=\"{standing}\"", quoted(&pool));
        page.row("copies", &labels, count);
    }
    let mut counter = |name: &str, help: &str, of: &dyn Fn(&Member, CopyFigures) -> u64| {
        page.family(name, "counter", help);
        for (member, counts) in &copies {
            page.row(&format!("{name}_total"), &labels(member), of(member, *counts));
        }
    };
    counter(
        "copy_debts",
        "Times that this copy missed a write and was taken out of reads.",
        &|_, counts| counts.debts,
    );
    counter(
        "copy_repairs",
        "Debts of this copy that were paid key by key.",
        &|_, counts| counts.repairs,
    );
    counter(
        "copy_flushes",
        "Debts of this copy that were paid by a flush.",
        &|_, counts| counts.flushes,
    );
    counter(
        "copy_setbacks",
        "Visits at this copy that could not pay its debt.",
        &|_, counts| counts.setbacks,
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
    page.counter(
        "copy_note_failures",
        "Times that the state file could not be written.",
        proxy.note_failures(),
    );
}

fn questions(proxy: &Proxy, page: &mut Page) {
    let questions: Vec<_> = proxy
        .questions()
        .into_iter()
        .map(|(pool, name, standing)| {
            let labels = format!("pool=\"{}\",name=\"{}\"", quoted(&pool), quoted(&name));
            (labels, standing)
        })
        .collect();
    if questions.is_empty() {
        return;
    }
    page.family("dns_up", "gauge", "Did DNS name servers when it was asked last?");
    for (labels, standing) in &questions {
        page.row(
            "dns_up",
            labels,
            u8::from(standing.answers > 0 && standing.failure.is_none()),
        );
    }
    page.family("dns_answers", "counter", "Answers of DNS that name servers.");
    for (labels, standing) in &questions {
        page.row("dns_answers_total", labels, standing.answers);
    }
    page.family(
        "dns_failures",
        "counter",
        "Questions to DNS without such an answer.",
    );
    for (labels, standing) in &questions {
        page.row("dns_failures_total", labels, standing.failures);
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
        "histogram",
        "From sending to this member to its reply.",
    );
    for (member, labels) in &members {
        if let Some(figures) = counted(member.id) {
            page.histogram("member_request_duration_seconds", labels, &figures.latency);
        }
    }
}
