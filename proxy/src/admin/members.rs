//! `/members`: every server, its state and distance.

use axum::{Json, extract::State};
use serde::Serialize;

use super::Shared;
use crate::members::{Distance, State as Health};

#[derive(Debug, Serialize)]
pub(super) struct Row {
    pool: String,
    name: String,
    address: String,
    state: Health,
    distance: Distance,
    zone: Option<String>,
    weight: f64,
    failures_in_a_row: u32,
    ejections: u64,
    fail_open: bool,
}

pub(super) async fn members(State(proxy): Shared) -> Json<Vec<Row>> {
    let rows = proxy.members().into_iter().map(|member| Row {
        pool: member.pool.to_string(),
        name: member.name.clone(),
        address: member.address.clone(),
        state: member.health.state(),
        distance: member.distance,
        zone: member.zone.clone(),
        weight: member.weight,
        failures_in_a_row: member.health.failures(),
        ejections: member.health.ejections(),
        fail_open: member.fail_open.load(std::sync::atomic::Ordering::Relaxed),
    });
    Json(rows.collect())
}
