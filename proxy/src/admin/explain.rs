//! `/explain?key=K` and `/explain?sql=TEXT`: the route of a request, with the reasons; `/explain.json`: the same with
//! the numbers of the nodes, for those who draw it.

use std::net::IpAddr;

use axum::{
    Json,
    extract::{RawQuery, State},
    http::StatusCode,
    response::{IntoResponse, Response},
};
use serde::Serialize;

use super::{
    Shared,
    query::{BadQuery, Query},
};
use crate::{control::Proxy, route::Example};

pub(super) async fn explain(State(proxy): Shared, RawQuery(query): RawQuery) -> (StatusCode, String) {
    match answer(&proxy, query.as_deref()) {
        Ok(text) => (StatusCode::OK, text),
        Err(error) => (StatusCode::BAD_REQUEST, format!("{error}\n")),
    }
}

/// The way of a request, step by step.
#[derive(Serialize)]
struct Way {
    text: String,
    /// The numbers of the nodes that it comes by, as `/tree` has them.
    nodes: Vec<u32>,
    steps: Vec<StepRow>,
}

#[derive(Serialize)]
struct StepRow {
    /// Missing for a remark on the step before.
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<u32>,
    depth: usize,
    text: String,
}

pub(super) async fn explain_json(State(proxy): Shared, RawQuery(query): RawQuery) -> Response {
    let explained = with_example(query.as_deref(), |listener, example, from| {
        Ok(proxy.explained(listener, example, from)?)
    });
    let explained = match explained {
        Ok(explained) => explained,
        Err(error) => return (StatusCode::BAD_REQUEST, format!("{error}\n")).into_response(),
    };
    let (text, steps) = (proxy.in_words(&explained), explained.steps);
    let nodes = steps.iter().filter_map(|step| step.node).collect();
    let steps = steps.into_iter().map(|step| StepRow {
        node: step.node,
        depth: step.depth,
        text: format!("{}{}{}", step.note, step.name, step.text),
    });
    let steps = steps.collect();
    Json(Way { text, nodes, steps }).into_response()
}

fn answer(proxy: &Proxy, query: Option<&str>) -> Result<String, BadQuery> {
    with_example(query, |listener, example, from| {
        Ok(proxy.explain(listener, example, from)?)
    })
}

/// Has the request explained that a query asks about.
fn with_example<T>(
    query: Option<&str>,
    explain: impl FnOnce(usize, Example<'_>, Option<IpAddr>) -> Result<T, BadQuery>,
) -> Result<T, BadQuery> {
    let query = Query::parse(
        query,
        &["key", "sql", "user", "schema", "command", "listener", "from"],
    )?;
    let asked = |name| query.bytes(name).filter(|bytes| !bytes.is_empty());
    let (key, sql, command) = (asked("key"), asked("sql"), query.text("command"));
    let (user, schema) = (asked("user"), asked("schema"));
    let example = match (&key, &sql, &command) {
        (Some(key), None, command) if user.is_none() && schema.is_none() => Example::Key {
            command: command.as_deref().unwrap_or("get"),
            key,
        },
        (None, Some(sql), None) => Example::Text {
            text: sql,
            user: user.as_deref().unwrap_or_default(),
            schema: schema.as_deref().unwrap_or_default(),
        },
        _ => return Err(BadQuery::NoKey),
    };
    let listener = query.number("listener")?.unwrap_or(0);
    explain(listener, example, query.address("from")?)
}
