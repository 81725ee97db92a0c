//! Versions in rows of MySQL: each key has one, which counts the writes that were applied to it.

use std::{
    sync::{
        LazyLock,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::UNIX_EPOCH,
};

use super::{
    answer::{Applied, Failure, Found, Parsed, excerpt, wrong},
    mysql::{self, Dialect},
};
use crate::mysql::request;

/// The statement that makes the table. What is counted is said in [`Applied`].
pub(super) const CREATE: &str = "CREATE TABLE IF NOT EXISTS stale (k VARBINARY(250) PRIMARY KEY, \
    v LONGBLOB NOT NULL, applied BIGINT UNSIGNED NOT NULL, again BIGINT UNSIGNED NOT NULL) ENGINE=InnoDB";

/// The statement that reads a row, to be prepared. The first text is the number of the request.
pub(super) const PREPARED_GET: &str = "SELECT v,applied,again,? FROM stale WHERE k=?";

/// The part of a write that counts it where there is a row. A value tells its version, so that a write that
/// finds its own was applied before. Assignments are done from left to right.
const COUNTING: &str = " ON DUPLICATE KEY UPDATE again=again+(v=VALUES(v)),v=VALUES(v),applied=applied+1";

/// The statement that writes a row, to be prepared.
pub(super) fn prepared_set() -> String {
    format!("INSERT INTO stale VALUES(?,?,1,0){COUNTING}")
}

/// A number that no other request has, be it of this run or of one beside it: every read asks for its own, so
/// that the reply to another one is known.
pub(super) fn number() -> u64 {
    static NEXT: LazyLock<AtomicU64> = LazyLock::new(|| {
        let now = UNIX_EPOCH.elapsed().map_or(0, |age| age.as_nanos());
        AtomicU64::new(now as u64)
    });
    NEXT.fetch_add(1, Relaxed)
}

/// The text that stores the first value of a key, unless there is one. Its count begins with it.
pub(super) fn fill(key: &str, value: &[u8]) -> Vec<u8> {
    insert("INSERT IGNORE INTO", key, value, "")
}

/// The request that writes a value.
pub(super) fn set(key: &str, value: &[u8], dialect: Dialect) -> Vec<u8> {
    match dialect.prepared {
        Some(prepared) => mysql::execute(prepared.set, &[key.as_bytes(), value]),
        None => mysql::query(&insert("INSERT INTO", key, value, COUNTING)),
    }
}

/// The request that reads a value.
pub(super) fn get(key: &str, number: u64, dialect: Dialect) -> Vec<u8> {
    match dialect.prepared {
        Some(prepared) => mysql::execute(prepared.get, &[number.to_string().as_bytes(), key.as_bytes()]),
        None => {
            let text = format!("SELECT v,applied,again,{number} FROM stale WHERE k='{key}'");
            mysql::query(text.as_bytes())
        }
    }
}

/// The text that deletes all rows with keys of this prefix, behind which there is a number. It touches no row
/// of another run, which may be under way.
pub(super) fn clear(prefix: &str) -> Vec<u8> {
    // A colon stands behind all digits.
    format!("DELETE FROM stale WHERE k>'{prefix}' AND k<'{prefix}:'").into_bytes()
}

/// The reply to the read with this number.
pub(super) fn parse(number: u64, reply: &[u8], dialect: Dialect) -> Parsed<Option<Found>> {
    mysql::parse_row(reply, dialect, |values| {
        let [Some(value), Some(writes), Some(again), Some(said)] = values else {
            return Err(wrong("no row of this table", reply));
        };
        if **said != *number.to_string().as_bytes() {
            let said = excerpt(said);
            return Err(Failure::Foreign(format!(
                "request {number} has the reply to {said}"
            )));
        }
        let (Some(writes), Some(again)) = (count(writes), count(again)) else {
            return Err(wrong("no counts", reply));
        };
        Ok(Found {
            value: value.to_vec(),
            applied: Some(Applied { writes, again }),
        })
    })
}

fn count(digits: &[u8]) -> Option<u64> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

fn insert(verb: &str, key: &str, value: &[u8], counting: &str) -> Vec<u8> {
    let mut text = format!("{verb} stale VALUES('").into_bytes();
    request::append_pair(key.as_bytes(), value, &mut text);
    text.extend_from_slice(b",1,0)");
    text.extend_from_slice(counting.as_bytes());
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mysql::Statements;

    const TEXT: Dialect = Dialect {
        has_eof: false,
        prepared: None,
    };
    const PREPARED: Dialect = Dialect {
        has_eof: false,
        prepared: Some(Statements { get: 3, set: 4 }),
    };
    /// What MariaDB 10.11 says before the rows: the value, two counts, and the number of the request.
    const COLUMNS: &[u8] = b"\x01\0\0\x01\x04\
        \x2f\0\0\x02\x03def\x0dproxima_bench\x05stale\x05stale\x01v\x01v\
        \x0c\x3f\0\xff\xff\xff\xff\xfc\x91\x10\0\0\0\
        \x3b\0\0\x03\x03def\x0dproxima_bench\x05stale\x05stale\x07applied\x07applied\
        \x0c\x3f\0\x14\0\0\0\x08\x21\x10\0\0\0\
        \x37\0\0\x04\x03def\x0dproxima_bench\x05stale\x05stale\x05again\x05again\
        \x0c\x3f\0\x14\0\0\0\x08\x21\x10\0\0\0\
        \x18\0\0\x05\x03def\0\0\0\x02no\0\x0c\x3f\0\x03\0\0\0\xfd\x81\0\0\0\0";
    const END: &[u8] = b"\x07\0\0\x07\xfe\0\0\x02\0\0\0";

    fn reply(row: &[u8]) -> Vec<u8> {
        let head = [row.len() as u8, 0, 0, 6];
        [COLUMNS, &head, row, END].concat()
    }

    /// The replies to request 123, as a text and prepared, with the dialects that they are in.
    fn replies() -> [(Vec<u8>, Dialect); 2] {
        [
            (reply(b"\x05hello\x017\x010\x03123"), TEXT),
            (
                reply(b"\0\0\x05hello\x07\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x03123"),
                PREPARED,
            ),
        ]
    }

    #[test]
    fn a_row_waits_for_its_last_byte_and_tells_what_was_applied() {
        let found = Found {
            value: b"hello".to_vec(),
            applied: Some(Applied { writes: 7, again: 0 }),
        };
        for (reply, dialect) in replies() {
            for length in 0..reply.len() {
                assert_eq!(parse(123, &reply[..length], dialect), None, "{length} bytes");
            }
            let whole = parse(123, &reply, dialect);
            assert_eq!(whole, Some((reply.len(), Ok(Some(found.clone())))));
        }
        let none = [COLUMNS, END].concat();
        assert_eq!(parse(123, &none, TEXT), Some((none.len(), Ok(None))));
    }

    #[test]
    fn the_reply_to_another_request_is_told_from_a_wrong_one() {
        for (reply, dialect) in replies() {
            let (_, other) = parse(122, &reply, dialect).expect("it is whole");
            assert!(matches!(other, Err(Failure::Foreign(_))), "{other:?}");
        }
        for bytes in [
            b"\x07\0\0\x01\0\x01\0\x02\0\0\0".to_vec(),
            reply(b"\x05hello\x017\x010"),
            reply(b"\x05hello\x017\x010\xfb"),
            reply(b"\x05hello\x01x\x010\x03123"),
            reply(b"\x7fhello\x017\x010\x03123"),
        ] {
            let (_, answer) = parse(123, &bytes, TEXT).expect("it is whole");
            assert!(matches!(answer, Err(Failure::Wrong(_))), "{answer:?}");
        }
    }

    #[test]
    fn no_changed_byte_makes_a_panic() {
        for (reply, dialect) in replies() {
            for place in 0..reply.len() {
                for mask in [1, 0x20, 0x80, 0xff] {
                    let mut bad = reply.clone();
                    bad[place] ^= mask;
                    let _ = parse(123, &bad, dialect);
                }
            }
        }
    }

    #[test]
    fn every_request_has_a_number_of_its_own() {
        let first = number();
        assert!(number() > first);
        let text = get("k1", 5, TEXT);
        assert!(text.ends_with(b"SELECT v,applied,again,5 FROM stale WHERE k='k1'"));
        let execution = get("k1", 5, PREPARED);
        assert!(
            execution.ends_with(b"\x015\x02k1"),
            "{}",
            execution.escape_ascii()
        );
    }
}
