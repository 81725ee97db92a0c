//! `get __mcrouter__.REQUEST`: requests about the proxy itself, and their answers.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::Value;

use super::{VERSION, expansion::Expansion, facts::Facts, handles, json::pretty, sources::sources};
use crate::{
    control::LogControl,
    members::{Member, host_id},
    route::{Example, ExplainError, Explained},
};

/// The listener whose routes are told. All of a process of mcrouter's have the same.
const LISTENER: usize = 0;

/// A parsed request.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct DoorRequest<'a> {
    name: &'a str,
    /// What stands in parentheses behind the name.
    argument: Option<&'a [u8]>,
}

impl<'a> DoorRequest<'a> {
    /// Parses what follows `__mcrouter__.`.
    pub(super) fn of(request: &'a [u8]) -> Self {
        let (name, argument) = match request.iter().position(|&byte| byte == b'(') {
            Some(at) if request.ends_with(b")") => (&request[..at], request.get(at + 1..request.len() - 1)),
            _ => (request, None),
        };
        // No request has a name that is no text.
        let name = str::from_utf8(name).unwrap_or_default();
        Self { name, argument }
    }

    /// The value for the client.
    pub(super) fn answer(
        &self,
        facts: &Facts<'_>,
        log: Option<&dyn LogControl>,
        expansion: &mut Expansion,
    ) -> Vec<u8> {
        let answered = match (self.name, self.argument) {
            ("version", None) => Ok(VERSION.to_owned()),
            ("config_age", None) => Ok(facts.now.saturating_sub(facts.configured()).to_string()),
            ("config_file", None) => match &facts.door.config_file {
                Some(path) => Ok(path.display().to_string()),
                None => Err("no config file found!".to_owned()),
            },
            ("options", None) => Ok(options(facts)),
            ("options", Some(name)) => option(facts, name),
            ("config_md5_digest", None) => {
                let digests = facts.proxy.digests();
                let first = digests.into_iter().next();
                first
                    .map(|(_, digest)| digest)
                    .ok_or_else(|| "no config md5 digest found!".to_owned())
            }
            ("config_sources_info", None) => Ok(pretty(&sources(facts))),
            ("preprocessed_config", None) => expansion.of(facts.proxy).map(|text| text.to_string()),
            // As in mcrouter, a number that fits into 32 bits.
            ("hostid", None) => Ok((host_id() as u32).to_string()),
            ("verbosity", level) => verbosity(log, level),
            ("pools", None) => Ok(pretty(&pools(facts))),
            ("failure_domains", Some(pool)) => failure_domains(facts, pool),
            ("global_params", None) => Ok(facts.door.parameters.clone()),
            ("route", Some(of)) => explained(facts, "route", of).map(|walk| handles::servers(&walk)),
            ("route_handles", Some(of)) => {
                explained(facts, "route_handles", of).map(|walk| handles::tree(&walk))
            }
            ("get_bucket", Some(_)) => Err("get_bucket: there are no buckets".to_owned()),
            ("failure_domains" | "route" | "route_handles" | "get_bucket", None) => {
                Err(format!("{}: an argument is missing", self.name))
            }
            _ => Err(format!("unknown command: {}", self.name)),
        };
        answered
            .unwrap_or_else(|why| format!("ERROR: {why}"))
            .into_bytes()
    }
}

fn options(facts: &Facts<'_>) -> String {
    let lines: Vec<String> = facts
        .door
        .options
        .iter()
        .map(|(name, value)| format!("{name} {value}"))
        .collect();
    lines.join("\n")
}

fn option(facts: &Facts<'_>, name: &[u8]) -> Result<String, String> {
    let found = facts
        .door
        .options
        .iter()
        .find(|(known, _)| known.as_bytes() == name);
    match found {
        Some((_, value)) => Ok(value.clone()),
        None => Err(format!("options: option {} not found", name.escape_ascii())),
    }
}

fn verbosity(log: Option<&dyn LogControl>, level: Option<&[u8]>) -> Result<String, String> {
    let log = log.ok_or("verbosity: there is no log")?;
    let before = log.verbosity();
    let Some(level) = level else {
        return Ok(before.to_string());
    };
    let level = str::from_utf8(level)
        .ok()
        .and_then(|level| level.trim().parse().ok());
    log.set_verbosity(level.ok_or("verbosity: expected a number")?);
    Ok(format!("{before} -> {}", log.verbosity()))
}

/// The servers of each pool.
fn pools(facts: &Facts<'_>) -> Value {
    let mut pools: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
    for member in &facts.members {
        pools
            .entry(&member.pool.name)
            .or_default()
            .push(member.address.as_str().into());
    }
    pools
        .into_iter()
        .map(|(name, servers)| (name.to_owned(), Value::from(servers)))
        .collect()
}

/// The failure domain of each server of a pool that has one.
fn failure_domains(facts: &Facts<'_>, pool: &[u8]) -> Result<String, String> {
    let of_pool = |member: &&Arc<Member>| member.pool.name.as_bytes() == pool;
    let mut servers = facts.members.iter().filter(of_pool).peekable();
    if servers.peek().is_none() {
        return Err(format!("failure_domains: pool {} not found", pool.escape_ascii()));
    }
    let known =
        servers.filter_map(|member| Some((member.address.clone(), Value::from(member.zone.as_deref()?))));
    Ok(pretty(&known.collect()))
}

/// The way of a request: `OPERATION,KEY`.
fn explained(facts: &Facts<'_>, name: &str, of: &[u8]) -> Result<Explained, String> {
    let comma = of.iter().position(|&byte| byte == b',');
    let (operation, key) = match comma {
        Some(at) => (&of[..at], &of[at + 1..]),
        None => return Err(format!("{name}: 2 args expected")),
    };
    let operation = operation.trim_ascii().escape_ascii().to_string();
    facts
        .proxy
        .explained(
            LISTENER,
            Example::Key {
                command: &operation,
                key,
            },
            None,
        )
        .map_err(|error| match error {
            ExplainError::NoCommand { .. } => format!("{name}: unknown request {operation}"),
            other => format!("{name}: {other}"),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_a_name_and_an_argument() {
        let rows = [
            ("version", "version", None),
            ("options(num_proxies)", "options", Some("num_proxies")),
            ("route(get,a(b),c)", "route", Some("get,a(b),c")),
            ("verbosity()", "verbosity", Some("")),
            ("route(get,a", "route(get,a", None),
            ("(", "(", None),
            ("", "", None),
        ];
        for (request, name, argument) in rows {
            let argument = argument.map(str::as_bytes);
            assert_eq!(
                DoorRequest::of(request.as_bytes()),
                DoorRequest { name, argument }
            );
        }
        assert_eq!(DoorRequest::of(b"\xff(a)").name, "");
    }
}
