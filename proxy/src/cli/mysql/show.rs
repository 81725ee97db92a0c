//! `proxima mysql show`: pools of MySQL servers as people read them.

use std::fmt::Write;

use crate::{
    admin::{MysqlMember, MysqlPool, MysqlStatus},
    cli::table::{Table, time},
};

/// The pools, each with a row for each of its servers.
pub(super) fn pools(status: &MysqlStatus) -> String {
    let pools: Vec<String> = status.pools.iter().map(pool).collect();
    pools.join("\n")
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
        why(member),
    ]
}

/// Why the server is asked for nothing; empty if it is asked.
pub(super) fn why(member: &MysqlMember) -> String {
    let role = member.role.as_ref();
    let why = [
        role.and_then(|role| role.role_why.clone()),
        member.why.clone().map(|why| format!("ejected: {why}")),
        member
            .drains
            .then(|| "it drains, as an operator has ordered".to_owned()),
    ];
    let why: Vec<String> = why.into_iter().flatten().collect();
    why.join("; ")
}
