//! The errors of servers: their texts for requests that are not accepted, and the outcome that each stands
//! for.
//!
//! The texts are those of Redis 7.0 to 8.0 and Valkey 8.1 to 9.1, recorded in `captures/resp`.

use crate::message::Outcome;

/// The number of a request's arguments is invalid, or too large.
pub const MULTIBULK_LENGTH: &[u8] = b"-ERR Protocol error: invalid multibulk length\r\n";
/// The length of an argument is invalid, or too large.
pub const BULK_LENGTH: &[u8] = b"-ERR Protocol error: invalid bulk length\r\n";
/// An argument does not end in CR LF. Only Valkey 9.1 says so.
pub const NO_CRLF: &[u8] = b"-ERR Protocol error: invalid CRLF in request\r\n";
/// The quotes of an inline command are not closed, or something follows a closing one.
pub const UNBALANCED: &[u8] = b"-ERR Protocol error: unbalanced quotes in request\r\n";
/// An inline command is too long.
pub const INLINE_SIZE: &[u8] = b"-ERR Protocol error: too big inline request\r\n";
/// An argument that should be a number is not one.
pub(super) const NO_INTEGER: &[u8] = b"-ERR value is not an integer or out of range\r\n";
/// The same of a number with a fraction.
pub(super) const NO_FLOAT: &[u8] = b"-ERR value is not a valid float\r\n";

/// An argument that does not begin with `$`.
pub(super) fn no_bulk(got: u8) -> &'static [u8] {
    &NO_BULK[usize::from(got)]
}

const TEXT: &[u8; 44] = b"-ERR Protocol error: expected '$', got '?'\r\n";
const GOT: usize = 40;

static NO_BULK: [[u8; TEXT.len()]; 256] = {
    let mut texts = [*TEXT; 256];
    let mut byte = 0;
    while byte < texts.len() {
        // Servers put a blank in place of a line end.
        texts[byte][GOT] = if byte == b'\r' as usize || byte == b'\n' as usize {
            b' '
        } else {
            byte as u8
        };
        byte += 1;
    }
    texts
};

/// The outcome that an error of a server stands for, by its first word. `line` is the error without its `-`.
///
/// [`Outcome::ClientError`] is the request's own fault, and no other server would answer anything else. The
/// others say that this server cannot answer now; another one may.
pub fn outcome(line: &[u8]) -> Outcome {
    let word = line
        .split(|byte| matches!(byte, b' ' | b'\r' | b'\n'))
        .next()
        .unwrap_or_default();
    match word {
        b"LOADING" | b"MASTERDOWN" | b"CLUSTERDOWN" | b"BUSY" => Outcome::Busy,
        b"TRYAGAIN" => Outcome::TryAgain,
        // The server takes no writes now, or the proxy's own login is not accepted.
        b"OOM" | b"MISCONF" | b"NOREPLICAS" | b"READONLY" | b"NOAUTH" | b"WRONGPASS" => Outcome::RemoteError,
        _ => Outcome::ClientError,
    }
}

#[cfg(test)]
mod tests {
    use super::{no_bulk, outcome};
    use crate::message::Outcome;

    #[test]
    fn an_unexpected_byte_is_named_as_servers_name_it() {
        assert_eq!(no_bulk(b'G'), b"-ERR Protocol error: expected '$', got 'G'\r\n");
        assert_eq!(no_bulk(b'\n'), b"-ERR Protocol error: expected '$', got ' '\r\n");
    }

    #[test]
    fn the_first_word_says_whose_fault_an_error_is() {
        for (line, expected) in [
            ("ERR unknown command 'FOO'\r\n", Outcome::ClientError),
            ("WRONGTYPE Operation against a key\r\n", Outcome::ClientError),
            (
                "LOADING Redis is loading the dataset in memory\r\n",
                Outcome::Busy,
            ),
            ("MASTERDOWN Link with MASTER is down\r\n", Outcome::Busy),
            ("OOM command not allowed\r\n", Outcome::RemoteError),
            (
                "READONLY You can't write against a read only replica.\r\n",
                Outcome::RemoteError,
            ),
            ("TRYAGAIN Multiple keys request\r\n", Outcome::TryAgain),
            ("OOMPH\r\n", Outcome::ClientError),
            ("BUSY\r\n", Outcome::Busy),
            (
                "BUSYKEY Target key name already exists.\r\n",
                Outcome::ClientError,
            ),
            ("", Outcome::ClientError),
        ] {
            assert_eq!(outcome(line.as_bytes()), expected, "{line}");
        }
    }
}
