//! `/explain?key=K`: where a request would go, and why.

use axum::{
    extract::{Query, RawQuery, State},
    http::StatusCode,
};
use percent_encoding::percent_decode_str;
use serde::Deserialize;

use super::Shared;
use crate::dialect::Memcache;

#[derive(Debug, Deserialize)]
pub(super) struct Asked {
    /// Default get.
    command: Option<String>,
    /// Listener number. Default 0.
    listener: Option<usize>,
}

pub(super) async fn explain(
    State(proxy): Shared,
    RawQuery(query): RawQuery,
    Query(asked): Query<Asked>,
) -> (StatusCode, String) {
    let key = key(query.as_deref().unwrap_or_default());
    let request = Memcache::example(asked.command.as_deref().unwrap_or("get"), &key);
    match proxy.explain(asked.listener.unwrap_or(0), &request) {
        Ok(text) => (StatusCode::OK, text),
        Err(error) => (StatusCode::BAD_REQUEST, format!("{error}\n")),
    }
}

/// The bytes of the key, which need not be text; none if there is no key.
fn key(query: &str) -> Vec<u8> {
    let coded = query.split('&').find_map(|pair| pair.strip_prefix("key="));
    percent_decode_str(&coded.unwrap_or_default().replace('+', " ")).collect()
}
