//! `/fleet`: the fleet as this proxy sees it, and the removal of a peer.

use std::sync::Arc;

use axum::{
    Json,
    extract::{RawQuery, State},
    http::StatusCode,
    response::{IntoResponse, Response},
};

use super::{Shared, query::Query};
use crate::control::Fleet;

fn fleet(proxy: &crate::control::Proxy) -> Result<&Arc<Fleet>, Box<Response>> {
    let none = "this proxy is in no fleet: its configuration has no `fleet`\n";
    proxy
        .fleet()
        .ok_or_else(|| Box::new((StatusCode::NOT_FOUND, none).into_response()))
}

pub(super) async fn show(State(proxy): Shared) -> Response {
    match fleet(&proxy) {
        Ok(fleet) => Json(fleet.status()).into_response(),
        Err(response) => *response,
    }
}

/// `peer`: the name of the peer that leaves. It may join again after a pause.
pub(super) async fn remove(State(proxy): Shared, RawQuery(query): RawQuery) -> Response {
    let fleet = match fleet(&proxy) {
        Ok(fleet) => Arc::clone(fleet),
        Err(response) => return *response,
    };
    let name = match Query::parse(query.as_deref(), &["peer"]) {
        Ok(query) => query.text("peer"),
        Err(error) => return (StatusCode::BAD_REQUEST, format!("{error}\n")).into_response(),
    };
    let Some(name) = name else {
        return (StatusCode::BAD_REQUEST, "which one? ?peer=NAME\n").into_response();
    };
    match fleet.remove_peer(&name).await {
        Ok(()) => format!("{} is left out\n", name.escape_debug()).into_response(),
        Err(error) => (StatusCode::CONFLICT, format!("{error}\n")).into_response(),
    }
}
