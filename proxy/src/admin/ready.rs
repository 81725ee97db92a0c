//! `/ready`: whether clients may be sent here. It is not ready while it drains, or while a pool has no member
//! that may be asked, or while this proxy has no lease of its fleet.

use axum::{
    extract::{RawQuery, State},
    http::StatusCode,
};

use super::{
    Shared,
    query::{BadQuery, Query},
};
use crate::control::Proxy;

pub(super) async fn ready(State(proxy): Shared, RawQuery(query): RawQuery) -> (StatusCode, String) {
    answer(&proxy, query.as_deref()).unwrap_or_else(|error| (StatusCode::BAD_REQUEST, format!("{error}\n")))
}

/// `pool`: only this pool counts. `up`: the least number of usable members, by default 1.
fn answer(proxy: &Proxy, query: Option<&str>) -> Result<(StatusCode, String), BadQuery> {
    let query = Query::parse(query, &["pool", "up"])?;
    let (only, up) = (query.text("pool"), query.number("up")?);
    if let Some(why) = proxy.unready() {
        return Ok((StatusCode::SERVICE_UNAVAILABLE, format!("not ready\n{why}\n")));
    }
    let mut found = false;
    let mut text = String::new();
    let mut ready = true;
    for pool in proxy.pools() {
        if only.as_ref().is_some_and(|name| *name != pool.name) {
            continue;
        }
        found = true;
        ready &= pool.up >= up.unwrap_or(1);
        text.push_str(&format!(
            "pool {}: {} of {} members up\n",
            pool.name, pool.up, pool.members
        ));
    }
    Ok(match only {
        Some(name) if !found => (
            StatusCode::NOT_FOUND,
            format!("there is no pool `{}`\n", name.escape_debug()),
        ),
        _ if ready => (StatusCode::OK, format!("ready\n{text}")),
        _ => (StatusCode::SERVICE_UNAVAILABLE, format!("not ready\n{text}")),
    })
}
