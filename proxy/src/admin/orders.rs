//! `/orders`: what operators have ordered for pools. A call that is repeated changes nothing but its end.

use std::{
    sync::{Arc, atomic::Ordering::Relaxed},
    time::{Duration, Instant},
};

use axum::{
    Json,
    extract::{RawQuery, State},
    http::StatusCode,
    response::{IntoResponse, Response},
};
use serde::Serialize;

use super::{Shared, query::Query};
use crate::{
    config::parse_duration,
    control::{OrderError, OrderKind, Proxy, StandingOrder},
};

/// The longest time that writes wait for what is under way at the writer, by default.
const WITHIN: Duration = Duration::from_secs(5);

/// One order in force.
#[derive(Debug, Serialize)]
struct Row {
    pool: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    member: Option<String>,
    order: &'static str,
    /// Seconds since it was given.
    since: f64,
    /// Seconds until it ends by itself; missing: when it is taken back.
    #[serde(skip_serializing_if = "Option::is_none")]
    ends_in: Option<f64>,
    /// For a member that drains: whether connections are still open on which something is under way, or is
    /// kept for a client.
    #[serde(skip_serializing_if = "Option::is_none")]
    has_connections: Option<bool>,
}

impl Row {
    fn of(order: &StandingOrder, now: Instant) -> Self {
        Self {
            pool: order.pool.name.to_string(),
            member: order.kind.member().map(|member| member.name.clone()),
            order: order.kind.name(),
            since: now.duration_since(order.since).as_secs_f64(),
            ends_in: order
                .until
                .map(|until| until.saturating_duration_since(now).as_secs_f64()),
            has_connections: match &order.kind {
                OrderKind::Drain { has_connections, .. } => Some(has_connections.load(Relaxed)),
                OrderKind::Hold | OrderKind::Writer { .. } => None,
            },
        }
    }
}

pub(super) async fn show(State(proxy): Shared) -> Response {
    rows(&proxy)
}

#[allow(
    clippy::disallowed_methods,
    reason = "beside the control thread, which owns the clock"
)]
fn rows(proxy: &Proxy) -> Response {
    let now = Instant::now();
    let rows: Vec<Row> = proxy.orders().iter().map(|order| Row::of(order, now)).collect();
    Json(rows).into_response()
}

/// `pool` and `member`: who drains; `for`: how long.
pub(super) async fn drain(State(proxy): Shared, RawQuery(query): RawQuery) -> Response {
    let asked = OrderRequest::of_member(query.as_deref(), true);
    carried_out(&proxy, asked, |asked| {
        proxy.order_drain(&asked.pool, &asked.member, asked.time)
    })
}

/// `pool` and `member`: who drains no more.
pub(super) async fn end_drain(State(proxy): Shared, RawQuery(query): RawQuery) -> Response {
    let asked = OrderRequest::of_member(query.as_deref(), false);
    carried_out(&proxy, asked, |asked| {
        proxy.end_order("drain", &asked.pool, Some(&asked.member))
    })
}

/// `pool`: whose requests wait; `for`: how long.
pub(super) async fn hold(State(proxy): Shared, RawQuery(query): RawQuery) -> Response {
    let asked = OrderRequest::of_pool(query.as_deref(), true);
    carried_out(&proxy, asked, |asked| proxy.order_hold(&asked.pool, asked.time))
}

/// `pool`: whose requests wait no more.
pub(super) async fn end_hold(State(proxy): Shared, RawQuery(query): RawQuery) -> Response {
    let asked = OrderRequest::of_pool(query.as_deref(), false);
    carried_out(&proxy, asked, |asked| proxy.end_order("hold", &asked.pool, None))
}

/// `pool` and `member`: who takes writes; `for`: how long; `within`: the longest time that writes wait for
/// what is under way; `force=yes`: what is still under way then fails. The answer comes when the member takes
/// writes.
pub(super) async fn writer(State(proxy): Shared, RawQuery(query): RawQuery) -> Response {
    let asked = MoveRequest::of(query.as_deref());
    let done = match &asked {
        Ok(MoveRequest {
            order,
            within,
            is_forced,
        }) => {
            let (how, time) = ((*within, *is_forced), order.time);
            let (pool, member) = (order.pool.clone(), order.member.clone());
            let giver = Arc::clone(&proxy);
            // It comes to its end, also if nobody waits for the answer any more.
            let given = tokio::spawn(async move { giver.order_writer(&pool, &member, time, how).await });
            given.await.map_err(|error| format!("{error}\n"))
        }
        Err(why) => Err(why.clone()),
    };
    answer(&proxy, done)
}

