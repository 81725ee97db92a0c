//! The reasons why a session stays at its connection until it ends: state that the server keeps for it and
//! does not report.

use std::fmt;

use super::words::{begins_with, has_word};

/// One such reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Binding {
    UserVariables,
    TemporaryTables,
    /// GET_LOCK and its like.
    NamedLocks,
    /// LOCK TABLES, FLUSH TABLES, and locks of a backup.
    TableLocks,
    Handlers,
    /// PREPARE and EXECUTE as statements.
    SqlPrepare,
    /// LAST_INSERT_ID of a value.
    Result,
    /// SQL_CALC_FOUND_ROWS, for the statement behind it.
    FoundRows,
    /// A variable that cannot be told another server.
    Variable,
    /// A collation that no server reports.
    Collation,
    /// A default schema whose name means itself in one character set alone.
    Schema,
    /// A function or procedure has changed what the server does not name.
    #[default]
    State,
    /// The session ends with its transaction.
    Release,
    /// A prepared statement was closed with its cursor.
    Cursor,
    /// An option of the connection.
    ConnectionOption,
}

/// The bytes of a text that are looked at.
const LOOKED_AT: usize = 4096;

impl Binding {
    /// The state that a statement with this text leaves, if it is known to leave some.
    pub(super) fn of(text: &[u8]) -> Self {
        let text = &text[..text.len().min(LOOKED_AT)];
        let has = |words: &[&str]| words.iter().any(|word| has_word(text, word.as_bytes()));
        if begins_with(text, &["handler"]) {
            Self::Handlers
        } else if begins_with(text, &["prepare", "execute", "deallocate", "drop prepare"]) {
            Self::SqlPrepare
        } else if begins_with(text, &["lock", "flush", "backup"]) {
            Self::TableLocks
        } else if begins_with(text, &["create"]) {
            Self::TemporaryTables
        } else if has(&["get_lock", "release_lock", "release_all_locks"]) {
            Self::NamedLocks
        } else if has(&["@"]) {
            Self::UserVariables
        } else if has(&["last_insert_id"]) {
            Self::Result
        } else if has(&["sql_calc_found_rows"]) {
            Self::FoundRows
        } else if begins_with(text, &["set"]) {
            Self::Variable
        } else {
            Self::State
        }
    }

    /// Its word in metrics.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::UserVariables => "user_variables",
            Self::TemporaryTables => "temporary_tables",
            Self::NamedLocks => "named_locks",
            Self::TableLocks => "table_locks",
            Self::Handlers => "handlers",
            Self::SqlPrepare => "sql_prepare",
            Self::Result | Self::FoundRows => "result",
            Self::Variable => "variable",
            Self::Collation => "collation",
            Self::Schema => "schema",
            Self::State => "state",
            Self::Release => "release",
            Self::Cursor => "cursor",
            Self::ConnectionOption => "connection_option",
        }
    }
}

impl fmt::Display for Binding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::UserVariables => "user variables",
            Self::TemporaryTables => "temporary tables",
            Self::NamedLocks => "locks by name",
            Self::TableLocks => "locks of tables",
            Self::Handlers => "handlers",
            Self::SqlPrepare => "statements that are prepared in SQL",
            Self::Result => "an id that is asked for later",
            Self::FoundRows => "a number of rows that is asked for later",
            Self::Variable => "a variable that cannot be told another server",
            Self::Collation => "a collation that no server reports",
            Self::Schema => "a schema whose name is told in another character set",
            Self::State => "a change of the session that its server does not name",
            Self::Release => "the session ends with its transaction",
            Self::Cursor => "a prepared statement was closed with its cursor",
            Self::ConnectionOption => "an option of the connection",
        })
    }
}

#[cfg(test)]
mod tests {
    use proxima_wire::mysql::sql::{self, Mode};

    use super::Binding;

    #[test]
    fn a_text_shows_what_it_leaves() {
        for (text, expected) in [
            ("SET @x = 1", Binding::UserVariables),
            ("SELECT a INTO @x FROM t", Binding::UserVariables),
            ("SELECT @x := 1", Binding::UserVariables),
            ("create temporary table t (a int)", Binding::TemporaryTables),
            ("SELECT GET_LOCK('a', 1)", Binding::NamedLocks),
            ("LOCK TABLES t READ", Binding::TableLocks),
            ("/* a */ FLUSH TABLES WITH READ LOCK", Binding::TableLocks),
            ("HANDLER t OPEN", Binding::Handlers),
            ("PREPARE a FROM 'SELECT 1'", Binding::SqlPrepare),
            ("EXECUTE a", Binding::SqlPrepare),
            ("SELECT SQL_CALC_FOUND_ROWS a FROM t", Binding::FoundRows),
            ("SELECT SQL_CALC_FOUND_ROWS LAST_INSERT_ID(7)", Binding::Result),
            ("UPDATE t SET a = LAST_INSERT_ID(a + 1)", Binding::Result),
        ] {
            let statement = sql::statement(text.as_bytes(), Mode::default());
            assert!(statement.changes_session, "{text}");
            assert_eq!(Binding::of(text.as_bytes()), expected, "{text}");
        }
    }
}
