//! `/explain?key=K` and `/explain?sql=TEXT`: the route of a request, with the reasons.

use axum::{
    extract::{RawQuery, State},
    http::StatusCode,
};

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

fn answer(proxy: &Proxy, query: Option<&str>) -> Result<String, BadQuery> {
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
    Ok(proxy.explain(listener, example, query.address("from")?)?)
}
