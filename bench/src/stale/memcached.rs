//! The words of memcached.

use super::answer::{Failure, Found, LONGEST_REPLY, Parsed, excerpt, wrong};

/// The request that stores a value for `ttl` seconds; 0: for ever.
pub(super) fn set(key: &str, ttl: u64, value: &[u8]) -> Vec<u8> {
    let head = format!("set {key} 0 {ttl} {}\r\n", value.len());
    [head.as_bytes(), value, b"\r\n"].concat()
}

/// The request for a value.
pub(super) fn get(key: &str) -> Vec<u8> {
    format!("get {key}\r\n").into_bytes()
}

/// Whether the server has read the whole request that it has refused in these words. After others (ERROR,
/// CLIENT_ERROR) the rest of it may be taken for the next one.
pub(super) fn is_in_step(words: &str) -> bool {
    words.starts_with("SERVER_ERROR") || words == "NOT_STORED"
}

/// The reply to a set.
pub(super) fn parse_stored(reply: &[u8]) -> Parsed<()> {
    let (line, length) = first_line(reply)?;
    let answer = if line == b"STORED" {
        Ok(())
    } else {
        Err(refusal(line))
    };
    Some((length, answer))
}

/// The reply to a get.
pub(super) fn parse_value(key: &str, reply: &[u8]) -> Parsed<Option<Found>> {
    let (line, length) = first_line(reply)?;
    if line == b"END" {
        return Some((length, Ok(None)));
    }
    let Some(words) = line.strip_prefix(b"VALUE ") else {
        return Some((length, Err(refusal(line))));
    };
    let mut words = words.split(|&byte| byte == b' ');
    let same_key = words.next() == Some(key.as_bytes());
    let size = words
        .nth(1)
        .and_then(|word| std::str::from_utf8(word).ok()?.parse::<usize>().ok())
        .filter(|&size| size <= LONGEST_REPLY);
    let (true, Some(size)) = (same_key, size) else {
        return Some((reply.len(), Err(wrong("no value of this key", line))));
    };
    let whole = length + size + b"\r\nEND\r\n".len();
    let (value, end) = reply.get(length..whole)?.split_at(size);
    let answer = if end == b"\r\nEND\r\n" {
        Ok(Some(Found {
            value: value.to_vec(),
            applied: None,
        }))
    } else {
        Err(wrong("the value does not end where its length says", end))
    };
    Some((whole, answer))
}

/// The first line, and its length with its end.
fn first_line(reply: &[u8]) -> Option<(&[u8], usize)> {
    let end = reply.windows(2).position(|pair| pair == b"\r\n")?;
    Some((&reply[..end], end + 2))
}

/// An error line that memcached and its proxies have, or else a wrong reply.
fn refusal(line: &[u8]) -> Failure {
    let known: [&[u8]; 4] = [b"SERVER_ERROR", b"CLIENT_ERROR", b"ERROR", b"NOT_STORED"];
    if known.iter().any(|word| line.starts_with(word)) {
        Failure::Refused(excerpt(line))
    } else {
        wrong("no reply to this request", line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_waits_for_its_last_byte() {
        let reply = b"VALUE k 0 5\r\nhello\r\nEND\r\n";
        for length in 0..reply.len() {
            assert_eq!(parse_value("k", &reply[..length]), None, "{length} bytes");
        }
        let found = Found {
            value: b"hello".to_vec(),
            applied: None,
        };
        assert_eq!(parse_value("k", reply), Some((reply.len(), Ok(Some(found)))));
        assert_eq!(parse_value("k", b"END\r\n"), Some((5, Ok(None))));
    }

    #[test]
    fn refusals_are_told_from_nonsense() {
        for line in [
            "SERVER_ERROR out of memory",
            "CLIENT_ERROR bad",
            "ERROR",
            "NOT_STORED",
        ] {
            let reply = format!("{line}\r\n");
            let refused = Failure::Refused(line.into());
            assert_eq!(
                parse_stored(reply.as_bytes()),
                Some((reply.len(), Err(refused.clone())))
            );
            assert_eq!(
                parse_value("k", reply.as_bytes()),
                Some((reply.len(), Err(refused)))
            );
        }
        for reply in [
            &b"STORED\r\n"[..],
            b"VALUE other 0 1\r\nx\r\nEND\r\n",
            b"VALUE k 0 1\r\nxy\r\nEND\r\n",
            b"VALUE k 0 99999999999999999999\r\n",
            b"VALUE k 0 9999999999\r\n",
            b"VALUE k\r\n",
        ] {
            let parsed = parse_value("k", reply);
            assert!(
                matches!(parsed, Some((_, Err(Failure::Wrong(_))))),
                "{}",
                reply.escape_ascii()
            );
        }
        assert!(matches!(
            parse_stored(b"END\r\n"),
            Some((5, Err(Failure::Wrong(_))))
        ));
    }
}
