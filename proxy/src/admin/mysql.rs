//! `/mysql`: the pools of MySQL servers, and who takes writes in each.

use std::{collections::BTreeMap, sync::Arc, time::Instant};

use axum::{
    Json,
    extract::{RawQuery, State},
    http::StatusCode,
    response::{IntoResponse, Response},
};
use serde::{Deserialize, Serialize};

use super::{Shared, query::Query, role::RoleRow};
use crate::{
    client::SessionQuery,
    control::{MemberView, Proxy, View},
    members::MemberId,
    metrics::Metrics,
    protocol::{Protocol, Role},
    protocols::Mysql,
};

/// The pools of MySQL servers.
#[derive(Debug, Deserialize, Serialize)]
pub struct MysqlStatus {
    /// Each of them, by name.
    pub pools: Vec<MysqlPool>,
}

impl MysqlStatus {
    /// The pools as of now, with their sessions. It waits for the workers.
    #[allow(
        clippy::disallowed_methods,
        reason = "beside the control thread, which owns the clock"
    )]
    fn now(proxy: &Proxy) -> Self {
        let (metrics, view, now) = (proxy.metrics(), proxy.view(), Instant::now());
        Self::of(&view, &metrics, now, |pool| bound_in(proxy, pool))
    }

    /// The pools of this view. `bound` finds the sessions that have a connection to each member of a pool.
    pub(super) fn of(
        view: &View,
        metrics: &Metrics,
        now: Instant,
        bound: impl Fn(&str) -> BTreeMap<MemberId, Vec<BoundSessions>>,
    ) -> Self {
        Self {
            pools: pools(view, metrics, now, bound),
        }
    }
}

/// A pool of MySQL servers.
#[derive(Debug, Deserialize, Serialize)]
pub struct MysqlPool {
    /// Its name.
    pub name: String,
    /// It finds its writer by itself: its members have roles.
    pub has_roles: bool,
    /// The name of its writer. `None`: no member takes writes, or members have no roles.
    pub writer: Option<String>,
    /// Its members, in the order of the configuration.
    pub members: Vec<MysqlMember>,
}

/// A server of such a pool.
#[derive(Debug, Deserialize, Serialize)]
pub struct MysqlMember {
    /// Its name.
    pub name: String,
    /// Its address.
    pub address: String,
    /// Its role; missing if members have none.
    #[serde(flatten)]
    pub role: Option<RoleRow>,
    /// The number of the last write that it has, as it last told; missing if that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<u64>,
    /// Writes that it had been sent and did not show yet; missing if that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unapplied: Option<u64>,
    /// It may be asked.
    pub is_up: bool,
    /// Why it is ejected; missing if it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// It is given no new requests, as an operator has ordered.
    pub drains: bool,
    /// Connections to it.
    pub connections: u64,
    /// Those of them that a session has.
    pub in_use: u64,
    /// Those of them that no session has now.
    #[serde(default)]
    pub idle: u64,
    /// Statements that wait for one of them.
    #[serde(default)]
    pub queued: u64,
    /// Requests that it has not answered.
    pub waiting: u64,
    /// The sessions that have a connection to it, by what binds them. Of very many those are counted that
    /// have theirs longest.
    #[serde(default)]
    pub sessions: Vec<BoundSessions>,
}

/// Sessions that have a connection to a server for the same reason.
#[derive(Debug, Deserialize, Serialize)]
pub struct BoundSessions {
    /// The reason, in a word.
    pub state: String,
    /// Their number.
    pub count: u64,
    /// Seconds for which the first of them has its connection.
    pub seconds: f64,
}

