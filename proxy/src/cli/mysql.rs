//! `proxima mysql`: the pools of MySQL servers, as a running proxy sees them, and its other commands.

use std::fmt::Write;

use super::{
    Answer,
    admin::{get, shown},
    args::Mysql,
    mysql_sessions::{PATH, Wanted, path, sessions},
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
        Mysql::Sessions {
            at,
            user,
            state,
            pool,
            limit,
            sums,
            json,
        } => {
            let path = path([("user", user), ("state", state), ("pool", pool)]);
            let wanted = match (sums, path == PATH) {
                (true, _) => Wanted::Sums,
                (false, true) => Wanted::Both(limit),
                (false, false) => Wanted::Sessions(limit),
            };
            shown(get(at, &path), json, |all: &MysqlSessions| sessions(all, wanted))
        }
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
        ">idle",
        ">queued",
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
        member.idle.to_string(),
        member.queued.to_string(),
        member.waiting.to_string(),
        why.join("; "),
    ]
}
