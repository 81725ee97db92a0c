//! The words of MySQL that are the same whatever a version is stored in.

use super::answer::{Failure, Found, Parsed, wrong};
use crate::mysql::{
    Statements,
    request::{self, PREPARE},
    rows::Value,
    statement_reply::{Contents, Reply, of_preparation, of_statement},
};

/// How a connection speaks.
#[derive(Clone, Copy, Default)]
pub(super) struct Dialect {
    /// EOF packets end definitions and rows.
    pub(super) has_eof: bool,
    /// The statements that it has prepared, where reads and writes are executions of them.
    pub(super) prepared: Option<Statements>,
}

/// The request that runs a text.
pub(super) fn query(text: &[u8]) -> Vec<u8> {
    let mut request = Vec::new();
    request::append_query(text, &mut request);
    request
}

/// The request that prepares a statement.
pub(super) fn prepare(text: &str) -> Vec<u8> {
    let mut request = Vec::new();
    request::append_command(PREPARE, text.as_bytes(), &mut request);
    request
}

/// The request that executes a prepared statement with these texts.
pub(super) fn execute(number: u32, texts: &[&[u8]]) -> Vec<u8> {
    let mut request = Vec::new();
    request::append_execute(number, texts, &mut request);
    request
}

/// The reply to the preparation of a statement: its number.
pub(super) fn parse_prepared(reply: &[u8], dialect: Dialect) -> Parsed<u32> {
    parse(
        reply,
        of_preparation(reply, dialect.has_eof),
        |contents| match contents {
            Contents::Prepared(number) => Ok(number),
            _ => Err(wrong("no prepared statement", reply)),
        },
    )
}

/// The reply to a statement without rows.
pub(super) fn parse_done(reply: &[u8], dialect: Dialect) -> Parsed<()> {
    parse(
        reply,
        of_statement(reply, dialect.has_eof),
        |contents| match contents {
            Contents::Done => Ok(()),
            _ => Err(wrong("no reply to this statement", reply)),
        },
    )
}

/// The reply to a read, which has one row or none. `find` makes of its values what was found.
pub(super) fn parse_row(
    reply: &[u8],
    dialect: Dialect,
    find: impl FnOnce(&[Value<'_>]) -> Result<Found, Failure>,
) -> Parsed<Option<Found>> {
    parse(reply, of_statement(reply, dialect.has_eof), |contents| {
        let Contents::Rows(rows) = contents else {
            return Err(wrong("no reply to this statement", reply));
        };
        let only = rows.only(dialect.prepared.is_some());
        let values = only.map_err(|error| wrong(&format!("{error:#}"), reply))?;
        values.map(|values| find(&values)).transpose()
    })
}

/// A reply as far as it has come.
fn parse<T>(
    reply: &[u8],
    read: anyhow::Result<Option<Reply<'_>>>,
    take: impl FnOnce(Contents<'_>) -> Result<T, Failure>,
) -> Parsed<T> {
    match read {
        Ok(None) => None,
        Ok(Some(Reply { length, contents })) => Some((
            length,
            match contents {
                Contents::Refused(words) => Err(Failure::Refused(words)),
                other => take(other),
            },
        )),
        Err(_) => Some((reply.len(), Err(wrong("no reply to this statement", reply)))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_is_done_or_refused_or_neither() {
        let error = b"\x0e\0\0\x01\xff\x1e\x04#42S22words";
        let refused = Failure::Refused("error 1054: words".into());
        for has_eof in [false, true] {
            let dialect = Dialect {
                has_eof,
                prepared: None,
            };
            assert_eq!(
                parse_done(b"\x07\0\0\x01\0\x01\0\x02\0\0\0", dialect),
                Some((11, Ok(())))
            );
            assert_eq!(parse_done(error, dialect), Some((18, Err(refused.clone()))));
            assert_eq!(parse_prepared(error, dialect), Some((18, Err(refused.clone()))));
            assert_eq!(parse_done(b"\x07\0\0\x01\0\x01", dialect), None);
            let nonsense = b"\x02\0\0\x01\xfb/";
            for answer in [
                parse_done(nonsense, dialect),
                parse_prepared(nonsense, dialect).map(|(length, answer)| (length, answer.map(drop))),
            ] {
                assert!(matches!(answer, Some((6, Err(Failure::Wrong(_))))), "{answer:?}");
            }
        }
    }
}