/// `pool`: only that one.
pub(super) async fn show(State(proxy): Shared, RawQuery(query): RawQuery) -> Response {
    let wanted = match Query::parse(query.as_deref(), &["pool"]) {
        Ok(query) => query.text("pool"),
        Err(error) => return (StatusCode::BAD_REQUEST, format!("{error}\n")).into_response(),
    };
    // The workers are asked for their metrics, which would block this thread.
    let status = tokio::task::spawn_blocking(move || MysqlStatus::now(&proxy)).await;
    let mut pools = status.map_or_else(|_| Vec::new(), |status| status.pools);
    if pools.is_empty() {
        return (StatusCode::NOT_FOUND, "no pool has `protocol: mysql`\n").into_response();
    }
    if let Some(name) = &wanted {
        let names: Vec<String> = pools.iter().map(|pool| pool.name.clone()).collect();
        pools.retain(|pool| pool.name == *name);
        if pools.is_empty() {
            let (name, names) = (name.escape_debug(), names.join(", "));
            let why = format!("no pool `{name}` has `protocol: mysql`; known are {names}\n");
            return (StatusCode::NOT_FOUND, why).into_response();
        }
    }
    Json(MysqlStatus { pools }).into_response()
}

fn pools(
    view: &View,
    metrics: &Metrics,
    now: Instant,
    bound: impl Fn(&str) -> BTreeMap<MemberId, Vec<BoundSessions>>,
) -> Vec<MysqlPool> {
    let row = |found: &MemberView, bound: &mut BTreeMap<MemberId, Vec<BoundSessions>>| {
        let member = &found.member;
        let counted = metrics.members.get(member.id.0 as usize);
        let progress = found.role.as_ref().and_then(|status| status.progress);
        MysqlMember {
            name: member.name.clone(),
            address: member.address.clone(),
            role: found.role.as_ref().map(|status| RoleRow::of(status, now)),
            position: progress.map(|progress| progress.position),
            unapplied: progress.map(|progress| progress.unapplied),
            is_up: member.is_up(),
            why: found.ejection.as_ref().map(|ejection| ejection.why.clone()),
            drains: member.drains(),
            connections: counted.map_or(0, |metrics| metrics.lanes),
            in_use: counted.map_or(0, |metrics| metrics.dedicated),
            idle: counted.map_or(0, |metrics| metrics.dedicated_idle),
            queued: counted.map_or(0, |metrics| metrics.dedicated_queued),
            waiting: counted.map_or(0, |metrics| metrics.waiting),
            sessions: bound.remove(&member.id).unwrap_or_default(),
        }
    };
    let mut pools: BTreeMap<Arc<str>, Vec<&MemberView>> = BTreeMap::new();
    for found in &view.members {
        let member = &found.member;
        if member.protocol.name() == Mysql::PLAIN.name() {
            pools
                .entry(Arc::clone(&member.pool.name))
                .or_default()
                .push(found);
        }
    }
    let pool = |(name, members): (Arc<str>, Vec<&MemberView>)| {
        let mut bound = bound(&name);
        let members: Vec<MysqlMember> = members.into_iter().map(|found| row(found, &mut bound)).collect();
        let is_writer = |member: &&MysqlMember| {
            let role = member.role.as_ref();
            role.is_some_and(|row| row.role == Role::Writer.name())
        };
        MysqlPool {
            name: name.to_string(),
            has_roles: members.iter().any(|member| member.role.is_some()),
            writer: members.iter().find(is_writer).map(|member| member.name.clone()),
            members,
        }
    };
    pools.into_iter().map(pool).collect()
}

/// The sessions that have a connection to each member of this pool.
pub(super) fn bound_in(proxy: &Proxy, pool: &str) -> BTreeMap<MemberId, Vec<BoundSessions>> {
    let all = SessionQuery {
        protocol: Mysql::PLAIN.name(),
        user: None,
        state: None,
        pool: Some(pool.to_owned()),
    };
    let mut found: BTreeMap<MemberId, Vec<BoundSessions>> = BTreeMap::new();
    for (_, facts) in proxy.sessions(all).sessions {
        let Some(lane) = &facts.lane else { continue };
        let seconds = lane.owned.0 as f64 / 1e6;
        let rows = found.entry(lane.member.id).or_default();
        match rows.iter_mut().find(|row| row.state == facts.state) {
            Some(row) => {
                row.count += 1;
                row.seconds = row.seconds.max(seconds);
            }
            None => rows.push(BoundSessions {
                state: facts.state.to_owned(),
                count: 1,
                seconds,
            }),
        }
    }
    found
}
