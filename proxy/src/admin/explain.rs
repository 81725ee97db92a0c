//! `/explain?key=K`: the route of a request, with the reasons.

use axum::{
    extract::{RawQuery, State},
    http::StatusCode,
};

use super::{
    Shared,
    query::{BadQuery, Query},
};
use crate::control::Proxy;

pub(super) async fn explain(State(proxy): Shared, RawQuery(query): RawQuery) -> (StatusCode, String) {
    match answer(&proxy, query.as_deref()) {
        Ok(text) => (StatusCode::OK, text),
        Err(error) => (StatusCode::BAD_REQUEST, format!("{error}\n")),
    }
}

fn answer(proxy: &Proxy, query: Option<&str>) -> Result<String, BadQuery> {
    let query = Query::parse(query, &["key", "command", "listener", "from"])?;
    let key = query.bytes("key").filter(|key| !key.is_empty());
    let key = key.ok_or(BadQuery::NoKey)?;
    let command = query.text("command").unwrap_or_else(|| "get".into());
    let listener = query.number("listener")?.unwrap_or(0);
    Ok(proxy.explain(listener, &command, &key, query.address("from")?)?)
}
