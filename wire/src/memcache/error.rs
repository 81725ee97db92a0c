//! The lines that memcached answers to a bad request, with their line end, byte for byte.

/// Unknown command, or more words than an older server takes.
pub const ERROR: &[u8] = b"ERROR\r\n";
/// A word is missing, a key has over 250 bytes, or a word is no number.
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
/// `stats` of a group that mcrouter does not know.
pub const BAD_STATS: &[u8] = b"CLIENT_ERROR bad stats command\r\n";
/// `mg`, `ms`, `md`: a flag stands twice.
pub const DUPLICATE_FLAG: &[u8] = b"CLIENT_ERROR duplicate flag\r\n";
/// A flag that no server knows.
pub const INVALID_FLAG: &[u8] = b"CLIENT_ERROR invalid flag\r\n";
/// `ma`: a bad flag or a bad key.
pub const BAD_FLAG: &[u8] = b"CLIENT_ERROR invalid or duplicate flag\r\n";
/// The argument of `N`, `T`, `R`, `C` or `E` is not a number.
pub const BAD_TOKEN: &[u8] = b"CLIENT_ERROR bad token in command line format\r\n";
/// The argument of `J` is not a number.
pub const BAD_INITIAL: &[u8] = b"CLIENT_ERROR invalid numeric initial value\r\n";
/// The argument of `D` is not a number.
pub const BAD_META_DELTA: &[u8] = b"CLIENT_ERROR invalid numeric delta value\r\n";
/// `M` does not have exactly one letter after it.
pub const BAD_MODE_LENGTH: &[u8] = b"CLIENT_ERROR incorrect length for M token\r\n";
/// `ms`: an unknown mode.
pub const BAD_SET_MODE: &[u8] = b"CLIENT_ERROR invalid mode for ms M token\r\n";
/// `ma`: an unknown mode.
pub const BAD_ARITHMETIC_MODE: &[u8] = b"CLIENT_ERROR invalid mode for ma M token\r\n";
/// The key is not base64 although the flag `b` says so.
pub const BAD_BASE64: &[u8] = b"CLIENT_ERROR error decoding key\r\n";
/// More words than memcached takes.
pub const TOO_MANY_FLAGS: &[u8] = b"CLIENT_ERROR options flags are too long\r\n";
/// A retrieval command that has no key within [`LINE`](super::LINE) bytes. memcached has no such limit and no
/// such text.
pub const LINE_TOO_LONG: &[u8] = b"CLIENT_ERROR line too long\r\n";
