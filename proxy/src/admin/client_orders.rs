//! `/pools/POOL/orders`: what clients order that order the same at several proxies, and what has become of that.

use std::{sync::Arc, time::Duration, time::Instant};

use axum::{
    Extension, Json,
    body::Bytes,
    extract::{Path, State},
    http::StatusCode,
    response::{IntoResponse, Response},
};
use serde::{Deserialize, Serialize};
use tokio::task::spawn_blocking;

use super::{Shared, connections::Asker, guard::HasToken, mysql::bound_in};
use crate::{
    config::parse_duration,
    control::{ClientOrder, ClientWish, JointStatus, LONGEST_ORDER, OrderError, Proxy},
    members::Member,
    metrics::Metrics,
    protocol::{Role, RoleStatus},
};

/// The most bytes of an order.
pub(super) const LIMIT: usize = 64 * 1024;
/// The most members that an order names.
const MOST_MEMBERS: usize = 1_000;

/// A wish, as it is sent.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Sent {
    #[serde(default)]
    hold: bool,
    #[serde(default)]
    drain: Vec<String>,
    #[serde(default)]
    writer: Option<String>,
    r#for: String,
}

/// What has become of the orders for a pool. Ages are in milliseconds.
#[derive(Serialize)]
struct Status {
    /// Another one with each start of the process.
    process: String,
    pool: String,
    /// The member that takes writes; null: none does.
    writer: Option<String>,
    /// The member that would take them by the settings alone, where they name one.
    preferred: Option<String>,
    /// A hold is in force, and nothing is under way or kept at the member that took writes.
    quiet: bool,
    /// For how long writes wait by a hold; null: by none.
    held_ms: Option<u64>,
    /// For how long the last hold of this order had writes wait, also while it is in force.
    longest_hold_ms: Option<u64>,
    /// Requests that wait until the pool goes on.
    waiting: u64,
    order: Option<Order>,
    orders: Vec<String>,
    /// What persons have ordered.
    by_hand: Vec<ByHand>,
    members: Vec<Row>,
}

#[derive(Serialize)]
struct Order {
    name: String,
    hold: bool,
    drain: Vec<String>,
    writer: Option<String>,
    since_ms: u64,
    ends_in_ms: u64,
    /// Why its hold is over before the order; null: it is not.
    hold_ended: Option<&'static str>,
}

#[derive(Serialize)]
struct ByHand {
    order: &'static str,
    member: Option<String>,
}

#[derive(Serialize)]
struct Row {
    name: String,
    pod: Option<String>,
    uid: Option<String>,
    address: String,
    version: Option<String>,
    role: Option<&'static str>,
    role_ms: Option<u64>,
    /// It serves.
    online: bool,
    drains: bool,
    why: Option<String>,
    /// Sessions that have a connection to it, or keep one.
    sessions: u64,
    /// Requests that it has not answered.
    waiting: u64,
    /// What has become of the barrier of the member that is to take writes; of others, of their last one.
    barrier: &'static str,
    barrier_ms: Option<u64>,
}

pub(super) async fn show(State(proxy): Shared, Path(pool): Path<String>) -> Response {
    status(proxy, pool, None, false).await
}

pub(super) async fn show_one(State(proxy): Shared, Path((pool, name)): Path<(String, String)>) -> Response {
    status(proxy, pool, Some(name), true).await
}

pub(super) async fn put(
    State(proxy): Shared,
    Path((pool, name)): Path<(String, String)>,
    Extension(asker): Extension<Asker>,
    token: Option<Extension<HasToken>>,
    body: Bytes,
) -> Response {
    if let Some(why) = forbidden(asker, token.is_some()) {
        return why;
    }
    let wish = match wish(&name, &body) {
        Ok(wish) => wish,
        Err(why) => return (StatusCode::BAD_REQUEST, format!("{why}\n")).into_response(),
    };
    match proxy.order_for_client(&pool, &name, &wish) {
        Ok(()) => status(proxy, pool, Some(name), false).await,
        Err(error) => refused(&error),
    }
}

pub(super) async fn end(
    State(proxy): Shared,
    Path((pool, name)): Path<(String, String)>,
    Extension(asker): Extension<Asker>,
    token: Option<Extension<HasToken>>,
) -> Response {
    if let Some(why) = forbidden(asker, token.is_some()) {
        return why;
    }
    match proxy.end_for_client(&pool, &name) {
        Ok(()) => status(proxy, pool, Some(name), false).await,
        Err(error) => refused(&error),
    }
}

