//! `proxima mysql`: the pools of MySQL servers and the sessions of their clients, as a running proxy sees
//! them.

use std::{collections::BTreeSet, fmt::Write};

use super::{
    Answer,
    admin::{get, shown},
    args::Mysql,
    table::{Table, time},
};
use crate::admin::{MysqlMember, MysqlPool, MysqlSessions, MysqlStatus};

/// Does what this command says.
pub(super) fn mysql(command: Mysql) -> Answer {
    match command {
        Mysql::Show { at, json } => shown(get(at, "/mysql"), json, |status: &MysqlStatus| {
            let pools: Vec<String> = status.pools.iter().map(pool).collect();
            pools.join("\n")
        }),
        Mysql::Sessions { at, json } => shown(get(at, "/mysql/sessions"), json, sessions),
    }
}

fn pool(pool: &MysqlPool) -> String {
    let mut out = String::new();
    let writer = match (&pool.writer, pool.has_roles) {
        (Some(writer), _) => format!("writer {writer}"),
        (None, true) => "NO WRITER".to_owned(),
        (None, false) => "its members have no roles".to_owned(),
    };
    // Writing to a String cannot fail.
    let _ = writeln!(out, "pool {}: {writer}\n", pool.name);
    let mut table = Table::new(&[
        "member",
        "role",
        ">since",
        "up",
        ">connections",
        ">in use",
        ">waiting",
        "why",
    ]);
    for member in &pool.members {
        table.row(row(member));
    }
    out.push_str(&table.text());
    out
}

fn row(member: &MysqlMember) -> Vec<String> {
    let role = member.role.as_ref();
    let since = role.and_then(|role| role.role_since);
    let why = [
        role.and_then(|role| role.role_why.clone()),
        member.why.clone().map(|why| format!("ejected: {why}")),
        member
            .drains
            .then(|| "it drains, as an operator has ordered".to_owned()),
    ];
    let why: Vec<String> = why.into_iter().flatten().collect();
    vec![
        member.name.clone(),
        role.map_or_else(|| "-".to_owned(), |role| role.role.clone()),
        since.map_or_else(|| "-".to_owned(), time),
        if member.is_up { "yes" } else { "no" }.to_owned(),
        member.connections.to_string(),
        member.in_use.to_string(),
        member.waiting.to_string(),
        why.join("; "),
    ]
}

/// A row for each worker, with a column for each state that some session is in.
fn sessions(all: &MysqlSessions) -> String {
    let states: BTreeSet<&String> = all.workers.iter().flat_map(|states| states.keys()).collect();
    if states.is_empty() {
        return "there are no sessions\n".to_owned();
    }
    let heads: Vec<String> = states.iter().map(|state| format!(">{state}")).collect();
    let heads = ["worker"].into_iter().chain(heads.iter().map(String::as_str));
    let mut table = Table::new(&heads.collect::<Vec<_>>());
    let mut sums = vec![0; states.len()];
    for (worker, own) in all.workers.iter().enumerate() {
        let counts = states
            .iter()
            .map(|&state| own.get(state).copied().unwrap_or_default());
        let counts: Vec<u64> = counts.collect();
        sums.iter_mut()
            .zip(&counts)
            .for_each(|(sum, count)| *sum += count);
        table.row(cells(&worker.to_string(), &counts));
    }
    table.row(cells("all", &sums));
    table.text()
}

fn cells(first: &str, counts: &[u64]) -> Vec<String> {
    let counts = counts.iter().map(u64::to_string);
    [first.to_owned()].into_iter().chain(counts).collect()
}
