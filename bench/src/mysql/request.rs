//! Requests of clients: texts, and statements that were prepared with the login.

use super::{packet, statements::Statements};
use crate::workload::value;

/// The statement that reads a value, up to the key.
pub(super) const SELECT: &[u8] = b"SELECT v FROM bench WHERE k='";
/// The statement that writes a value, up to the key.
pub(super) const REPLACE: &[u8] = b"REPLACE INTO bench VALUES('";

/// The statements that are prepared with the login, in this order.
pub(super) const PREPARED: [&[u8]; 2] = [
    b"SELECT v FROM bench WHERE k=?",
    b"REPLACE INTO bench VALUES(?,?)",
];

/// The numbers of commands.
pub(super) const QUIT: u8 = 0x01;
pub(super) const INIT_DB: u8 = 0x02;
pub(super) const QUERY: u8 = 0x03;
pub(super) const PING: u8 = 0x0e;
pub(crate) const PREPARE: u8 = 0x16;
pub(crate) const EXECUTE: u8 = 0x17;
pub(crate) const CLOSE: u8 = 0x19;
pub(super) const RESET_CONNECTION: u8 = 0x1f;

/// A client's last packet, before it closes the connection.
pub(crate) const GOODBYE: &[u8] = &[1, 0, 0, 0, QUIT];

/// A parameter that is a text.
const TEXT: [u8; 2] = [0xfd, 0];

/// The statement that creates the table. A value has a key of its own, so that a read finds one row.
pub(crate) const CREATE: &str =
    "CREATE TABLE IF NOT EXISTS bench (k VARBINARY(250) PRIMARY KEY, v LONGBLOB NOT NULL) ENGINE=InnoDB";

/// Appends a text.
pub(crate) fn append_query(text: &[u8], out: &mut Vec<u8>) {
    append_command(QUERY, text, out);
}

/// Appends a command with these bytes behind its number.
pub(crate) fn append_command(command: u8, text: &[u8], out: &mut Vec<u8>) {
    packet::append(0, out, |out| {
        out.push(command);
        out.extend_from_slice(text);
    });
}

/// Appends the text that reads the value of a key: 30 bytes and the key's.
pub(crate) fn append_get(key: &[u8], out: &mut Vec<u8>) {
    packet::append(0, out, |out| {
        out.push(QUERY);
        out.extend_from_slice(SELECT);
        out.extend_from_slice(key);
        out.push(b'\'');
    });
}

/// Appends the text that stores the value of `size` bytes that belongs to the key.
pub(crate) fn append_set(key: &[u8], size: usize, out: &mut Vec<u8>) {
    let mut value = Vec::with_capacity(size);
    value::append(key, size, &mut value);
    append_replace(key, &value, out);
}

/// Appends the text that stores this value.
fn append_replace(key: &[u8], value: &[u8], out: &mut Vec<u8>) {
    packet::append(0, out, |out| {
        out.push(QUERY);
        out.extend_from_slice(REPLACE);
        append_pair(key, value, out);
        out.push(b')');
    });
}

/// Appends a key within its quotes, the first of which is there, and a value. The value is written in
/// hexadecimal digits, which every character set and `sql_mode` reads alike.
pub(crate) fn append_pair(key: &[u8], value: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.extend_from_slice(key);
    out.extend_from_slice(b"',x'");
    let digits = |byte: &u8| [byte >> 4, byte & 0xf].map(|half| DIGITS[usize::from(half)]);
    out.extend(value.iter().flat_map(digits));
    out.push(b'\'');
}

/// Appends an execution of the statement that reads.
pub(crate) fn append_prepared_get(statements: Statements, key: &[u8], out: &mut Vec<u8>) {
    packet::append(0, out, |out| {
        append_execution(statements.get, &[TEXT], out);
        packet::append_text(key, out);
    });
}

/// Appends an execution of the statement that writes.
pub(crate) fn append_prepared_set(statements: Statements, key: &[u8], size: usize, out: &mut Vec<u8>) {
    packet::append(0, out, |out| {
        append_execution(statements.set, &[TEXT; 2], out);
        packet::append_text(key, out);
        packet::append_length(size, out);
        value::append(key, size, out);
    });
}

/// Appends an execution of the statement with this number, whose parameters are these texts: eight at most.
pub(crate) fn append_execute(number: u32, texts: &[&[u8]], out: &mut Vec<u8>) {
    packet::append(0, out, |out| {
        append_execution(number, &vec![TEXT; texts.len()], out);
        for text in texts {
            packet::append_text(text, out);
        }
    });
}

/// Appends what stands before the parameters: the statement's number, no cursor, once, none is NULL, and
/// their types, which drivers tell each time.
fn append_execution(number: u32, types: &[[u8; 2]], out: &mut Vec<u8>) {
    out.push(EXECUTE);
    out.extend_from_slice(&number.to_le_bytes());
    out.extend_from_slice(&[0, 1, 0, 0, 0, 0, 1]);
    out.extend_from_slice(types.as_flattened());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_a_key_of_fifteen_bytes_has_forty_five() {
        let mut out = Vec::new();
        append_get(b"00007:proxima-b", &mut out);
        assert_eq!(
            out,
            b"\x2e\0\0\0\x03SELECT v FROM bench WHERE k='00007:proxima-b'"
        );
    }

    #[test]
    fn a_value_is_stored_in_digits_or_as_a_parameter() {
        let mut out = Vec::new();
        append_set(b"key7", 4, &mut out);
        assert_eq!(out[5..], *b"REPLACE INTO bench VALUES('key7',x'6b657937')");
        out.clear();
        append_prepared_set(Statements { get: 1, set: 2 }, b"key7", 4, &mut out);
        let expected = b"\x1b\0\0\0\x17\x02\0\0\0\0\x01\0\0\0\0\x01\xfd\0\xfd\0\x04key7\x04key7";
        assert_eq!(out.len(), expected.len());
        assert_eq!(out[1..], expected[1..]);
        out.clear();
        append_execute(2, &[b"key7", b"key7"], &mut out);
        assert_eq!(out[1..], expected[1..]);
    }
}
