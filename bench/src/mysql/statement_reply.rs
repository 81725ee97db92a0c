//! The reply to a statement of any text, from any server: its end, and its rows.

use anyhow::{Result, bail, ensure};
use proxima_wire::mysql::ErrPacket;

use super::{packet, rows::Rows};

/// Bytes of an error's text that are kept.
const LONGEST_MESSAGE: usize = 200;

/// A reply that has come as a whole.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Reply<'a> {
    /// Its bytes.
    pub(crate) length: usize,
    pub(crate) contents: Contents<'a>,
}

/// What a reply says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Contents<'a> {
    /// It is done, without rows.
    Done,
    /// It has a result.
    Rows(Rows<'a>),
    /// The number of a prepared statement.
    Prepared(u32),
    /// The server or the proxy said no, in these words.
    Refused(String),
}

/// The packets of a reply, one after the other.
struct Packets<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Packets<'a> {
    fn next(&mut self) -> Option<&'a [u8]> {
        let packet = packet::first(&self.bytes[self.at..])?;
        self.at += packet.length;
        Some(packet.payload)
    }

    /// Passes over this number of definitions, and the EOF packet that may end them.
    fn skip(&mut self, definitions: usize, has_eof: bool) -> Option<()> {
        let end = usize::from(definitions > 0 && has_eof);
        (0..definitions + end).try_for_each(|_| self.next().map(drop))
    }

    fn reply(&self, contents: Contents<'a>) -> Reply<'a> {
        Reply {
            length: self.at,
            contents,
        }
    }
}

/// The reply to a statement, as a text or prepared, at the start of `bytes`. `None`: more bytes are needed.
///
/// # Errors
/// On bytes that begin no reply.
pub(crate) fn of_statement(bytes: &[u8], has_eof: bool) -> Result<Option<Reply<'_>>> {
    let mut packets = Packets { bytes, at: 0 };
    let Some(first) = packets.next() else {
        return Ok(None);
    };
    let columns = match *first {
        [0, ..] => return Ok(Some(packets.reply(Contents::Done))),
        [0xff, ..] => return Ok(Some(packets.reply(refusal(first)?))),
        [columns] if columns <= 0xfa => usize::from(columns),
        _ => bail!("no reply to a statement: {}", first.escape_ascii()),
    };
    let definitions = packets.at;
    for _ in 0..columns + usize::from(has_eof) {
        match packets.next() {
            None => return Ok(None),
            Some(error @ [0xff, ..]) => return Ok(Some(packets.reply(refusal(error)?))),
            Some(_) => {}
        }
    }
    let mut rows = Rows {
        first: None,
        count: 0,
        columns,
        definitions: &bytes[definitions..packets.at],
    };
    loop {
        match packets.next() {
            None => return Ok(None),
            // A row begins so only if it has 16 MiB.
            Some([0xfe, ..]) => return Ok(Some(packets.reply(Contents::Rows(rows)))),
            Some(error @ [0xff, ..]) => return Ok(Some(packets.reply(refusal(error)?))),
            Some(row) => {
                rows.first.get_or_insert(row);
                rows.count += 1;
            }
        }
    }
}

/// The reply to the preparation of a statement at the start of `bytes`. `None`: more bytes are needed.
///
/// # Errors
/// On bytes that begin no such reply.
pub(crate) fn of_preparation(bytes: &[u8], has_eof: bool) -> Result<Option<Reply<'_>>> {
    let mut packets = Packets { bytes, at: 0 };
    let Some(head) = packets.next() else {
        return Ok(None);
    };
    if let [0xff, ..] = head {
        return Ok(Some(packets.reply(refusal(head)?)));
    }
    let [0, a, b, c, d, columns, 0, parameters, 0, ..] = *head else {
        bail!("no prepared statement: {}", head.escape_ascii());
    };
    let skipped = packets
        .skip(usize::from(parameters), has_eof)
        .and_then(|()| packets.skip(usize::from(columns), has_eof));
    let prepared = Contents::Prepared(u32::from_le_bytes([a, b, c, d]));
    Ok(skipped.map(|()| packets.reply(prepared)))
}

