//! Members, and pools of them.

use std::collections::BTreeMap;

use super::labels;
use crate::{
    admin::page::{Page, quoted},
    control::{MemberView, View},
    members::{HealthState, MemberId, Pool, PoolId},
    metrics::{Latency, Metrics},
    protocol::{OUTCOMES, Role, RoleStatus},
};

/// Rows of pools: how many of their members may be asked.
pub(super) fn pools(view: &View, page: &mut Page) {
    page.family(
        "pool_members",
        "gauge",
        "Members of a pool, by whether they may be asked.",
    );
    for pool in &view.pools {
        let name = quoted(&pool.name);
        page.row("pool_members", &format!("pool=\"{name}\",up=\"true\""), pool.up);
        page.row(
            "pool_members",
            &format!("pool=\"{name}\",up=\"false\""),
            pool.members - pool.up,
        );
    }
}

/// Rows of pools: how many of their members drain.
pub(super) fn draining(view: &View, page: &mut Page) {
    page.family(
        "pool_members_draining",
        "gauge",
        "Members of a pool that are given no new requests, as an operator has ordered.",
    );
    for pool in &view.pools {
        let drain = |found: &&MemberView| *found.member.pool.name == *pool.name && found.member.drains();
        let labels = format!("pool=\"{}\"", quoted(&pool.name));
        page.row(
            "pool_members_draining",
            &labels,
            view.members.iter().filter(drain).count(),
        );
    }
}

/// Rows of members, and of the time that each pool takes.
pub(super) fn members(view: &View, metrics: &Metrics, page: &mut Page) {
    let members = view.members.iter();
    let members: Vec<_> = members.map(|found| (found, labels(&found.member))).collect();
    distances(view, &members, page);
    pods(&members, page);
    health(&members, page);
    roles(&members, page);
    requests(&members, metrics, page);
    durations(&members, metrics, page);
    reads(&members, page);
    retries(&members, page);
    other_proxies(&members, page);
}

/// Members, each with the labels of its rows.
type LabelledMembers<'a> = [(&'a MemberView, String)];

