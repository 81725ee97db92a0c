//! A stand-in server's status: it is a healthy node of a Galera cluster.

use anyhow::{Result, bail};
use proxima_wire::mysql::Capabilities;

use super::answer::Answer;

/// The variables of a session that has changed none.
const SESSION: [(&str, &str); 7] = [
    ("character_set_client", "utf8mb4"),
    ("character_set_results", "utf8mb4"),
    ("character_set_connection", "utf8mb4"),
    ("collation_connection", "utf8mb4_general_ci"),
    (
        "sql_mode",
        "STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_AUTO_CREATE_USER,NO_ENGINE_SUBSTITUTION",
    ),
    ("time_zone", "SYSTEM"),
    ("wait_timeout", "28800"),
];

/// The connections and the prepared statements that it takes, in one row.
const MOST: [(&str, &str); 1] = [("100000", "100000")];

/// What the locks say by which proxies see each other: the proxy that asks is alone.
const OTHERS: [(&str, &str); 1] = [("others", "0")];

const STATUS: [(&str, &str); 3] = [
    ("wsrep_ready", "ON"),
    ("wsrep_cluster_status", "Primary"),
    ("wsrep_local_state", "4"),
];

const VARIABLES: [(&str, &str); 4] = [
    ("wsrep_node_name", "bench"),
    ("read_only", "OFF"),
    ("wsrep_reject_queries", "NONE"),
    ("wsrep_desync", "OFF"),
];

/// Appends the answer to a text of a proxy's, which may have several statements.
pub(super) fn answer(agreed: Capabilities, text: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let mut answer = Answer::new(agreed, 1, out);
    let mut statements = text.split(|&byte| byte == b';').peekable();
    while let Some(statement) = statements.next() {
        let (statement, more) = (statement.trim_ascii(), statements.peek().is_some());
        match statement {
            b"SELECT 1" => answer.value("1", "1", more),
            b"SELECT @@max_connections, @@max_prepared_stmt_count" => answer.table(&MOST, more),
            b"SELECT @@wsrep_on" => answer.value("@@wsrep_on", "1", more),
            _ if statement.starts_with(b"SELECT 'others', ") => answer.table(&OTHERS, more),
            _ if statement.starts_with(b"SHOW GLOBAL STATUS ") => answer.table(&STATUS, more),
            _ if statement.starts_with(b"SHOW GLOBAL VARIABLES ") => answer.table(&VARIABLES, more),
            // Setting a variable to its own value is reported as a change.
            _ if statement.ends_with(b"wait_timeout=@@wait_timeout") => answer.ok(&SESSION, more),
            _ if statement.starts_with(b"SET ") || statement.starts_with(b"CREATE TABLE ") => {
                answer.ok(&[], more);
            }
            _ => bail!(
                "a statement that no client of a run sends: {}",
                statement.escape_ascii()
            ),
        }
    }
    Ok(())
}