/// Why somebody may not order anything. Orders come again and again, and from elsewhere: who gives them shows a token.
fn forbidden(asker: Asker, has_token: bool) -> Option<Response> {
    let why = "orders from another host need a token: write `admin: {address: …, token_file: FILE}`\n";
    (!asker.is_here && !has_token).then(|| (StatusCode::FORBIDDEN, why).into_response())
}

fn refused(error: &OrderError) -> Response {
    let status = match error {
        OrderError::NoPool(..) => StatusCode::NOT_FOUND,
        OrderError::OtherWriter(..) | OrderError::ByHand(..) => StatusCode::CONFLICT,
        _ => StatusCode::UNPROCESSABLE_ENTITY,
    };
    (status, format!("{error}\n")).into_response()
}

/// Reads a wish.
///
/// # Errors
/// The text says what is wrong, and what would be right.
fn wish(name: &str, body: &[u8]) -> Result<ClientWish, String> {
    let is_good = |letter: u8| letter.is_ascii_alphanumeric() || b"._-".contains(&letter);
    if name.len() > 253 || !name.bytes().all(is_good) {
        return Err("the name of an order has up to 253 letters, digits, `.`, `_` and `-`".to_owned());
    }
    let sent: Sent = serde_json::from_slice(body).map_err(|error| {
        format!("{error}; write such as {{\"hold\": true, \"drain\": [\"db-2\"], \"writer\": \"db-1\", \"for\": \"30s\"}}")
    })?;
    let time = parse_duration(&sent.r#for).filter(|time| !time.is_zero() && *time <= LONGEST_ORDER);
    let time = time.ok_or_else(|| {
        let longest = LONGEST_ORDER.as_secs();
        format!(
            "`for: {}`: expected a time above 0 and up to {longest}s, such as 30s",
            sent.r#for.escape_debug()
        )
    })?;
    if sent.drain.len() > MOST_MEMBERS {
        return Err(format!("`drain` names more than {MOST_MEMBERS} members"));
    }
    let mut sorted: Vec<&String> = sent.drain.iter().collect();
    sorted.sort_unstable();
    if let Some(twice) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(format!("`drain` names `{}` twice", twice[0].escape_debug()));
    }
    if let Some(both) = sent.writer.as_ref().filter(|writer| sent.drain.contains(writer)) {
        return Err(format!("`{}` cannot drain and take writes", both.escape_debug()));
    }
    Ok(ClientWish {
        hold: sent.hold,
        drain: sent.drain,
        writer: sent.writer,
        time,
    })
}

/// `must_be`: an order of that name is asked for.
async fn status(proxy: Arc<Proxy>, pool: String, name: Option<String>, must_be: bool) -> Response {
    // The workers are asked for their metrics, which would block this thread.
    let told = spawn_blocking(move || {
        let joint = proxy.joint_status(&pool)?;
        Ok::<_, OrderError>(Status::of(&proxy, &joint, name.as_deref()))
    });
    match told.await {
        Ok(Ok(status)) if must_be && status.order.is_none() => {
            let names = status.orders.join(", ");
            let known = if names.is_empty() { "none" } else { &names };
            let why = format!("pool {} has no such order; known are {known}\n", status.pool);
            (StatusCode::NOT_FOUND, why).into_response()
        }
        Ok(Ok(status)) => Json(status).into_response(),
        Ok(Err(error)) => refused(&error),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response(),
    }
}

