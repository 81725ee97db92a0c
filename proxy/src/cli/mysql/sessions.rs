//! `proxima mysql sessions`: the sessions of MySQL clients, as a running proxy sees them.

use std::collections::BTreeSet;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use crate::{
    admin::{MysqlSession, MysqlSessions},
    cli::table::{Table, time},
};

/// The page of the admin port.
pub(super) const PATH: &str = "/mysql/sessions";

/// The columns of a table of sessions.
const HEADS: [&str; 10] = [
    ">session",
    "user",
    "client",
    "schema",
    "state",
    "pool",
    "server",
    ">connection",
    ">for",
    "runs",
];

/// What is printed, with the most sessions of it.
#[derive(Clone, Copy)]
pub(super) enum Wanted {
    /// How many sessions each worker has.
    Sums,
    /// Each session.
    Sessions(usize),
    /// Each session, and how many each worker has.
    Both(usize),
}

/// The page with only the sessions of which all of this is true.
pub(super) fn path<const N: usize>(filters: [(&str, Option<String>); N]) -> String {
    let pairs = filters.into_iter().filter_map(|(name, value)| {
        let value = value?;
        Some(format!(
            "{name}={}",
            utf8_percent_encode(&value, NON_ALPHANUMERIC)
        ))
    });
    let pairs: Vec<String> = pairs.collect();
    match pairs.is_empty() {
        true => PATH.to_owned(),
        false => format!("{PATH}?{}", pairs.join("&")),
    }
}

/// The sessions, as people read them.
pub(super) fn sessions(all: &MysqlSessions, wanted: Wanted) -> String {
    let has_any = all.workers.iter().any(|states| !states.is_empty());
    match wanted {
        Wanted::Sessions(limit) if !all.sessions.is_empty() => each(all, limit),
        Wanted::Both(limit) if has_any => format!("{}\n{}", each(all, limit), sums(all)),
        Wanted::Sums if has_any => sums(all),
        Wanted::Sessions(_) if has_any => "there are no such sessions\n".to_owned(),
        _ => "there are no sessions\n".to_owned(),
    }
}

/// The sessions that have a connection to the server at this address; empty if none has.
pub(super) fn sessions_at(all: &MysqlSessions, address: &str) -> String {
    let has_it = |session: &&MysqlSession| {
        let connection = session.connection.as_ref();
        connection.is_some_and(|connection| connection.address == address)
    };
    let left = all.sessions.iter().filter(has_it);
    let rows: Vec<Vec<String>> = left.map(row).collect();
    match rows.is_empty() {
        true => String::new(),
        false => {
            let mut table = Table::new(&HEADS);
            rows.into_iter().for_each(|row| table.row(row));
            table.text()
        }
    }
}

/// A row for each of the first sessions.
fn each(all: &MysqlSessions, limit: usize) -> String {
    let mut table = Table::new(&HEADS);
    for session in all.sessions.iter().take(limit) {
        table.row(row(session));
    }
    let more = all.sessions.len().saturating_sub(limit) + all.left_out;
    match more {
        0 => table.text(),
        _ => format!(
            "{}and {more} more: `--limit`, `--user` and `--state` choose\n",
            table.text()
        ),
    }
}

fn row(session: &MysqlSession) -> Vec<String> {
    let connection = session.connection.as_ref();
    let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let schema = Some(&session.schema).filter(|schema| !schema.is_empty());
    // A client chooses names, and may not choose what a terminal does.
    let shown = |name: &str| name.escape_debug().to_string();
    vec![
        session.number.to_string(),
        shown(&session.user),
        session.client.clone().unwrap_or_else(|| "unix".to_owned()),
        or_none(schema.map(|schema| shown(schema))),
        session.state.clone(),
        or_none(connection.map(|own| own.pool.clone())),
        or_none(connection.map(|own| own.address.clone())),
        or_none(connection.and_then(|own| Some(own.number?.to_string()))),
        or_none(connection.map(|own| time(own.seconds))),
        or_none(connection.map(|own| if own.runs { "yes" } else { "no" }.to_owned())),
    ]
}

/// A row for each worker, with a column for each state that some session is in.
fn sums(all: &MysqlSessions) -> String {
    let states: BTreeSet<&String> = all.workers.iter().flat_map(|states| states.keys()).collect();
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

#[cfg(test)]
mod tests {
    use super::{PATH, Wanted, path, sessions};
    use crate::admin::{MysqlConnection, MysqlSession, MysqlSessions};

    fn session(number: u64, seconds: Option<f64>) -> MysqlSession {
        MysqlSession {
            worker: 0,
            number,
            user: "a\x1b[2Jb".to_owned(),
            client: None,
            schema: String::new(),
            state: "transaction".to_owned(),
            connection: seconds.map(|seconds| MysqlConnection {
                pool: "db".to_owned(),
                address: "10.0.0.1:3306".to_owned(),
                number: Some(4711),
                seconds,
                runs: true,
            }),
        }
    }

    fn list() -> MysqlSessions {
        MysqlSessions {
            workers: vec![[("transaction".to_owned(), 2)].into()],
            sessions: vec![session(7, Some(150.0)), session(8, None)],
            left_out: 5,
        }
    }

    #[test]
    fn sessions_beyond_the_limit_are_counted_and_no_name_moves_the_cursor() {
        let text = sessions(&list(), Wanted::Both(1));
        let lines: Vec<Vec<&str>> = text
            .lines()
            .map(|line| line.split_whitespace().collect())
            .collect();
        let first = [
            "7",
            "a\\u{1b}[2Jb",
            "unix",
            "-",
            "transaction",
            "db",
            "10.0.0.1:3306",
            "4711",
            "2.5",
            "min",
            "yes",
        ];
        assert_eq!(lines[1], first, "{text}");
        assert_eq!(lines[2][..3], ["and", "6", "more:"], "{text}");
        assert_eq!(lines[4], ["worker", "transaction"], "{text}");
        assert_eq!(lines[6], ["all", "2"], "{text}");
    }

    #[test]
    fn sums_are_printed_alone_and_sessions_alone() {
        let all = sessions(&list(), Wanted::Sums);
        assert!(all.starts_with("worker") && !all.contains("10.0.0.1"), "{all}");
        let each = sessions(&list(), Wanted::Sessions(50));
        assert!(each.starts_with("session") && !each.contains("worker"), "{each}");
        let none = MysqlSessions {
            sessions: Vec::new(),
            ..list()
        };
        assert_eq!(
            sessions(&none, Wanted::Sessions(50)),
            "there are no such sessions\n"
        );
    }

    #[test]
    fn filters_are_escaped_in_the_path() {
        assert_eq!(path([("user", None), ("state", None)]), PATH);
        let user = Some("a b&c".to_owned());
        assert_eq!(
            path([("user", user), ("state", Some("free".to_owned()))]),
            "/mysql/sessions?user=a%20b%26c&state=free"
        );
    }
}
