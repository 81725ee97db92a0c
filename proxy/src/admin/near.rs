//! `/near`: the near cache, and what operators order for it.

use std::sync::Arc;

use axum::{
    Json,
    extract::{RawQuery, State},
    http::StatusCode,
    response::{IntoResponse, Response},
};
use serde::Serialize;
use tokio::task::spawn_blocking;

use super::{Shared, query::Query};
use crate::control::{DropScope, NearError, Proxy};

/// The settings of a rule.
const SETTINGS: [&str; 6] = ["ttl", "stale", "stale_on_error", "negative", "largest", "jitter"];

/// The number of keys that are shown where the query has none.
const TOP: usize = 20;
/// The most keys that are shown.
const MOST: usize = 1000;

/// The near cache with its rules.
pub(super) async fn show(State(proxy): Shared) -> Response {
    aside(proxy, None, |proxy, _| Ok(json(proxy.near_status()?))).await
}

/// `rule`: only its keys; `count`: how many.
pub(super) async fn top(State(proxy): Shared, RawQuery(query): RawQuery) -> Response {
    aside(proxy, query, |proxy, query| {
        let query = Query::parse(query, &["rule", "count"])?;
        let count = query.number("count")?.unwrap_or(TOP).min(MOST);
        Ok(json(proxy.near_top(query.text("rule").as_deref(), count)?))
    })
    .await
}

/// `rule` and `key`: what is explained.
pub(super) async fn explain(State(proxy): Shared, RawQuery(query): RawQuery) -> Response {
    aside(proxy, query, |proxy, query| {
        let query = Query::parse(query, &["rule", "key"])?;
        let key = query.bytes("key").filter(|key| !key.is_empty());
        let key = key.ok_or("which key? ?rule=NAME&key=KEY")?;
        Ok(proxy.explain_near(&rule(&query)?, &key)?.into_response())
    })
    .await
}

/// `rule` with its settings, or `memory`; `keep`: beyond the end of the process.
pub(super) async fn set(State(proxy): Shared, RawQuery(query): RawQuery) -> Response {
    aside(proxy, query, |proxy, query| {
        let known = [&["rule", "memory", "keep"][..], &SETTINGS].concat();
        let query = Query::parse(query, &known)?;
        let keep = query.flag("keep")?;
        let given: Vec<(&str, String)> = SETTINGS
            .into_iter()
            .filter_map(|name| Some((name, query.text(name)?)))
            .collect();
        match (query.text("memory"), query.text("rule")) {
            (Some(memory), None) if given.is_empty() => proxy.set_near_memory(&memory, keep)?,
            (None, Some(rule)) if !given.is_empty() => {
                let given: Vec<(&str, &str)> = given.iter().map(|(name, value)| (*name, &**value)).collect();
                proxy.set_near_rule(&rule, &given, keep)?;
            }
            _ => return Err(WHAT_TO_SET.into()),
        }
        Ok(json(proxy.near_status()?))
    })
    .await
}

const WHAT_TO_SET: &str = "what is to be set? ?rule=NAME&ttl=10s, with any of `stale`, `stale_on_error`, \
                           `negative`, `largest` and `jitter`; or ?memory=512MiB alone";

/// `rule`: what is kept again, and `ttl`: for how long.
pub(super) async fn on(State(proxy): Shared, RawQuery(query): RawQuery) -> Response {
    aside(proxy, query, |proxy, query| {
        let query = Query::parse(query, &["rule", "ttl", "keep"])?;
        proxy.near_on(&rule(&query)?, query.text("ttl").as_deref(), query.flag("keep")?)?;
        Ok(json(proxy.near_status()?))
    })
    .await
}

/// `rule`: what is kept no more.
pub(super) async fn off(State(proxy): Shared, RawQuery(query): RawQuery) -> Response {
    aside(proxy, query, |proxy, query| {
        let query = Query::parse(query, &["rule", "keep"])?;
        proxy.near_off(&rule(&query)?, query.flag("keep")?)?;
        Ok(json(proxy.near_status()?))
    })
    .await
}

/// `rule`, and `key`, `prefix` or `all`: what goes. Bytes that are no text are escaped by `%`.
pub(super) async fn drop(State(proxy): Shared, RawQuery(query): RawQuery) -> Response {
    aside(proxy, query, |proxy, query| {
        let query = Query::parse(query, &["rule", "key", "prefix", "all"])?;
        let rule = rule(&query)?;
        let (key, prefix) = (query.bytes("key"), query.bytes("prefix"));
        let is_meant = |bytes: &Option<Vec<u8>>| bytes.as_ref().is_some_and(|bytes| !bytes.is_empty());
        let meant = match (&key, &prefix, query.flag("all")?) {
            (Some(bytes), None, false) if is_meant(&key) => DropScope::Key(bytes),
            (None, Some(bytes), false) if is_meant(&prefix) => DropScope::Prefix(bytes),
            (None, None, true) => DropScope::All,
            _ => return Err(WHAT_TO_DROP.into()),
        };
        Ok(json(DropCount {
            dropped: proxy.drop_near(&rule, meant)?,
        }))
    })
    .await
}

const WHAT_TO_DROP: &str =
    "what is to be dropped? ?rule=NAME with one of &key=KEY, &prefix=BEGINNING and &all=1";

/// How many kept replies went.
#[derive(Serialize)]
struct DropCount {
    dropped: u64,
}

fn rule(query: &Query<'_>) -> Result<String, Refusal> {
    let rule = query.text("rule").filter(|rule| !rule.is_empty());
    Ok(rule.ok_or("which rule? ?rule=NAME")?)
}

fn json(value: impl Serialize) -> Response {
    Json(value).into_response()
}

/// The reason why a request is not carried out, with its status.
struct Refusal(StatusCode, String);

impl<E: std::fmt::Display + Into<RefusalStatus>> From<E> for Refusal {
    fn from(error: E) -> Self {
        let text = error.to_string();
        Self(error.into().0, text)
    }
}

/// The status of a refusal.
struct RefusalStatus(StatusCode);

impl From<&str> for RefusalStatus {
    fn from(_: &str) -> Self {
        Self(StatusCode::BAD_REQUEST)
    }
}

impl From<super::query::BadQuery> for RefusalStatus {
    fn from(_: super::query::BadQuery) -> Self {
        Self(StatusCode::BAD_REQUEST)
    }
}

impl From<NearError> for RefusalStatus {
    fn from(error: NearError) -> Self {
        Self(match error {
            NearError::None => StatusCode::NOT_FOUND,
            NearError::NoRule(..) | NearError::Value(_) | NearError::NoTime(_) | NearError::NoFile => {
                StatusCode::BAD_REQUEST
            }
            NearError::Damaged(_) | NearError::Unwritten(..) => StatusCode::UNPROCESSABLE_ENTITY,
        })
    }
}

/// Answers beside the control thread: an order may walk through all that is kept, and the status waits for
/// the workers.
async fn aside(
    proxy: Arc<Proxy>,
    query: Option<String>,
    answer: impl FnOnce(&Proxy, Option<&str>) -> Result<Response, Refusal> + Send + 'static,
) -> Response {
    let answered = spawn_blocking(move || answer(&proxy, query.as_deref())).await;
    match answered {
        Ok(Ok(response)) => response,
        Ok(Err(Refusal(status, text))) => (status, format!("{text}\n")).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}
