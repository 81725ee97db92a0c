//! `/tap`: samples of requests as they are answered, a line each.

use std::{
    task::Context,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use axum::{
    Extension,
    body::Body,
    extract::{RawQuery, State},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use hyper::body::Bytes;
use proxima_wire::message::Class;
use serde::Serialize;
use tokio::sync::{
    broadcast::{Receiver, error::RecvError},
    mpsc,
};

use super::{
    connections::Lasts,
    pieces::Pieces,
    query::Query,
    request_row::{self, RequestRow},
    sampling::{Sampling, Traced},
};
use crate::{
    config::{parse_duration, schema::ShownKeys},
    control::Trace,
    route::{Sample, shown_key},
};

/// Requests that are told where the query does not say how many.
const LIMIT: usize = 100;
/// Whoever could ask for prefixes would find the keys by trying.
const HIDDEN: &str = "`prefix` would tell what `admin.keys` does not\n";
/// Lines that wait for one who watches.
const WAITING: usize = 256;

/// What is told of a request.
#[derive(Serialize)]
struct Line {
    #[serde(flatten)]
    request: RequestRow,
    #[serde(skip_serializing_if = "Option::is_none")]
    pool: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    member: Option<String>,
    /// The number of requests that it stands for.
    weight: f64,
}

/// Which requests are told.
struct Filter {
    listener: Option<String>,
    route: Option<String>,
    prefix: Option<Vec<u8>>,
    class: Option<Class>,
    slow: Duration,
}

/// `listener`: its address or number; `route`: a pool on the way; `prefix`: of the key; `class`: `read` or `write`;
/// `slow`: that took so long at least; `limit`: how many.
pub(super) async fn tap(
    State(sampling): State<Sampling>,
    Extension(lasts): Extension<Lasts>,
    RawQuery(query): RawQuery,
) -> Response {
    let (filter, limit) = match parse(query.as_deref()) {
        Ok(parsed) => parsed,
        Err(why) => return (StatusCode::BAD_REQUEST, format!("{why}\n")).into_response(),
    };
    if filter.prefix.is_some() && sampling.proxy().sampled_keys() != ShownKeys::Plain {
        return (StatusCode::BAD_REQUEST, HIDDEN).into_response();
    }
    let (to, mut lines) = mpsc::channel(WAITING);
    lasts.begin();
    tokio::spawn(tell(sampling, filter, limit, to));
    let kind = [
        (header::CONTENT_TYPE, "application/x-ndjson"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    (
        kind,
        Body::new(Pieces(move |context: &mut Context<'_>| lines.poll_recv(context))),
    )
        .into_response()
}

fn parse(query: Option<&str>) -> Result<(Filter, usize), String> {
    let known = ["listener", "route", "prefix", "class", "slow", "limit"];
    let query = Query::parse(query, &known).map_err(|error| error.to_string())?;
    let class = match query.text("class").as_deref() {
        None => None,
        Some("read") => Some(Class::Read),
        Some("write") => Some(Class::Write),
        Some("delete") => Some(Class::Delete),
        Some(other) => {
            let other = other.escape_debug();
            return Err(format!("`class={other}`: known are read, write, delete"));
        }
    };
    let slow = match query.text("slow") {
        None => Duration::ZERO,
        Some(text) => parse_duration(&text)
            .ok_or_else(|| format!("`slow={}`: expected a time, as 10ms", text.escape_debug()))?,
    };
    let limit = query.number("limit").map_err(|error| error.to_string())?;
    let filter = Filter {
        listener: query.text("listener"),
        route: query.text("route"),
        prefix: query.bytes("prefix"),
        class,
        slow,
    };
    Ok((filter, limit.unwrap_or(LIMIT)))
}

impl Filter {
    fn takes(&self, (sample, trace): &(Sample, Trace), address: &str) -> bool {
        let listener = |wanted: &String| *wanted == sample.listener.to_string() || wanted == address;
        let route = |wanted: &String| trace.pool.as_ref() == Some(wanted);
        self.listener.as_ref().is_none_or(listener)
            && self.route.as_ref().is_none_or(route)
            && self
                .prefix
                .as_ref()
                .is_none_or(|prefix| sample.key.starts_with(prefix))
            && self.class.is_none_or(|class| class == sample.class)
            && Duration::from(sample.took) >= self.slow
    }
}

async fn tell(sampling: Sampling, filter: Filter, limit: usize, to: mpsc::Sender<Bytes>) {
    let mut samples: Receiver<Traced> = sampling.follow();
    let addresses: Vec<Option<String>> = sampling.proxy().view().listeners;
    let mut told = 0;
    while told < limit {
        let traced = tokio::select! {
            traced = samples.recv() => traced,
            () = to.closed() => return,
        };
        let line = match traced {
            Ok(traced) => {
                let address = addresses.get(usize::from(traced.0.listener)).cloned().flatten();
                let address = address.unwrap_or_default();
                if !filter.takes(&traced, &address) {
                    continue;
                }
                told += 1;
                line(&traced, address, sampling.proxy().sampled_keys())
            }
            Err(RecvError::Lagged(skipped)) => format!("{{\"skipped\":{skipped}}}\n"),
            Err(RecvError::Closed) => return,
        };
        if to.send(line.into()).await.is_err() {
            return;
        }
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "beside the control thread, which owns the clock"
)]
fn line(traced: &Traced, listener: String, keys: ShownKeys) -> String {
    let (sample, trace) = &**traced;
    let member = trace.member.as_ref().map(|(_, name)| name.clone());
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let line = Line {
        request: RequestRow {
            at_ms: now.as_millis() as u64,
            listener,
            client: sample.client.map(|client| client.to_string()),
            command: sample.command,
            class: request_row::class(sample.class),
            key: shown_key(&sample.key, keys),
            outcome: request_row::outcome(sample.outcome),
            us: sample.took.0,
        },
        pool: trace.pool.clone(),
        member,
        weight: sample.weight.round(),
    };
    let mut text = serde_json::to_string(&line).unwrap_or_default();
    text.push('\n');
    text
}
