//! `/watch`: what changes, as a stream of server-sent events: the whole document, then each second its
//! difference, and each change of state as it comes.
//!
//! * `document`: all that is told, made of the metrics (`counts`, `latency`, `history`), the state (`health`) and
//!   samples of requests (`traffic`)
//! * `patch`: differences of documents
//! * `publisher`: tells all watchers their messages (`message`); `watcher`: one of them

mod counts;
mod document;
mod health;
mod history;
mod latency;
mod message;
mod patch;
mod publisher;
mod traffic;
mod watcher;

use axum::{
    Extension,
    extract::{RawQuery, State},
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
};

pub(super) use self::publisher::Publisher;
use super::{connections::Lasts, query::Query};

/// `with=samples`: with what samples of requests tell. `Last-Event-ID`: the last change of state that is known.
pub(super) async fn watch(
    State(publisher): State<Publisher>,
    headers: HeaderMap,
    Extension(lasts): Extension<Lasts>,
    RawQuery(query): RawQuery,
) -> Response {
    let samples = match wants_samples(query.as_deref()) {
        Ok(samples) => samples,
        Err(why) => return (StatusCode::BAD_REQUEST, format!("{why}\n")).into_response(),
    };
    let since = headers
        .get("last-event-id")
        .and_then(|id| id.to_str().ok()?.parse().ok());
    let Some(body) = publisher.watch(since, samples, lasts.clone()) else {
        let why = "16 watch already; try again when one of them has gone\n";
        return (StatusCode::SERVICE_UNAVAILABLE, why).into_response();
    };
    lasts.begin();
    let kind = [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    (kind, body).into_response()
}

fn wants_samples(query: Option<&str>) -> Result<bool, String> {
    let query = Query::parse(query, &["with"]).map_err(|error| error.to_string())?;
    match query.text("with").as_deref() {
        None => Ok(false),
        Some("samples") => Ok(true),
        Some(other) => Err(format!("`with={}`: known is `samples`", other.escape_debug())),
    }
}
