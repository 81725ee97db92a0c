//! The number of a client's connection, where the client selects it in SQL: it is the proxy's, by which
//! `KILL` finds the session, and not that of the connection to a server that a statement happens to have.
//! Expressions compare it with other numbers of the server's, and have the server's.

use proxima_wire::mysql::sql::{Mode, selected_ids};

/// The text that is executed in place of one that selects the number. `None` if it does not.
pub(super) fn with_connection_id(text: &[u8], mode: Mode, id: u64) -> Option<Vec<u8>> {
    let (mut out, mut at) = (Vec::new(), 0);
    for selected in selected_ids(text, mode) {
        let own = &text[selected.start..selected.end];
        out.extend_from_slice(&text[at..selected.start]);
        out.extend_from_slice(format!("CAST({id} AS UNSIGNED)").as_bytes());
        if !selected.is_named {
            // The column has the name that it has at a server.
            out.extend_from_slice(b" AS `");
            out.extend_from_slice(own);
            out.push(b'`');
        }
        at = selected.end;
    }
    (at > 0).then(|| {
        out.extend_from_slice(&text[at..]);
        out
    })
}

#[cfg(test)]
mod tests {
    use proxima_wire::mysql::sql::Mode;

    use super::with_connection_id;

    #[test]
    fn a_column_keeps_the_name_that_it_has_at_a_server() {
        for (text, expected) in [
            (
                "SELECT 1, CONNECTION_ID() LIMIT 1",
                Some("SELECT 1, CAST(7 AS UNSIGNED) AS `CONNECTION_ID()` LIMIT 1"),
            ),
            (
                "SELECT connection_id() a, @@pseudo_thread_id;",
                Some("SELECT CAST(7 AS UNSIGNED) a, CAST(7 AS UNSIGNED) AS `@@pseudo_thread_id`;"),
            ),
            ("SELECT 1", None),
        ] {
            let changed = with_connection_id(text.as_bytes(), Mode::default(), 7);
            assert_eq!(changed.as_deref(), expected.map(str::as_bytes), "{text}");
        }
    }
}
