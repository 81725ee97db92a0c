//! Requests of clients, and the replies to them.

use std::io::Write;

use crate::workload::value;

/// Appends a line: a type's character and a number.
pub(crate) fn append_length(kind: u8, length: usize, out: &mut Vec<u8>) {
    out.push(kind);
    // Writing to a Vec cannot fail.
    let _ = write!(out, "{length}\r\n");
}

/// Appends a bulk string.
pub(crate) fn append_bulk(text: &[u8], out: &mut Vec<u8>) {
    append_length(b'$', text.len(), out);
    out.extend_from_slice(text);
    out.extend_from_slice(b"\r\n");
}

/// A command of these words.
pub(crate) fn command(words: &[impl AsRef<[u8]>]) -> Vec<u8> {
    let mut out = Vec::new();
    append_length(b'*', words.len(), &mut out);
    words.iter().for_each(|word| append_bulk(word.as_ref(), &mut out));
    out
}

/// Appends the value of `size` bytes that belongs to the key as a bulk string, as a get answers it.
pub(crate) fn append_value(key: &[u8], size: usize, out: &mut Vec<u8>) {
    append_length(b'$', size, out);
    value::append(key, size, out);
    out.extend_from_slice(b"\r\n");
}

/// Appends `GET KEY`.
pub(crate) fn append_get(key: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b"*2\r\n$3\r\nGET\r\n");
    append_bulk(key, out);
}

/// Appends `SET KEY VALUE`.
pub(crate) fn append_set(key: &[u8], size: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(b"*3\r\n$3\r\nSET\r\n");
    append_bulk(key, out);
    append_value(key, size, out);
}

/// Appends `MGET KEY…`.
pub(crate) fn append_mget<'a>(keys: impl ExactSizeIterator<Item = &'a [u8]>, out: &mut Vec<u8>) {
    append_length(b'*', keys.len() + 1, out);
    append_bulk(b"MGET", out);
    keys.for_each(|key| append_bulk(key, out));
}

/// Appends `MSET KEY VALUE…`.
pub(crate) fn append_mset<'a>(keys: impl ExactSizeIterator<Item = &'a [u8]>, size: usize, out: &mut Vec<u8>) {
    append_length(b'*', keys.len() * 2 + 1, out);
    append_bulk(b"MSET", out);
    keys.for_each(|key| {
        append_bulk(key, out);
        append_value(key, size, out);
    });
}
