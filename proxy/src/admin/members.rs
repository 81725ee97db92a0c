//! `/members`: every server with its state and distance.

use std::{net::IpAddr, time::Instant};

use axum::{
    Json,
    extract::{RawQuery, State},
    http::StatusCode,
    response::{IntoResponse, Response},
};
use serde::Serialize;

use super::{
    Shared,
    query::Query,
    role::RoleRow,
    since::{Clock, Since},
};
use crate::{
    control::{Ejection, MemberView, View},
    copies::{CopyState, CopyStatus, EVERYTHING, NOTHING},
    members::{Distance, DistanceSource, HealthState},
    metrics::Metrics,
};

#[derive(Debug, Serialize)]
pub(super) struct Row {
    pool: String,
    name: String,
    address: String,
    /// The address that the name in `address` stands for.
    #[serde(skip_serializing_if = "Option::is_none")]
    resolves_to: Option<String>,
    state: HealthState,
    /// For an ejected member: since when (missing if it was never asked), and the reason.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    since: Option<Since>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    /// From a client of which nothing is known, or the one that was asked for.
    distance: Distance,
    /// What that is known from.
    distance_source: DistanceSource,
    /// Where the node agent knows it to be.
    #[serde(skip_serializing_if = "Option::is_none")]
    numa_nodes: Option<Vec<u16>>,
    zone: Option<String>,
    /// Where the API server of Kubernetes names it: its node, and the unique id of its pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pod_uid: Option<String>,
    weight: f64,
    failures_in_a_row: u32,
    ejections: u64,
    /// Connections to it, and requests on them that it has not answered.
    lanes: u64,
    waiting: u64,
    /// The member is asked although it is suspected, as too many of its pool are ejected.
    fail_open: bool,
    /// It is given no new requests, as an operator has ordered. Missing if it is.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    drains: bool,
    /// In a pool that finds its writer by itself: what the member serves, for how many seconds, and why it
    /// does not serve.
    #[serde(flatten)]
    role: Option<RoleRow>,
    /// For a copy in a replicated pool: its state.
    #[serde(skip_serializing_if = "Option::is_none")]
    copy: Option<Copy>,
}

#[derive(Debug, Serialize)]
struct Copy {
    state: CopyState,
    /// Since when, and the reason; missing if the copy is current.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    since: Option<Since>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    missed: MissedCount,
    /// The copy has left the list of servers and may return. Missing if it has not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    departed: bool,
}

/// The number of keys that a copy missed, or a word for none and for all.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum MissedCount {
    Keys(usize),
    Word(&'static str),
}

impl From<Option<usize>> for MissedCount {
    fn from(keys: Option<usize>) -> Self {
        match keys {
            None => Self::Word(EVERYTHING),
            Some(0) => Self::Word(NOTHING),
            Some(keys) => Self::Keys(keys),
        }
    }
}

impl Copy {
    fn of(status: Option<&CopyStatus>, clock: Clock) -> Self {
        match status {
            Some(status) => Self {
                state: status.state,
                since: Some(clock.tell(status.since)),
                why: Some(status.why.clone()),
                missed: status.missed.into(),
                departed: status.departed,
            },
            None => Self {
                state: CopyState::Current,
                since: None,
                why: None,
                missed: Some(0).into(),
                departed: false,
            },
        }
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "beside the control thread, which owns the clock"
)]
pub(super) async fn members(State(proxy): Shared, RawQuery(query): RawQuery) -> Response {
    let from = match Query::parse(query.as_deref(), &["from"]).and_then(|query| query.address("from")) {
        Ok(from) => from,
        Err(error) => return (StatusCode::BAD_REQUEST, format!("{error}\n")).into_response(),
    };
    // The workers are asked for their metrics, which would block this thread.
    let rows = tokio::task::spawn_blocking(move || {
        let now = Instant::now();
        rows(&proxy.view(), &proxy.metrics(), from, now, Clock::Ago(now))
    });
    Json(rows.await.unwrap_or_default()).into_response()
}

/// A row for each member, in the order of the view.
pub(super) fn rows(
    view: &View,
    metrics: &Metrics,
    from: Option<IpAddr>,
    now: Instant,
    clock: Clock,
) -> Vec<Row> {
    let row = |found: &MemberView| {
        let member = &found.member;
        let counted = metrics.members.get(member.id.0 as usize);
        let (since, why) = match &found.ejection {
            Some(Ejection { since, why, .. }) => (Some(clock.tell(*since)), Some(why.clone())),
            None => (None, found.unresolved.clone()),
        };
        let (distance, distance_source) = view.distance(member, from);
        Row {
            pool: member.pool.name.to_string(),
            name: member.name.clone(),
            address: member.address.clone(),
            resolves_to: Some(member.endpoint())
                .filter(|at| **at != *member.address)
                .map(str::to_owned),
            state: member.health.state(),
            since,
            why,
            distance,
            distance_source,
            numa_nodes: view.numa_nodes(member),
            zone: member.zone.clone(),
            node: member.pod.as_ref().and_then(|pod| pod.node.clone()),
            pod_uid: member.pod.as_ref().and_then(|pod| pod.uid.clone()),
            weight: member.weight,
            failures_in_a_row: member.health.failures(),
            ejections: member.health.ejections(),
            lanes: counted.map_or(0, |metrics| metrics.lanes),
            waiting: counted.map_or(0, |metrics| metrics.waiting),
            role: found.role.as_ref().map(|status| RoleRow::of(status, now)),
            copy: found
                .copy
                .as_ref()
                .map(|copy| Copy::of(copy.status.as_ref(), clock)),
            fail_open: member.fails_open(),
            drains: member.drains(),
        }
    };
    view.members.iter().map(row).collect()
}
