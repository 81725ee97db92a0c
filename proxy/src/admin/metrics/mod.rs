//! `/metrics`. Each worker counts for itself; the counters are added up when they are asked for.
//!
//! A member has at most twelve rows. What is of use only for many members together is counted by pool.

mod agent;
mod copies;
mod dedicated;
mod discovery;
mod embedded;
mod fleet;
mod members;
mod near;
mod program;
mod requests;
mod sessions;
mod slow;
mod spool;
mod tls;

use axum::{
    extract::State,
    http::{HeaderMap, header},
    response::Response,
};

use super::{
    Shared,
    format::Format,
    page::{Page, quoted},
    process::process,
    text,
};
use crate::{control::Proxy, members::Member};

pub(super) async fn metrics(State(proxy): Shared, headers: HeaderMap) -> Response {
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    let format = Format::preferred(accept);
    let body = tokio::task::spawn_blocking(move || render(&proxy, format))
        .await
        .unwrap_or_default();
    text(format.content_type(), body)
}

fn render(proxy: &Proxy, format: Format) -> String {
    let (metrics, view) = (proxy.metrics(), proxy.view());
    let mut page = Page::new(format);
    program::build(proxy, &mut page);
    program::configuration(&view, &mut page);
    program::dns(&view, &mut page);
    program::endpoints(&view, &mut page);
    program::services(&view, &mut page);
    discovery::discovery(&view, &mut page);
    spool::spool(&view, &mut page);
    agent::agent(&view, &metrics, &mut page);
    requests::clients(&metrics, &mut page);
    sessions::sessions(&metrics, &mut page);
    requests::lanes(&metrics, &mut page);
    requests::traffic(&metrics, &mut page);
    tls::tls(proxy, &metrics, &mut page);
    copies::copies(&view, &metrics, &mut page);
    requests::requests(proxy, &metrics, &mut page);
    requests::classes(proxy, &metrics, &mut page);
    requests::names(&metrics, &mut page);
    requests::lookups(proxy, &metrics, &mut page);
    requests::durations(&view, &metrics, &mut page);
    members::pools(&view, &mut page);
    members::draining(&view, &mut page);
    members::members(&view, &metrics, &mut page);
    dedicated::dedicated(&view, &metrics, &mut page);
    embedded::embedded(proxy, &mut page);
    near::near(proxy, &metrics, &mut page);
    slow::slow(proxy, &mut page);
    fleet::fleet(proxy, &view, &metrics, &mut page);
    process(&mut page);
    page.finish()
}

/// The labels of a member's rows.
fn labels(member: &Member) -> String {
    let (pool, name) = (quoted(&member.pool.name), quoted(&member.name));
    format!("pool=\"{pool}\",member=\"{name}\"")
}
