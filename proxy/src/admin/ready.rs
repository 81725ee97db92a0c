//! `/ready`: may clients be sent here? Not while draining, and not while a pool has nobody left to ask.

use axum::{
    extract::{Query, State},
    http::StatusCode,
};
use serde::Deserialize;

use super::Shared;

#[derive(Debug, Deserialize)]
pub(super) struct Asked {
    /// Only this pool counts.
    pool: Option<String>,
    /// At least so many members up. Default 1.
    up: Option<usize>,
}

pub(super) async fn ready(State(proxy): Shared, Query(asked): Query<Asked>) -> (StatusCode, String) {
    if proxy.is_draining() {
        return (StatusCode::SERVICE_UNAVAILABLE, "draining\n".into());
    }
    let wanted = asked.up.unwrap_or(1);
    let mut found = false;
    let mut text = String::new();
    let mut ready = true;
    for pool in proxy.pools() {
        if asked.pool.as_ref().is_some_and(|name| *name != pool.name) {
            continue;
        }
        found = true;
        ready &= pool.up >= wanted.min(pool.members).max(asked.up.unwrap_or(1));
        text.push_str(&format!(
            "pool {}: {} of {} members up\n",
            pool.name, pool.up, pool.members
        ));
    }
    match asked.pool {
        Some(name) if !found => (StatusCode::NOT_FOUND, format!("there is no pool `{name}`\n")),
        _ if ready => (StatusCode::OK, format!("ready\n{text}")),
        _ => (StatusCode::SERVICE_UNAVAILABLE, format!("not ready\n{text}")),
    }
}