/// The text of a row with one column, whose text or binary form begins here.
///
/// # Errors
/// When it is NULL, or more than that.
pub(crate) fn text(row: &[u8]) -> Result<&[u8]> {
    let text = packet::text(row);
    let alone = text.filter(|(_, rest)| rest.is_empty());
    ensure!(alone.is_some(), "no row of one text: {}", row.escape_ascii());
    Ok(alone.map_or(b"", |(text, _)| text))
}

fn refusal<'a>(payload: &[u8]) -> Result<Contents<'a>> {
    let error = ErrPacket::read(payload)?;
    let message = &error.message[..error.message.len().min(LONGEST_MESSAGE)];
    let words = format!("error {}: {}", error.code, message.escape_ascii());
    Ok(Contents::Refused(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    const EOF: &[u8] = b"\x05\0\0\x05\xfe\0\0\x02\0";
    const OK: &[u8] = b"\x07\0\0\x05\xfe\0\0\x02\0\0\0";
    const ERROR: &[u8] = b"\x0e\0\0\x01\xff\x1e\x04#42S22words";

    fn check(reply: &[u8], contents: &Contents<'_>, read: impl Fn(&[u8]) -> Result<Option<Reply<'_>>>) {
        for length in 0..reply.len() {
            assert_eq!(read(&reply[..length]).unwrap(), None, "{length} bytes");
        }
        let longer = [reply, b"more"].concat();
        let whole = read(&longer).unwrap().unwrap();
        assert_eq!((whole.length, &whole.contents), (reply.len(), contents));
    }

    /// The result of one column with this definition, and with this number of rows, all alike.
    fn rows<'a>(definitions: &'a [u8], row: &'a [u8], count: usize) -> Contents<'a> {
        Contents::Rows(Rows {
            first: (count > 0).then_some(row),
            count,
            columns: 1,
            definitions,
        })
    }

    #[test]
    fn a_reply_ends_where_its_capabilities_say() {
        let (head, definition) = (&b"\x01\0\0\x01\x01"[..], &b"\x03\0\0\x02def"[..]);
        let (row, name) = (b"\x03\0\0\x03\x02k1", b"\x02k1");
        let with_eof = [head, definition, EOF, row, row, EOF].concat();
        let ended = [definition, EOF].concat();
        check(&with_eof, &rows(&ended, name, 2), |bytes| {
            of_statement(bytes, true)
        });
        let without = [head, definition, row, OK].concat();
        check(&without, &rows(definition, name, 1), |bytes| {
            of_statement(bytes, false)
        });
        let none = [head, definition, OK].concat();
        check(&none, &rows(definition, name, 0), |bytes| {
            of_statement(bytes, false)
        });
        let done = b"\x07\0\0\x01\0\x01\0\x02\0\0\0";
        check(done, &Contents::Done, |bytes| of_statement(bytes, true));
    }

    #[test]
    fn a_preparation_ends_behind_its_definitions() {
        let head = b"\x0c\0\0\x01\0\x07\0\0\0\x01\0\x01\0\0\0\0";
        let definition = b"\x03\0\0\x02def";
        let without = [&head[..], definition, definition].concat();
        let prepared = Contents::Prepared(7);
        check(&without, &prepared, |bytes| of_preparation(bytes, false));
        let with_eof = [&head[..], definition, EOF, definition, EOF].concat();
        check(&with_eof, &prepared, |bytes| of_preparation(bytes, true));
    }

    #[test]
    fn a_refusal_is_told_from_nonsense() {
        let refused = Contents::Refused("error 1054: words".into());
        check(ERROR, &refused, |bytes| of_statement(bytes, true));
        check(ERROR, &refused, |bytes| of_preparation(bytes, true));
        for before in [&b""[..], b"\x03\0\0\x02def", b"\x03\0\0\x02def\x03\0\0\x03\x02k1"] {
            let late = [b"\x01\0\0\x01\x01", before, ERROR].concat();
            check(&late, &refused, |bytes| of_statement(bytes, false));
        }
        assert!(of_statement(b"\x02\0\0\x01\xfb/", true).is_err());
        assert!(of_preparation(b"\x01\0\0\x01\x01", true).is_err());
    }

    #[test]
    fn a_row_has_one_text() {
        assert_eq!(text(b"\x02k1").unwrap(), b"k1");
        for row in [&b"\xfb"[..], b"\x02k1\x01a", b"\x03k1"] {
            assert!(text(row).is_err());
        }
    }
}