fn distances(view: &View, members: &LabelledMembers<'_>, page: &mut Page) {
    let mut distances: BTreeMap<(&str, &str, &str), u64> = BTreeMap::new();
    for (MemberView { member, .. }, _) in members {
        let (distance, source) = view.distance(member, None);
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
}

/// Rows of members that the API server of Kubernetes has named.
fn pods(members: &LabelledMembers<'_>, page: &mut Page) {
    page.family(
        "member_info",
        "gauge",
        "1 for each member that the API server of Kubernetes has named: the node and the zone of its pod.",
    );
    for (MemberView { member, .. }, labels) in members {
        if let Some(pod) = &member.pod {
            let text = |name: &Option<String>| quoted(name.as_deref().unwrap_or_default());
            let labels = format!(
                "{labels},node=\"{}\",zone=\"{}\"",
                text(&pod.node),
                text(&member.zone)
            );
            page.row("member_info", &labels, 1);
        }
    }
}

fn health(members: &LabelledMembers<'_>, page: &mut Page) {
    page.family("member_up", "gauge", "May this member be asked?");
    for (MemberView { member, .. }, labels) in members {
        page.row("member_up", labels, u8::from(member.is_up()));
    }
    page.family(
        "member_suspect",
        "gauge",
        "Has this member failed lately, without being ejected for it?",
    );
    for (MemberView { member, .. }, labels) in members {
        page.row(
            "member_suspect",
            labels,
            u8::from(member.health.state() == HealthState::Suspect),
        );
    }
    page.family("member_ejections", "counter", "Times this member was ejected.");
    for (MemberView { member, .. }, labels) in members {
        page.row("member_ejections_total", labels, member.health.ejections());
    }
}

fn roles(members: &LabelledMembers<'_>, page: &mut Page) {
    let with_role = members.iter();
    let with_role = with_role.filter_map(|(found, labels)| Some((found.role.as_ref()?, labels)));
    let with_role: Vec<(&RoleStatus, &String)> = with_role.collect();
    if with_role.is_empty() {
        return;
    }
    page.family(
        "member_role",
        "gauge",
        "What this member of a pool with one writer serves: 1 for its role, and 0 for the others.",
    );
    for (status, labels) in &with_role {
        for role in Role::ALL {
            let labels = format!("{labels},role=\"{}\"", role.name());
            page.row("member_role", &labels, u8::from(status.role == role));
        }
    }
    page.family(
        "member_out",
        "gauge",
        "Why this member of a pool with one writer does not serve: 1 for each reason that holds now.",
    );
    for (status, labels) in &with_role {
        for (reason, _) in &status.why_out {
            page.row("member_out", &format!("{labels},reason=\"{reason}\""), 1);
        }
    }
}

fn requests(members: &LabelledMembers<'_>, metrics: &Metrics, page: &mut Page) {
    let counted = |id: MemberId| metrics.members.get(id.0 as usize);
    page.family(
        "member_requests",
        "counter",
        "Ended requests to this server of MySQL, by outcome. Outcomes that have not come are left out.",
    );
    // A member of a cache has few series: there are many of them.
    for (MemberView { member, .. }, labels) in members
        .iter()
        .filter(|(found, _)| found.member.protocol.texts().is_some())
    {
        for (outcome, name) in OUTCOMES {
            let count = counted(member.id).map_or(0, |metrics| metrics.outcomes.of(outcome));
            if count > 0 {
                page.row(
                    "member_requests_total",
                    &format!("{labels},outcome=\"{name}\""),
                    count,
                );
            }
        }
    }
    page.family(
        "member_overdue",
        "counter",
        "Requests that this member was asked to end because they took longer than `limits.statement_timeout`.",
    );
    for (MemberView { member, .. }, labels) in members {
        let overdue = counted(member.id).map_or(0, |metrics| metrics.overdue);
        if overdue > 0 {
            page.row("member_overdue_total", labels, overdue);
        }
    }
    page.family("member_errors", "counter", "Error replies of this member.");
    for (MemberView { member, .. }, labels) in members {
        page.row(
            "member_errors_total",
            labels,
            counted(member.id).map_or(0, |metrics| metrics.outcomes.errors()),
        );
    }
    page.family(
        "member_failures",
        "counter",
        "Connections to this member that broke or were late.",
    );
    for (MemberView { member, .. }, labels) in members {
        page.row(
            "member_failures_total",
            labels,
            counted(member.id).map_or(0, |metrics| metrics.failures),
        );
    }
    page.family(
        "member_request_duration_seconds",
        "summary",
        "From sending to this member to its reply. How it is distributed: by pool.",
    );
    for (MemberView { member, .. }, labels) in members {
        if let Some(metrics) = counted(member.id) {
            let name = "member_request_duration_seconds";
            page.summary(name, labels, metrics.outcomes.replies(), metrics.micros);
        }
    }
}

fn durations(members: &LabelledMembers<'_>, metrics: &Metrics, page: &mut Page) {
    page.family(
        "pool_request_duration_seconds",
        "histogram",
        "From sending to a member of this pool to its reply.",
    );
    let numbers: BTreeMap<&str, PoolId> = members
        .iter()
        .map(|(found, _)| (&*found.member.pool.name, found.member.pool.id))
        .collect();
    for (labels, latency) in by_pool(&numbers, &metrics.pools) {
        page.histogram("pool_request_duration_seconds", &labels, latency);
    }
    page.family(
        "pool_wait_duration_seconds",
        "summary",
        "How long requests waited until the state of this pool let them go on, as for a writer.",
    );
    for (labels, latency) in by_pool(&numbers, &metrics.held) {
        page.summary(
            "pool_wait_duration_seconds",
            &labels,
            latency.count(),
            latency.sum,
        );
    }
}

/// The reads of each pool that must see certain writes.
fn reads(members: &LabelledMembers<'_>, page: &mut Page) {
    page.family(
        "pool_reads",
        "counter",
        "Reads that must see certain writes, by the role of the server that they were given to.",
    );
    for (name, pool) in pools_of(members) {
        let reads = pool.state.as_ref().map(|state| state.reads());
        for (role, count) in reads.unwrap_or_default() {
            let labels = format!("pool=\"{}\",role=\"{}\"", quoted(name), role.name());
            page.row("pool_reads_total", &labels, count);
        }
    }
}

/// The requests of each pool that were given to a server once more.
fn retries(members: &LabelledMembers<'_>, page: &mut Page) {
    page.family(
        "pool_retries",
        "counter",
        "Requests that were given to a server once more, by the reason.",
    );
    for (name, pool) in pools_of(members) {
        let retries = pool.state.as_ref().map(|state| state.retries());
        for (reason, count) in retries.unwrap_or_default() {
            let labels = format!("pool=\"{}\",reason=\"{reason}\"", quoted(name));
            page.row("pool_retries_total", &labels, count);
        }
    }
}

/// Whether another proxy may write to the pools that are said to have one.
fn other_proxies(members: &LabelledMembers<'_>, page: &mut Page) {
    page.family(
        "pool_other_proxies",
        "gauge",
        "Whether another proxy uses the servers of a pool with proxies: 1, or may; then causal reads are strict.",
    );
    for (name, pool) in pools_of(members) {
        let others = pool.state.as_ref().and_then(|state| state.others());
        if let Some(others) = others {
            let labels = format!("pool=\"{}\"", quoted(name));
            page.row("pool_other_proxies", &labels, u64::from(others.may_be()));
        }
    }
}

/// The pools of these members, by name.
fn pools_of<'a>(members: &'a LabelledMembers<'_>) -> BTreeMap<&'a str, &'a Pool> {
    members
        .iter()
        .map(|(found, _)| (&*found.member.pool.name, &*found.member.pool))
        .collect()
}

/// The counts of these pools, with the labels of their rows.
fn by_pool<'a>(pools: &BTreeMap<&str, PoolId>, counts: &'a [Latency]) -> Vec<(String, &'a Latency)> {
    let of_pool = |(pool, number): (&&str, &PoolId)| {
        let labels = format!("pool=\"{}\"", quoted(pool));
        Some((labels, counts.get(number.0 as usize)?))
    };
    pools.iter().filter_map(of_pool).collect()
}