/// `pool`: whose writer is not ordered any more.
pub(super) async fn end_writer(State(proxy): Shared, RawQuery(query): RawQuery) -> Response {
    let asked = OrderRequest::of_pool(query.as_deref(), false);
    carried_out(&proxy, asked, |asked| {
        proxy.end_order("writer", &asked.pool, None)
    })
}

/// Carries out what is asked for, and shows the orders in force.
fn carried_out(
    proxy: &Proxy,
    asked: Result<OrderRequest, String>,
    order: impl FnOnce(&OrderRequest) -> Result<(), OrderError>,
) -> Response {
    answer(proxy, asked.map(|asked| order(&asked)))
}

fn answer(proxy: &Proxy, done: Result<Result<(), OrderError>, String>) -> Response {
    match done {
        Ok(Ok(())) => rows(proxy),
        Ok(Err(error)) => (StatusCode::UNPROCESSABLE_ENTITY, format!("{error}\n")).into_response(),
        Err(why) => (StatusCode::BAD_REQUEST, why).into_response(),
    }
}

/// What is asked for.
struct OrderRequest {
    pool: String,
    /// Empty where a pool is asked for.
    member: String,
    time: Option<Duration>,
}

impl OrderRequest {
    /// Parses a query for a member.
    ///
    /// # Errors
    /// The text says what is missing or wrong.
    fn of_member(query: Option<&str>, has_time: bool) -> Result<Self, String> {
        let known = ["pool", "member", "for"];
        let query = Query::parse(query, &known[..2 + usize::from(has_time)]);
        let query = query.map_err(|error| format!("{error}\n"))?;
        let (Some(pool), Some(member)) = (query.text("pool"), query.text("member")) else {
            return Err("which member? ?pool=NAME&member=NAME\n".into());
        };
        let time = time(&query)?;
        Ok(Self { pool, member, time })
    }

    /// Parses a query for a pool.
    ///
    /// # Errors
    /// The text says what is missing or wrong.
    fn of_pool(query: Option<&str>, has_time: bool) -> Result<Self, String> {
        let known = ["pool", "for"];
        let query = Query::parse(query, &known[..1 + usize::from(has_time)]);
        let query = query.map_err(|error| format!("{error}\n"))?;
        let Some(pool) = query.text("pool") else {
            return Err("which pool? ?pool=NAME\n".into());
        };
        let time = time(&query)?;
        Ok(Self {
            pool,
            member: String::new(),
            time,
        })
    }
}

/// What is asked for where the writer is to move.
struct MoveRequest {
    order: OrderRequest,
    within: Duration,
    is_forced: bool,
}

impl MoveRequest {
    /// Parses a query.
    ///
    /// # Errors
    /// The text says what is missing or wrong.
    fn of(query: Option<&str>) -> Result<Self, String> {
        let query = Query::parse(query, &["pool", "member", "for", "within", "force"]);
        let query = query.map_err(|error| format!("{error}\n"))?;
        let (Some(pool), Some(member)) = (query.text("pool"), query.text("member")) else {
            return Err("which member? ?pool=NAME&member=NAME\n".into());
        };
        let is_forced = match query.text("force").as_deref() {
            None => false,
            Some("yes") => true,
            Some(other) => return Err(format!("`force={}`: expected `yes`\n", other.escape_debug())),
        };
        let time = time(&query)?;
        Ok(Self {
            order: OrderRequest { pool, member, time },
            within: time_of(&query, "within")?.unwrap_or(WITHIN),
            is_forced,
        })
    }
}

fn time(query: &Query<'_>) -> Result<Option<Duration>, String> {
    time_of(query, "for")
}

fn time_of(query: &Query<'_>, name: &str) -> Result<Option<Duration>, String> {
    let Some(text) = query.text(name) else {
        return Ok(None);
    };
    match parse_duration(&text).filter(|time| !time.is_zero()) {
        Some(time) => Ok(Some(time)),
        None => Err(format!(
            "`{name}={}`: expected a time above 0, such as 10m\n",
            text.escape_debug()
        )),
    }
}
