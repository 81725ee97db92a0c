//! `/explain?key=K`: where a request would go, and why.

use axum::{
    extract::{Query, State},
    http::StatusCode,
};
use serde::Deserialize;

use super::Shared;
use crate::dialect::{Dialect, Memcache};

#[derive(Debug, Deserialize)]
pub(super) struct Asked {
    key: String,
    /// Default get.
    command: Option<String>,
    /// Listener number. Default 0.
    listener: Option<usize>,
}

pub(super) async fn explain(State(proxy): Shared, Query(asked): Query<Asked>) -> (StatusCode, String) {
    let request = Memcache::PLAIN.example(asked.command.as_deref().unwrap_or("get"), &asked.key);
    match proxy.explain(asked.listener.unwrap_or(0), request.as_bytes()) {
        Ok(text) => (StatusCode::OK, text),
        Err(error) => (StatusCode::BAD_REQUEST, format!("{error}\n")),
    }
}
