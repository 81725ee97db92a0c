//! The messages of a client, each with what its reply has to be.

use anyhow::{Result, bail, ensure};

use super::visitors;
use crate::mysql::{
    packet::HEAD,
    request::{CLOSE, EXECUTE, PREPARE, append_command, append_query},
    rows::Rows,
    statement_reply::{Contents, Reply, of_preparation, of_statement, text},
};

/// A message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// A statement of a preamble, whatever it answers.
    Say(&'static str),
    /// A read of the row with this number.
    Read(u32),
    /// A change of the row with this number.
    Update(u32),
    /// The preparation of the read of a row.
    Prepare,
    /// The read, prepared, of the row with this number.
    Execute(u32),
    /// The end of what was prepared.
    Close,
}

/// The outcome of a message.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Done,
    Prepared(u32),
    Refused(String),
}

impl Step {
    /// Appends the message. `statement`: the number of the statement that was prepared.
    pub(super) fn append(self, statement: u32, out: &mut Vec<u8>) {
        match self {
            Self::Say(text) => append_query(text.as_bytes(), out),
            Self::Read(number) => append_query(visitors::read(number).as_bytes(), out),
            Self::Update(number) => append_query(visitors::update(number).as_bytes(), out),
            Self::Prepare => append_command(PREPARE, visitors::PREPARED.as_bytes(), out),
            Self::Execute(number) => append_command(EXECUTE, &execution(statement, number), out),
            Self::Close => append_command(CLOSE, &statement.to_le_bytes(), out),
        }
    }

    /// Whether there is a reply.
    pub(super) fn has_reply(self) -> bool {
        self != Self::Close
    }

    /// Judges the reply at the start of `bytes`. Returns its length and the outcome. `None`: more bytes are
    /// needed.
    ///
    /// # Errors
    /// When it is not the reply to this message.
    pub(super) fn judge(self, bytes: &[u8], has_eof: bool) -> Result<Option<(usize, Outcome)>> {
        let read = match self {
            Self::Prepare => of_preparation(bytes, has_eof)?,
            _ => of_statement(bytes, has_eof)?,
        };
        let Some(Reply { length, contents }) = read else {
            return Ok(None);
        };
        let outcome = match (self, contents) {
            (_, Contents::Refused(words)) => Outcome::Refused(words),
            (Self::Prepare, Contents::Prepared(statement)) => Outcome::Prepared(statement),
            (Self::Update(_), Contents::Done) | (Self::Say(_), _) => Outcome::Done,
            (Self::Read(number), Contents::Rows(Rows { first: Some(row), .. })) => {
                Self::compare(text(row)?, number)?
            }
            (
                Self::Execute(number),
                Contents::Rows(Rows {
                    first: Some([0, 0, row @ ..]),
                    ..
                }),
            ) => Self::compare(text(row)?, number)?,
            _ => bail!("no reply to {self:?}: {}", bytes[HEAD..length].escape_ascii()),
        };
        Ok(Some((length, outcome)))
    }

    fn compare(name: &[u8], number: u32) -> Result<Outcome> {
        let wanted = visitors::name(number);
        ensure!(
            name == wanted.as_bytes(),
            "'{}' instead of '{wanted}'",
            name.escape_ascii()
        );
        Ok(Outcome::Done)
    }
}

/// An execution as go-sql-driver writes it: no cursor, once, nothing is NULL, and an integer of eight bytes.
fn execution(statement: u32, number: u32) -> Vec<u8> {
    const LONGLONG: [u8; 2] = [8, 0];
    let mut out = statement.to_le_bytes().to_vec();
    out.extend_from_slice(&[0, 1, 0, 0, 0, 0, 1]);
    out.extend_from_slice(&LONGLONG);
    out.extend_from_slice(&u64::from(number).to_le_bytes());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_of_somebody_else_is_found() {
        let reply = |name: &str| {
            let mut reply = b"\x01\0\0\x01\x01\x03\0\0\x02def".to_vec();
            let length = name.len() as u8;
            reply.extend_from_slice(&[length + 1, 0, 0, 3, length]);
            reply.extend_from_slice(name.as_bytes());
            reply.extend_from_slice(b"\x07\0\0\x04\xfe\0\0\x02\0\0\0");
            reply
        };
        let (own, other) = (reply("visitor 7"), reply("visitor 8"));
        let judged = Step::Read(7).judge(&own, false).unwrap();
        assert_eq!(judged, Some((own.len(), Outcome::Done)));
        assert!(Step::Read(7).judge(&other, false).is_err());
        assert!(Step::Update(7).judge(&own, false).is_err());
    }

    #[test]
    fn an_execution_has_its_bytes() {
        let mut out = Vec::new();
        Step::Execute(258).append(5, &mut out);
        let expected = b"\x16\0\0\0\x17\x05\0\0\0\0\x01\0\0\0\0\x01\x08\0\x02\x01\0\0\0\0\0\0";
        assert_eq!(out, expected);
    }
}
