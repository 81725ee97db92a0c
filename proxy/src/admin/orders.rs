//! `/orders`: what operators have ordered for pools. A call that is repeated changes nothing but its end.

use std::time::{Duration, Instant};

use axum::{
    Json,
    extract::{RawQuery, State},
    http::StatusCode,
    response::{IntoResponse, Response},
};
use serde::Serialize;

use super::{Shared, query::Query};
use crate::{config::parse_duration, control::StandingOrder};

/// One order in force.
#[derive(Debug, Serialize)]
struct Row {
    pool: String,
    member: String,
    order: &'static str,
    /// Seconds since it was given.
    since: f64,
    /// Seconds until it ends by itself; missing: when it is taken back.
    #[serde(skip_serializing_if = "Option::is_none")]
    ends_in: Option<f64>,
    /// Whether connections are still open on which something is under way, or is kept for a client.
    has_connections: bool,
}

impl Row {
    fn of(order: &StandingOrder, now: Instant) -> Self {
        Self {
            pool: order.member.pool.name.to_string(),
            member: order.member.name.clone(),
            order: "drain",
            since: now.duration_since(order.since).as_secs_f64(),
            ends_in: order
                .until
                .map(|until| until.saturating_duration_since(now).as_secs_f64()),
            has_connections: order.has_connections(),
        }
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "beside the control thread, which owns the clock"
)]
pub(super) async fn show(State(proxy): Shared) -> Response {
    let now = Instant::now();
    let rows: Vec<Row> = proxy.orders().iter().map(|order| Row::of(order, now)).collect();
    Json(rows).into_response()
}

/// `pool` and `member`: who drains; `for`: how long.
pub(super) async fn drain(State(proxy): Shared, RawQuery(query): RawQuery) -> Response {
    match Asked::parse(query.as_deref(), &["pool", "member", "for"]) {
        Ok(Asked { pool, member, time }) => match proxy.order_drain(&pool, &member, time) {
            Ok(()) => show(State(proxy)).await,
            Err(error) => (StatusCode::UNPROCESSABLE_ENTITY, format!("{error}\n")).into_response(),
        },
        Err(why) => (StatusCode::BAD_REQUEST, why).into_response(),
    }
}

/// `pool` and `member`: who drains no more.
pub(super) async fn end_drain(State(proxy): Shared, RawQuery(query): RawQuery) -> Response {
    match Asked::parse(query.as_deref(), &["pool", "member"]) {
        Ok(Asked { pool, member, .. }) => match proxy.end_drain(&pool, &member) {
            Ok(()) => show(State(proxy)).await,
            Err(error) => (StatusCode::UNPROCESSABLE_ENTITY, format!("{error}\n")).into_response(),
        },
        Err(why) => (StatusCode::BAD_REQUEST, why).into_response(),
    }
}

/// What is asked for.
struct Asked {
    pool: String,
    member: String,
    time: Option<Duration>,
}

impl Asked {
    /// Parses a query.
    ///
    /// # Errors
    /// The text says what is missing or wrong.
    fn parse(query: Option<&str>, known: &[&str]) -> Result<Self, String> {
        let query = Query::parse(query, known).map_err(|error| format!("{error}\n"))?;
        let (Some(pool), Some(member)) = (query.text("pool"), query.text("member")) else {
            return Err("which member? ?pool=NAME&member=NAME\n".into());
        };
        let time = query.text("for").map(|text| {
            let time = parse_duration(&text).filter(|time| !time.is_zero());
            time.ok_or_else(|| {
                format!(
                    "`for={}`: expected a time above 0, such as 10m\n",
                    text.escape_debug()
                )
            })
        });
        Ok(Self {
            pool,
            member,
            time: time.transpose()?,
        })
    }
}
