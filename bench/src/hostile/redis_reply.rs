//! Parses the replies to a well-behaved client.

use super::reply::{Kind, Reply, excerpt};
use crate::redis::reply::line;

/// The largest value of a well-behaved client is smaller.
const LARGEST: usize = 1 << 20;

/// The reply to a request for `keys` at the beginning of `bytes` and its length; nothing while more bytes are
/// needed.
pub(crate) fn parse<'a>(kind: Kind, keys: &'a [String], bytes: &'a [u8]) -> Option<(usize, Reply<'a>)> {
    let first = match line(bytes)? {
        Ok(first) => first,
        Err(_) => return Some((0, wrong("a line without an end"))),
    };
    let after = first.len() + 2;
    let reply = match (kind, first) {
        (_, [b'-', words @ ..]) => Reply::Refused(excerpt(words)),
        (Kind::Set, b"+OK") => Reply::Stored,
        (Kind::Delete, b":1") => Reply::Deleted,
        (Kind::Delete, b":0") => Reply::NotFound,
        (Kind::Count, [b':', digits @ ..]) => match number(digits) {
            Some(number) => Reply::Number(number),
            None => wrong("no number"),
        },
        (Kind::Get, _) if keys.len() == 1 => return values(keys, bytes, 0),
        (Kind::Get, _) if first == format!("*{}", keys.len()).as_bytes() => {
            return values(keys, bytes, after);
        }
        _ => wrong("no reply to this request"),
    };
    Some((after, reply))
}

/// The values that begin at `at`, one for each key.
fn values<'a>(keys: &'a [String], bytes: &'a [u8], mut at: usize) -> Option<(usize, Reply<'a>)> {
    let mut values = Vec::new();
    for key in keys {
        let Ok(head) = line(&bytes[at..])? else {
            return Some((at, wrong("a line without an end")));
        };
        at += head.len() + 2;
        if head == b"$-1" {
            continue;
        }
        let size = head.strip_prefix(b"$").and_then(number);
        let Some(size) = size.map(|size| size as usize).filter(|size| *size <= LARGEST) else {
            return Some((at, wrong("no head of a value")));
        };
        let data = bytes.get(at..at + size + 2)?;
        if !data.ends_with(b"\r\n") {
            return Some((at, wrong("a value that does not end where its length says")));
        }
        values.push((key.as_bytes(), &data[..size]));
        at += size + 2;
    }
    Some((at, Reply::Values(values)))
}

fn number(digits: &[u8]) -> Option<u64> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

fn wrong(what: &str) -> Reply<'static> {
    Reply::Wrong(what.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(count: usize) -> Vec<String> {
        (0..count).map(|number| format!("k{number}")).collect()
    }

    #[test]
    fn a_list_of_values_waits_for_its_last_byte_and_a_missing_one_has_no_key() {
        let (keys, bytes) = (keys(3), b"*3\r\n$5\r\nhello\r\n$-1\r\n$0\r\n\r\n");
        for length in 0..bytes.len() {
            assert_eq!(parse(Kind::Get, &keys, &bytes[..length]), None, "{length} bytes");
        }
        let values = vec![(&b"k0"[..], &b"hello"[..]), (b"k2", b"")];
        assert_eq!(
            parse(Kind::Get, &keys, bytes),
            Some((bytes.len(), Reply::Values(values)))
        );
    }

    #[test]
    fn only_what_answers_the_request_is_right() {
        let rows = [
            (Kind::Set, 1, "+QUEUED"),
            (Kind::Set, 1, ":1"),
            (Kind::Get, 1, "+OK"),
            (Kind::Get, 1, "*1"),
            (Kind::Get, 1, "$99999999999999999999"),
            (Kind::Get, 2, "$-1"),
            (Kind::Get, 2, "*3"),
            (Kind::Delete, 1, ":2"),
            (Kind::Count, 1, ":one"),
            (Kind::Count, 1, "+OK"),
        ];
        let taken: Vec<_> = rows
            .into_iter()
            .filter(|&(kind, count, line)| {
                let (keys, line) = (keys(count), format!("{line}\r\n"));
                let parsed = parse(kind, &keys, line.as_bytes());
                !matches!(parsed, Some((_, Reply::Wrong(_))))
            })
            .collect();
        assert!(taken.is_empty(), "taken for right: {taken:?}");
        assert_eq!(
            parse(Kind::Set, &keys(1), b"-ERR no\r\n"),
            Some((9, Reply::Refused("ERR no".into())))
        );
        assert_eq!(
            parse(Kind::Count, &keys(1), b":9\r\n"),
            Some((4, Reply::Number(9)))
        );
    }
}
