//! Versions in tables of MySQL: each key has one, whose comment is its value. Writes are DDL, and reads SHOW.

use super::{
    answer::{Failure, Found, Parsed, excerpt, wrong},
    mysql::{self, Dialect},
};

/// Characters of a table's comment at most.
pub(super) const LONGEST_COMMENT: u32 = 2_048;

/// The beginning of the error that there is no such table.
const NO_TABLE: &str = "error 1146:";

/// The text that makes a key's table, unless there is one.
pub(super) fn fill(key: &str, value: &[u8]) -> Vec<u8> {
    let verb = format!("CREATE TABLE IF NOT EXISTS `{key}` (a INT) ENGINE=InnoDB");
    comment(&verb, value)
}

/// The text that writes a value.
pub(super) fn set(key: &str, value: &[u8]) -> Vec<u8> {
    comment(&format!("ALTER TABLE `{key}`"), value)
}

/// The text that reads a value.
pub(super) fn get(key: &str) -> Vec<u8> {
    format!("SHOW CREATE TABLE `{key}`").into_bytes()
}

/// The text that deletes a key.
pub(super) fn clear(key: &str) -> Vec<u8> {
    format!("DROP TABLE IF EXISTS `{key}`").into_bytes()
}

/// The reply to a read. The name of the table tells whether it is the reply to this one.
pub(super) fn parse(key: &str, reply: &[u8], dialect: Dialect) -> Parsed<Option<Found>> {
    let parsed = mysql::parse_row(reply, dialect, |values| {
        let [Some(name), Some(text)] = values else {
            return Err(wrong("no definition of a table", reply));
        };
        if !name.eq_ignore_ascii_case(key.as_bytes()) {
            let name = excerpt(name);
            return Err(Failure::Foreign(format!(
                "a request for {key} has the reply to {name}"
            )));
        }
        let value = value(text).ok_or_else(|| wrong("a table without a comment", text))?;
        Ok(Found {
            value: value.to_vec(),
            applied: None,
        })
    });
    match parsed {
        Some((length, Err(Failure::Refused(words)))) if words.starts_with(NO_TABLE) => {
            Some((length, Ok(None)))
        }
        other => other,
    }
}

/// The comment in the definition of a table. No value of a run has a quote.
fn value(text: &[u8]) -> Option<&[u8]> {
    const BEFORE: &[u8] = b" COMMENT='";
    let start = text.windows(BEFORE.len()).rposition(|part| part == BEFORE)? + BEFORE.len();
    text[start..].split(|&byte| byte == b'\'').next()
}

fn comment(verb: &str, value: &[u8]) -> Vec<u8> {
    [verb.as_bytes(), b" COMMENT='", value, b"'"].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: Dialect = Dialect {
        has_eof: true,
        prepared: None,
    };

    /// A result of two columns with this row, for a client that takes EOF packets.
    fn reply(name: &str, text: &str) -> Vec<u8> {
        let mut row = Vec::new();
        for value in [name, text] {
            row.push(value.len() as u8);
            row.extend_from_slice(value.as_bytes());
        }
        let head = b"\x01\0\0\x01\x02\x03\0\0\x02def\x03\0\0\x03def\x05\0\0\x04\xfe\0\0\x02\0";
        let end = b"\x05\0\0\x06\xfe\0\0\x02\0";
        [&head[..], &[row.len() as u8, 0, 0, 5], &row, end].concat()
    }

    #[test]
    fn the_comment_of_the_table_is_the_value() {
        const SHOWN: &str =
            "CREATE TABLE `k:1` (\n  `a` int(11) DEFAULT NULL\n) ENGINE=InnoDB COMMENT='k:1 7 ..'";
        let whole = reply("k:1", SHOWN);
        let found = Found {
            value: b"k:1 7 ..".to_vec(),
            applied: None,
        };
        for length in 0..whole.len() {
            assert_eq!(parse("k:1", &whole[..length], TEXT), None, "{length} bytes");
        }
        assert_eq!(parse("k:1", &whole, TEXT), Some((whole.len(), Ok(Some(found)))));
        let (_, other) = parse("k:2", &whole, TEXT).expect("it is whole");
        assert!(matches!(other, Err(Failure::Foreign(_))), "{other:?}");
        let (_, bare) = parse("k:1", &reply("k:1", "CREATE TABLE `k:1` (a INT)"), TEXT).expect("it is whole");
        assert!(matches!(bare, Err(Failure::Wrong(_))), "{bare:?}");
    }

    #[test]
    fn a_table_that_is_not_there_is_a_miss_and_another_error_a_refusal() {
        let error = |code: u16| {
            let [low, high] = code.to_le_bytes();
            [b"\x0e\0\0\x01\xff", &[low, high][..], b"#42S02words"].concat()
        };
        assert_eq!(parse("k", &error(1146), TEXT), Some((18, Ok(None))));
        let refused = Failure::Refused("error 1142: words".into());
        assert_eq!(parse("k", &error(1142), TEXT), Some((18, Err(refused))));
    }
}
