//! Parses replies.

use super::held::ReadResult;

/// Bytes of a reply line of a well-behaved client at most.
const LONGEST_LINE: usize = 2_048;

/// A parsed reply.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Reply<'a> {
    Stored,
    Deleted,
    NotFound,
    Number(u64),
    /// Keys and values, up to `END`.
    Values(Vec<(&'a [u8], &'a [u8])>),
    /// A refusal with its words.
    Refused(String),
    /// Bytes that do not answer the request.
    Wrong(String),
}

/// The expected kind of reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Set,
    Get,
    Delete,
    Count,
}

/// The reply at the beginning of `bytes` and its length; nothing while more bytes are needed.
pub(super) fn parse(kind: Kind, bytes: &[u8]) -> Option<(usize, Reply<'_>)> {
    let mut values = Vec::new();
    let mut at = 0;
    loop {
        let rest = &bytes[at..];
        let Some(end) = line_end(rest) else {
            return (rest.len() > LONGEST_LINE).then(|| (at, wrong("a line without an end")));
        };
        let line = &rest[..end];
        let after = at + end + 2;
        if line.starts_with(b"SERVER_ERROR") {
            return Some((after, Reply::Refused(excerpt(line))));
        }
        let reply = match (kind, line) {
            (Kind::Set, b"STORED") => Reply::Stored,
            (Kind::Delete, b"DELETED") => Reply::Deleted,
            (Kind::Delete | Kind::Count, b"NOT_FOUND") => Reply::NotFound,
            (Kind::Get, b"END") => Reply::Values(values),
            (Kind::Get, _) if line.starts_with(b"VALUE ") => {
                let Some((key, size)) = head(line) else {
                    return Some((after, wrong("no head of a value")));
                };
                // More than the data and its end would be another reply.
                let data = bytes.get(after..after + size + 2)?;
                if !data.ends_with(b"\r\n") {
                    return Some((after, wrong("a value that does not end where its length says")));
                }
                values.push((key, &data[..size]));
                at = after + size + 2;
                continue;
            }
            (Kind::Count, _) => match number(line) {
                Some(number) => Reply::Number(number),
                None => wrong("no number"),
            },
            _ => wrong("no reply to this request"),
        };
        return Some((after, reply));
    }
}

fn line_end(bytes: &[u8]) -> Option<usize> {
    bytes
        .windows(2)
        .take(LONGEST_LINE)
        .position(|pair| pair == b"\r\n")
}

/// The key and size of a `VALUE` line.
fn head(line: &[u8]) -> Option<(&[u8], usize)> {
    let mut words = line.split(|&byte| byte == b' ').skip(1);
    let key = words.next()?;
    let size = number(words.nth(1)?)?;
    // memcached's own limit: no value of a well-behaved client is larger.
    (words.next().is_none() && size <= 1 << 20).then_some((key, size as usize))
}

fn number(word: &[u8]) -> Option<u64> {
    // After a decrement memcached pads a number with blanks.
    std::str::from_utf8(word).ok()?.trim_end().parse().ok()
}

fn wrong(what: &str) -> Reply<'static> {
    Reply::Wrong(what.to_owned())
}

/// The beginning of bytes, for messages.
pub(crate) fn excerpt(bytes: &[u8]) -> String {
    let shown = bytes[..bytes.len().min(200)].escape_ascii().to_string();
    match bytes.len() {
        0..=200 => shown,
        more => format!("{shown}… ({more} bytes)"),
    }
}

impl ReadResult {
    /// The worse of two.
    pub(super) fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Wrong(words), _) | (_, Self::Wrong(words)) => Self::Wrong(words),
            (Self::Gone, _) | (_, Self::Gone) => Self::Gone,
            (Self::AsWritten, Self::AsWritten) => Self::AsWritten,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_of_several_values_waits_for_its_last_byte() {
        let bytes = b"VALUE a 0 5\r\nhello\r\nVALUE b 0 0\r\n\r\nEND\r\n";
        for length in 0..bytes.len() {
            assert_eq!(parse(Kind::Get, &bytes[..length]), None, "{length} bytes");
        }
        let values = vec![(&b"a"[..], &b"hello"[..]), (b"b", b"")];
        assert_eq!(
            parse(Kind::Get, bytes),
            Some((bytes.len(), Reply::Values(values)))
        );
    }

    #[test]
    fn only_what_answers_the_request_is_right() {
        let rows = [
            (Kind::Set, "END"),
            (Kind::Set, "NOT_STORED"),
            (Kind::Set, "ERROR"),
            (Kind::Get, "STORED"),
            (Kind::Get, "VALUE a 0"),
            (Kind::Get, "VALUE a 0 99999999999999999999"),
            (Kind::Get, "VALUE a 0 1 2"),
            (Kind::Delete, "STORED"),
            (Kind::Count, "DELETED"),
            (Kind::Count, "CLIENT_ERROR bad"),
        ];
        let taken: Vec<_> = rows
            .into_iter()
            .filter(|&(kind, line)| {
                let line = format!("{line}\r\n");
                let parsed = parse(kind, line.as_bytes());
                !matches!(parsed, Some((_, Reply::Wrong(_))))
            })
            .collect();
        assert!(taken.is_empty(), "taken for right: {taken:?}");
        assert_eq!(
            parse(Kind::Set, b"SERVER_ERROR no\r\n"),
            Some((17, Reply::Refused("SERVER_ERROR no".into())))
        );
        assert_eq!(parse(Kind::Count, b"9 \r\n"), Some((4, Reply::Number(9))));
        assert!(matches!(
            parse(Kind::Get, &[b'x'; 4_096]),
            Some((0, Reply::Wrong(_)))
        ));
    }
}
