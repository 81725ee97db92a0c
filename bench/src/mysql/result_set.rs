//! The result of a read, as servers send it to clients that have agreed on `DEPRECATE_EOF`.

use super::packet::{self, HEAD};
use crate::workload::value;

/// The packets before the rows: one column, with its definition.
pub(super) const COLUMNS: &[u8] = b"\x01\0\0\x01\x01\
    \x2f\0\0\x02\x03def\x0dproxima_bench\x05bench\x05bench\x01v\x01v\x0c\x3f\0\xff\xff\xff\xff\xfc\x91\x10\0\0\0";
/// The definition of that column.
pub(super) const COLUMN: &[u8] =
    b"\x03def\x0dproxima_bench\x05bench\x05bench\x01v\x01v\x0c\x3f\0\xff\xff\xff\xff\xfc\x91\x10\0\0\0";
/// The definition of a parameter.
pub(super) const PARAMETER: &[u8] = b"\x03def\0\0\0\x01?\0\x0c\x3f\0\0\0\0\0\x06\x80\0\0\0\0";
/// The end behind one row.
pub(crate) const END: &[u8] = b"\x07\0\0\x04\xfe\0\0\x02\0\0\0";
/// The whole result without a row.
pub(crate) const EMPTY: &[u8] = b"\x01\0\0\x01\x01\
    \x2f\0\0\x02\x03def\x0dproxima_bench\x05bench\x05bench\x01v\x01v\x0c\x3f\0\xff\xff\xff\xff\xfc\x91\x10\0\0\0\
    \x07\0\0\x03\xfe\0\0\x02\0\0\0";
/// A server's reply when it has stored one value.
pub(crate) const STORED: &[u8] = b"\x07\0\0\x01\0\x01\0\x02\0\0\0";
/// The same, when there was another one before.
pub(super) const REPLACED: &[u8] = b"\x07\0\0\x01\0\x02\0\x02\0\0\0";

/// The beginning of a row of a prepared statement: a zero byte, and a bitmap without a NULL.
const BINARY: &[u8] = b"\0\0";

/// Appends what stands before the value in a result of one row. `binary`: of a prepared statement.
pub(crate) fn append_announcement(binary: bool, size: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(COLUMNS);
    let start = out.len();
    packet::append(3, out, |out| {
        out.extend_from_slice(if binary { BINARY } else { b"" });
        packet::append_length(size, out);
    });
    // The packet goes on with the value.
    let [a, b, c, _] = ((out.len() - start - HEAD + size) as u32).to_le_bytes();
    out[start..start + 3].copy_from_slice(&[a, b, c]);
}

/// Appends the result that has the value of `size` bytes that belongs to the key.
pub(super) fn append_hit(binary: bool, key: &[u8], size: usize, out: &mut Vec<u8>) {
    append_announcement(binary, size, out);
    value::append(key, size, out);
    out.extend_from_slice(END);
}
