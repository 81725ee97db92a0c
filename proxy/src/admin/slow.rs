//! `/slow`: the last slow requests, with the times of their steps.

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
    request_row::{self, RequestRow},
};
use crate::{
    config::schema,
    control::Proxy,
    micros::Micros,
    route::{SlowRequest, StepTime, WaitedFor},
};

/// The form of the answer.
const VERSION: u32 = 1;

#[derive(Serialize)]
struct Slow {
    version: u32,
    /// Numbers begin anew with each process.
    process: String,
    /// What is kept; missing: nothing is.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    terms: Option<Terms>,
    /// Slow requests since the start, and those of them that could not be kept.
    count: u64,
    missed: u64,
    requests: Vec<Row>,
}

#[derive(Serialize)]
struct Terms {
    over_us: u64,
    keep: usize,
    keys: &'static str,
}

#[derive(Serialize)]
struct Row {
    number: u64,
    #[serde(flatten)]
    request: RequestRow,
    #[serde(skip_serializing_if = "Option::is_none")]
    statement: Option<String>,
    /// The number of requests that it stands for.
    weight: u32,
    steps: Vec<Step>,
    /// There were more than these.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    more_steps: bool,
}

#[derive(Serialize)]
struct Step {
    waited_for: &'static str,
    from_us: u64,
    us: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    route: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pool: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
}

/// `after`: only those with a greater number; `limit`: the newest ones, so many at most.
pub(super) async fn show(State(proxy): Shared, RawQuery(query): RawQuery) -> Response {
    let (after, limit) = match parse(query.as_deref()) {
        Ok(parsed) => parsed,
        Err(error) => return (StatusCode::BAD_REQUEST, format!("{error}\n")).into_response(),
    };
    let (count, missed) = proxy.slow_requests().counts();
    let listeners = proxy.view().listeners;
    let address = |number: u16| listeners.get(usize::from(number)).cloned().flatten();
    let last = proxy.slow_requests().last();
    let wanted = last
        .iter()
        .take_while(|request| request.number > after)
        .take(limit);
    let requests = wanted.map(|request| row(request, address(request.listener).unwrap_or_default()));
    Json(Slow {
        version: VERSION,
        process: proxy.process(),
        terms: terms(&proxy),
        count,
        missed,
        requests: requests.collect(),
    })
    .into_response()
}

fn terms(proxy: &Proxy) -> Option<Terms> {
    let schema::SlowRequests { over, keep, keys } = proxy.slow_terms()?;
    Some(Terms {
        over_us: Micros::from(over).0,
        keep,
        keys: keys.name(),
    })
}

fn parse(query: Option<&str>) -> Result<(u64, usize), String> {
    let query = Query::parse(query, &["after", "limit"]).map_err(|error| error.to_string())?;
    let number = |name| query.number(name).map_err(|error| error.to_string());
    let after = number("after")?.map_or(0, |after: usize| after as u64);
    Ok((after, number("limit")?.unwrap_or(usize::MAX)))
}

fn row(request: &SlowRequest, listener: String) -> Row {
    Row {
        number: request.number,
        request: RequestRow {
            at_ms: request.at.0 / 1000,
            listener,
            client: request.client.map(|client| client.to_string()),
            command: request.command,
            class: request_row::class(request.class),
            key: request.key.clone(),
            outcome: request_row::outcome(request.outcome),
            us: request.took.0,
        },
        statement: request.statement.clone(),
        weight: request.weight,
        steps: request.steps.iter().map(step).collect(),
        more_steps: request.has_more_steps,
    }
}

fn step(StepTime { what, begun, took }: &StepTime) -> Step {
    let mut step = Step {
        waited_for: "answer",
        from_us: begun.0,
        us: took.0,
        route: None,
        pool: None,
        server: None,
        outcome: None,
        why: None,
    };
    match what {
        WaitedFor::Connection => step.waited_for = "connection",
        WaitedFor::Pool => step.waited_for = "pool",
        WaitedFor::Route(name) => (step.waited_for, step.route) = ("route", Some(*name)),
        WaitedFor::Answer { server, outcome, why } => {
            let (pool, address) = server.clone().unzip();
            step.pool = pool.filter(|pool| !pool.is_empty());
            step.server = address;
            step.outcome = Some(request_row::outcome(*outcome));
            step.why.clone_from(why);
        }
    }
    step
}