impl Status {
    #[allow(
        clippy::disallowed_methods,
        reason = "beside the control thread, which owns the clock"
    )]
    fn of(proxy: &Proxy, joint: &JointStatus, name: Option<&str>) -> Self {
        let (metrics, now) = (proxy.metrics(), Instant::now());
        let pool = &joint.pool;
        let order = joint.orders.iter().find(|order| Some(&*order.name) == name);
        let aim = joint.orders.iter().find_map(|order| order.writer.as_ref());
        let mut bound = bound_in(proxy, &pool.name);
        let mut writer = None;
        let rows = joint.members.iter().enumerate().map(|(position, member)| {
            // One that drains is told as what it would be: its client knows that it drains.
            let mut answerer = member.answerer(position);
            answerer.is_up = member.is_well();
            let role = pool.state.as_ref().and_then(|state| state.role(&answerer));
            if role.as_ref().is_some_and(|role| role.role == Role::Writer) {
                writer = Some(member.name.clone());
            }
            let is_aim = aim.is_some_and(|aim| aim.id == member.id);
            let passed = joint.held.filter(|_| is_aim).map(|held| held.has_all);
            let bound = bound.remove(&member.id).unwrap_or_default();
            let sessions = bound.iter().map(|rows| rows.count).sum();
            Row::of(member, role, (sessions, passed), &metrics, now)
        });
        let members = rows.collect();
        let holding = joint.orders.iter().filter(|order| order.is_holding());
        let held = holding.filter_map(|order| Some(order.hold?.since)).min();
        let by_hand = proxy
            .orders()
            .into_iter()
            .filter(|order| order.pool.id == pool.id);
        let by_hand = by_hand.map(|order| ByHand {
            order: order.kind.name(),
            member: order.kind.member().map(|member| member.name.clone()),
        });
        Self {
            process: proxy.process(),
            pool: pool.name.to_string(),
            writer,
            preferred: joint.preferred.as_ref().and_then(|address| {
                let is_it = |member: &&Arc<Member>| member.address == *address;
                Some(joint.members.iter().find(is_it)?.name.clone())
            }),
            quiet: joint.held.is_some_and(|held| held.is_quiet),
            held_ms: held.map(|since| millis(now - since)),
            longest_hold_ms: order.and_then(|order| {
                let current = order.hold.filter(|hold| !hold.is_over);
                current
                    .map(|hold| now - hold.since)
                    .or(order.last_hold)
                    .map(millis)
            }),
            waiting: metrics
                .parked
                .get(pool.id.0 as usize)
                .copied()
                .unwrap_or_default(),
            order: order.map(|order| Order::of(order, now)),
            orders: joint.orders.iter().map(|order| order.name.clone()).collect(),
            by_hand: by_hand.collect(),
            members,
        }
    }
}

impl Order {
    fn of(order: &ClientOrder, now: Instant) -> Self {
        Self {
            name: order.name.clone(),
            hold: order.hold.is_some(),
            drain: order
                .drains
                .iter()
                .map(|drained| drained.member.name.clone())
                .collect(),
            writer: order.writer.as_ref().map(|member| member.name.clone()),
            since_ms: millis(now - order.since),
            ends_in_ms: millis(order.until.saturating_duration_since(now)),
            hold_ended: order.hold.filter(|hold| hold.is_over).map(|_| "hold_limit"),
        }
    }
}

impl Row {
    /// `passed`: whether the barrier has passed that was begun for the member that is to take writes; `None`: it is
    /// another one.
    fn of(
        member: &Member,
        role: Option<RoleStatus>,
        (sessions, passed): (u64, Option<bool>),
        metrics: &Metrics,
        now: Instant,
    ) -> Self {
        let counted = metrics.members.get(member.id.0 as usize);
        let serves = role.as_ref().map(|role| role.role != Role::Out);
        let proved = role.as_ref().and_then(|role| role.proved);
        let barrier = match (passed, proved) {
            (Some(false), _) => "running",
            (Some(true), _) | (None, Some(_)) => "passed",
            (None, None) => "none",
        };
        let why = role.as_ref().and_then(RoleStatus::why);
        Self {
            name: member.name.clone(),
            pod: member.pod.as_ref().map(|_| member.name.clone()),
            uid: member.pod.as_ref().and_then(|pod| pod.uid.clone()),
            address: member.address.clone(),
            version: role
                .as_ref()
                .map(|role| role.version.clone())
                .filter(|version| !version.is_empty()),
            role: role.as_ref().map(|role| role.role.name()),
            role_ms: role
                .as_ref()
                .and_then(|role| role.since)
                .map(|since| millis(now - since)),
            online: serves.unwrap_or_else(|| member.is_well()),
            drains: member.drains(),
            why: why.or_else(|| (!member.is_well()).then(|| "it is ejected".to_owned())),
            // Sessions of other protocols are known by the connections that they have for themselves.
            sessions: sessions.max(counted.map_or(0, |counted| counted.dedicated)),
            waiting: counted.map_or(0, |counted| counted.waiting),
            barrier,
            barrier_ms: proved
                .filter(|_| barrier == "passed")
                .map(|proved| millis(now - proved)),
        }
    }
}

fn millis(time: Duration) -> u64 {
    time.as_millis() as u64
}
