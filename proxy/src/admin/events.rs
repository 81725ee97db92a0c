//! `/events`: the last changes of state.

use std::sync::Arc;

use axum::{
    Json,
    extract::{RawQuery, State},
    http::StatusCode,
    response::{IntoResponse, Response},
};
use serde::Serialize;

use super::{Shared, query::Query};
use crate::event_log::{Event, KEPT, kind};

/// The form of the answer.
const VERSION: u32 = 1;

#[derive(Serialize)]
struct Events {
    version: u32,
    /// Numbers begin anew with each process.
    process: String,
    /// The number of the newest event, of those that were not asked for, too.
    next: u64,
    events: Vec<Arc<Event>>,
}

/// `after`: only those with a greater number; `kind`: only that one; `limit`: the last ones, so many at most.
pub(super) async fn show(State(proxy): Shared, RawQuery(query): RawQuery) -> Response {
    let (after, wanted, limit) = match parse(query.as_deref()) {
        Ok(parsed) => parsed,
        Err(error) => return (StatusCode::BAD_REQUEST, format!("{error}\n")).into_response(),
    };
    let mut events = proxy.events().since(after);
    let next = *proxy.events().newest().borrow();
    if let Some(wanted) = &wanted {
        events.retain(|event| event.kind == wanted);
    }
    events.drain(..events.len().saturating_sub(limit));
    let process = proxy.process();
    Json(Events {
        version: VERSION,
        process,
        next,
        events,
    })
    .into_response()
}

type Parsed = (u64, Option<String>, usize);

fn parse(query: Option<&str>) -> Result<Parsed, String> {
    let query = Query::parse(query, &["after", "kind", "limit"]).map_err(|error| error.to_string())?;
    let number = |name| query.number(name).map_err(|error| error.to_string());
    let wanted = query.text("kind");
    if let Some(unknown) = wanted.as_deref().filter(|wanted| !kind::ALL.contains(wanted)) {
        let known = kind::ALL.join(", ");
        return Err(format!(
            "there is no kind `{}`; known are {known}",
            unknown.escape_debug()
        ));
    }
    let after = number("after")?.map_or(0, |after: usize| after as u64);
    Ok((after, wanted, number("limit")?.unwrap_or(KEPT)))
}
