//! The health of the proxy in one sentence, with its reason.

use std::time::{Duration, Instant, SystemTime};

use serde::Serialize;
use time::OffsetDateTime;

use crate::{
    control::{MemberView, PoolState, Proxy, Unready, View},
    copies::CopyState,
    members::HealthState,
    protocol::Role,
};

/// The reasons that stand in the sentence; the others are counted.
const TOLD: usize = 3;

/// The health of the proxy.
#[derive(Debug, Serialize)]
pub(super) struct Health {
    state: State,
    sentence: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum State {
    Serving,
    Degraded,
    NotReady,
    Draining,
}

impl Health {
    /// The health by this view, of this moment on both clocks.
    pub(super) fn of(proxy: &Proxy, view: &View, now: (Instant, SystemTime)) -> Self {
        let unready = proxy.unready();
        let is_empty = view.pools.iter().any(|pool| pool.up == 0);
        let state = match &unready {
            Some(Unready::Drains(_)) => State::Draining,
            Some(_) => State::NotReady,
            None if is_empty => State::NotReady,
            None => State::Serving,
        };
        let mut reasons = Vec::new();
        match (&unready, &view.reloads.refused) {
            (Some(Unready::Drains(why)), _) => reasons.push(why.clone()),
            (Some(why), _) => reasons.push(why.to_string()),
            _ => {}
        }
        if let Some(error) = &view.reloads.refused {
            // A line is a mistake. Whoever mends one wants to know that there are others.
            let mut mistakes = error.lines();
            let first = mistakes.next().unwrap_or_default();
            let more = match mistakes.count() {
                0 => String::new(),
                more => format!(" (and {more} more)"),
            };
            reasons.push(format!(
                "the configuration was refused, and the one before runs: {first}{more}"
            ));
        }
        // What lets nothing be read stands before what only makes it slow.
        let mut pools: Vec<&PoolState> = view.pools.iter().collect();
        pools.sort_by_key(|pool| pool.up > 0);
        reasons.extend(pools.into_iter().filter_map(|pool| short(pool, view, now)));
        reasons.extend(failing(view));
        Self::new(state, reasons)
    }

    fn new(state: State, reasons: Vec<String>) -> Self {
        let state = match state {
            State::Serving if !reasons.is_empty() => State::Degraded,
            state => state,
        };
        let mut sentence = match state {
            State::Serving | State::Degraded => "serving",
            State::NotReady => "not ready",
            State::Draining => "draining",
        }
        .to_owned();
        for (number, reason) in reasons.iter().take(TOLD).enumerate() {
            sentence.push_str(match (number, state) {
                (0, State::NotReady | State::Draining) => ": ",
                _ => "; ",
            });
            sentence.push_str(reason);
        }
        if reasons.len() > TOLD {
            sentence.push_str(&format!("; and {} more", reasons.len() - TOLD));
        }
        Self { state, sentence }
    }
}

/// What a pool lacks. `None`: nothing.
fn short(pool: &PoolState, view: &View, now: (Instant, SystemTime)) -> Option<String> {
    let members = view
        .members
        .iter()
        .filter(|found| *found.member.pool.name == *pool.name);
    let mut out = members.filter_map(|found| Some((found, why_out(found)?)));
    let first = out.next();
    let more = out.count();
    let name = pool.name.escape_debug();
    let (found, why) = match (first, pool.members) {
        (None, 0) => return Some(format!("no server of `{name}` is known yet")),
        (None, _) if pool.up < pool.members => {
            let lacking = pool.members - pool.up;
            return Some(format!(
                "{lacking} of {} copies of `{name}` are not read",
                pool.members
            ));
        }
        (None, _) => return None,
        (Some(first), _) => first,
    };
    let since = since(found, now).map_or_else(String::new, |since| format!(" since {since}"));
    let server = found.member.name.escape_debug();
    Some(match more {
        0 => format!(
            "1 of {} servers of `{name}`, {server}, is out{since}: {why}",
            pool.members
        ),
        more => format!(
            "{} of {} servers of `{name}` are out, {server} among them{since}: {why}",
            more + 1,
            pool.members
        ),
    })
}

/// Why a member is not asked, or not read. `None`: it is.
fn why_out(found: &MemberView) -> Option<String> {
    if let Some(ejection) = &found.ejection {
        return Some(ejection.why.clone());
    }
    if let Some(why) = &found.unresolved {
        return Some(why.clone());
    }
    if found.member.health.state() == HealthState::Ejected {
        return Some("it has not answered yet".into());
    }
    if let Some(role) = found.role.as_ref().filter(|role| role.role == Role::Out) {
        return Some(role.why().unwrap_or_else(|| "its role is not known yet".into()));
    }
    let status = found.copy.as_ref()?.status.as_ref()?;
    let is_out = status.state != CopyState::Current && !status.departed;
    is_out.then(|| format!("its copy is not read: {}", status.why))
}

/// When that began, as a time of day; with the date if it is another day's.
fn since(found: &MemberView, (now, unix): (Instant, SystemTime)) -> Option<String> {
    let ejected = found.ejection.as_ref().map(|ejection| ejection.since);
    let role = || found.role.as_ref().and_then(|role| role.since);
    let copy = || Some(found.copy.as_ref()?.status.as_ref()?.since);
    let ago = now.saturating_duration_since(ejected.or_else(role).or_else(copy)?);
    let began = OffsetDateTime::from(unix.checked_sub(ago)?);
    let clock = format!("{:02}:{:02} UTC", began.hour(), began.minute());
    Some(match ago < Duration::from_secs(24 * 3600) {
        true => clock,
        false => format!("{} {clock}", began.date()),
    })
}

/// Whoever tells of servers and does not answer.
fn failing(view: &View) -> Vec<String> {
    let asked = [
        ("DNS", &view.lookups),
        ("the endpoint", &view.endpoints),
        ("the API server, about", &view.services),
    ];
    let mut reasons = Vec::new();
    for (who, questions) in asked {
        for (pool, name, counts) in questions {
            if let Some(failure) = &counts.failure {
                let (pool, name) = (pool.escape_debug(), name.escape_debug());
                reasons.push(format!(
                    "{who} `{name}` does not tell the servers of `{pool}`: {failure}"
                ));
            }
        }
    }
    if view.agent.as_ref().is_some_and(|agent| !agent.is_up) {
        reasons.push("the node agent is not there: all on this host are equally near".into());
    }
    reasons
}

#[cfg(test)]
mod tests {
    use super::{Health, State};

    fn sentence(state: State, reasons: &[&str]) -> (State, String) {
        let health = Health::new(state, reasons.iter().map(|&reason| reason.to_owned()).collect());
        (health.state, health.sentence)
    }

    #[test]
    fn a_proxy_that_serves_with_a_reason_to_worry_is_degraded() {
        assert_eq!(sentence(State::Serving, &[]), (State::Serving, "serving".into()));
        let few = sentence(State::Serving, &["a", "b"]);
        assert_eq!(few, (State::Degraded, "serving; a; b".into()));
        let many = sentence(State::NotReady, &["a", "b", "c", "d", "e"]);
        assert_eq!(many, (State::NotReady, "not ready: a; b; c; and 2 more".into()));
        assert_eq!(
            sentence(State::Draining, &["a"]),
            (State::Draining, "draining: a".into())
        );
    }
}
