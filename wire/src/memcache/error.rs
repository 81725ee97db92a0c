//! The lines that memcached 1.6.18 answers to a bad request, with their line end, byte for byte.

/// Unknown command, or the wrong number of words.
pub const ERROR: &[u8] = b"ERROR\r\n";
/// A key over 250 bytes, or a number that is none.
pub const BAD_FORMAT: &[u8] = b"CLIENT_ERROR bad command line format\r\n";
/// The value is not followed by CR LF.
pub const BAD_CHUNK: &[u8] = b"CLIENT_ERROR bad data chunk\r\n";
/// The value is larger than the limit.
pub const TOO_LARGE: &[u8] = b"SERVER_ERROR object too large for cache\r\n";
/// `gat`, `touch`, `flush_all`: the time is not a number.
pub const BAD_TTL: &[u8] = b"CLIENT_ERROR invalid exptime argument\r\n";
/// `incr`, `decr`: the delta is not a number.
pub const BAD_DELTA: &[u8] = b"CLIENT_ERROR invalid numeric delta argument\r\n";
/// `delete` with words after the key other than `0` and `noreply`.
pub const DELETE_USAGE: &[u8] = b"CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]\r\n";
/// `gat`, `gats` with a time but no key: nothing was asked for, so this is all of the reply.
pub const NO_KEYS: &[u8] = b"END\r\n";
/// `mg`, `ms`: a flag stands twice.
pub const DUPLICATE_FLAG: &[u8] = b"CLIENT_ERROR duplicate flag\r\n";
/// `md`, `ma`: any flag that is wrong.
pub const BAD_FLAG: &[u8] = b"CLIENT_ERROR invalid or duplicate flag\r\n";
/// `mg`, `ms`: the flag's argument is not a number.
pub const BAD_TOKEN: &[u8] = b"CLIENT_ERROR bad token in command line format\r\n";
/// `mg`, `ms`: the key is not base64 though `b` says so.
pub const BAD_BASE64: &[u8] = b"CLIENT_ERROR error decoding key\r\n";
/// `ms`, `md`, `ma`: more words than memcached takes.
pub const TOO_MANY_FLAGS: &[u8] = b"CLIENT_ERROR options flags too long\r\n";
/// The same for `mg`, which says it differently.
pub const TOO_MANY_FLAGS_MG: &[u8] = b"CLIENT_ERROR options flags are too long\r\n";
/// A retrieval command that has no key within [`LINE`](super::LINE) bytes. memcached has no such limit and no such text.
pub const LINE_TOO_LONG: &[u8] = b"CLIENT_ERROR line too long\r\n";
