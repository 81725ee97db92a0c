//! Requests of clients, and the replies to them.

use std::io::Write;

use crate::workload::value;

/// Appends `get KEY`.
pub(crate) fn append_get(key: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b"get ");
    out.extend_from_slice(key);
    out.extend_from_slice(b"\r\n");
}

/// Appends `set KEY` with the value of `size` bytes that belongs to the key.
pub(crate) fn append_set(key: &[u8], size: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(b"set ");
    out.extend_from_slice(key);
    append_number(b" 0 0 ", size, out);
    value::append(key, size, out);
    out.extend_from_slice(b"\r\n");
}

/// Appends the part of a get's reply that carries the value: from `VALUE` to the end of the data, without
/// `END`.
pub(crate) fn append_value(key: &[u8], size: usize, out: &mut Vec<u8>) {
    append_value_line(key, size, out);
    value::append(key, size, out);
    out.extend_from_slice(b"\r\n");
}

/// Appends the line that announces a value.
pub(crate) fn append_value_line(key: &[u8], size: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(b"VALUE ");
    out.extend_from_slice(key);
    append_number(b" 0 ", size, out);
}

/// Appends `before`, `number` and the end of the line.
fn append_number(before: &[u8], number: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(before);
    // Writing to a Vec cannot fail.
    let _ = write!(out, "{number}\r\n");
}
