//! Items that the proxy itself reads at one server and stores at another, or takes apart.

use std::io::Write;

use super::{
    held::{head, words},
    lease,
    number::{LONGEST_TTL, digits},
};

/// An item, as a reply shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item<'a> {
    /// The client's flags.
    pub flags: u32,
    /// The value.
    pub value: &'a [u8],
    /// The version, where the reply has it.
    pub version: Option<u64>,
}

impl<'a> Item<'a> {
    /// Parses the reply to `get`, `gets`, `gat` or `gats` of one key. `None` for a reply without a value.
    pub fn of(reply: &'a [u8]) -> Option<Self> {
        let line = head(reply)?;
        let mut words = words(line);
        if words.next() != Some(b"VALUE") {
            return None;
        }
        let (flags, length) = (digits(words.nth(1)?)?, digits(words.next()?)?);
        let value = reply.get(line.len()..)?.get(..usize::try_from(length).ok()?)?;
        Some(Self {
            flags: u32::try_from(flags).ok()?,
            value,
            version: words.next().and_then(digits),
        })
    }

    /// Appends the item as a reply for this key, with its version if it has one.
    pub fn put(&self, key: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(b"VALUE ");
        out.extend_from_slice(key);
        // Writing to a Vec cannot fail.
        let _ = write!(out, " {} {}", self.flags, self.value.len());
        if let Some(version) = self.version {
            let _ = write!(out, " {version}");
        }
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(self.value);
        out.extend_from_slice(b"\r\nEND\r\n");
    }
}

/// The expiry time of the value that a reply to `metaget` is about, or to [`ask_left`], for a server that
/// gets the value now. `None` if the reply has no expiry time, or the value has expired. `unix`: seconds
/// since 1970.
pub fn expiry(reply: &[u8], unix: u64) -> Option<i64> {
    let line = head(reply)?;
    let mut words = words(line);
    match words.next()? {
        b"META" => {
            words.find(|&word| word == b"exptime:")?;
            let moment = digits(words.next()?.strip_suffix(b";")?)?;
            match moment {
                moment if moment <= LONGEST_TTL as u64 => Some(moment as i64),
                moment => moment
                    .checked_sub(unix)
                    .filter(|&left| left > 0)
                    .map(|left| after(left, unix)),
            }
        }
        b"HD" => match words.find(|word| word.starts_with(b"t"))? {
            b"t-1" => Some(0),
            left => digits(&left[1..])
                .filter(|&left| left > 0)
                .map(|left| after(left, unix)),
        },
        _ => None,
    }
}

/// The expiry time of what lives so many seconds from now on: a longer span than this counts as a moment.
fn after(left: u64, unix: u64) -> i64 {
    match left <= LONGEST_TTL as u64 {
        true => left as i64,
        false => unix.saturating_add(left).min(i32::MAX as u64) as i64,
    }
}

/// The request to memcached for the time that is left of a value.
pub fn ask_left(key: &[u8]) -> Vec<u8> {
    [b"mg ", key, b" t\r\n"].concat()
}

/// The token of a miss that may be filled. `None`: the reply to `lease-get` is another one.
pub fn token(reply: &[u8]) -> Option<u64> {
    lease::token(reply).map(|(token, _)| token)
}

/// The token of a miss and the flags of the stale value that comes with it.
pub fn stale(reply: &[u8]) -> Option<(u64, u32)> {
    let token = token(reply)?;
    let flags = words(head(reply)?).nth(3).and_then(digits)?;
    Some((token, u32::try_from(flags).ok()?))
}

/// The reply to `lease-get` that is a miss with this token.
pub fn miss(key: &[u8], token: u64) -> Vec<u8> {
    let mut out = [b"LVALUE ", key].concat();
    // Writing to a Vec cannot fail.
    let _ = write!(out, " {token} 0 0\r\n\r\nEND\r\n");
    out
}

/// The request of a command with nothing but a key: `get`, `gets`, `delete`.
pub fn of_key(command: &str, key: &[u8]) -> Vec<u8> {
    [command.as_bytes(), b" ", key, b"\r\n"].concat()
}

/// The request that stores this value: `command` is `set`, `add` and so on, `cas` with a `version`, or
/// `lease-set` with its token in place of that.
pub fn store(
    command: &str,
    key: &[u8],
    flags: u32,
    expiry: i64,
    value: &[u8],
    version: Option<u64>,
) -> Vec<u8> {
    let mut out = Vec::with_capacity(key.len() + value.len() + 64);
    out.extend_from_slice(command.as_bytes());
    out.push(b' ');
    out.extend_from_slice(key);
    let length = value.len();
    let _ = match version {
        None => write!(out, " {flags} {expiry} {length}\r\n"),
        Some(token) if command == LEASE_SET => write!(out, " {token} {flags} {expiry} {length}\r\n"),
        Some(version) => write!(out, " {flags} {expiry} {length} {version}\r\n"),
    };
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
    out
}

const LEASE_SET: &str = "lease-set";

/// The expiry time of a `gat` or `gats`, as it is written. `None`: the request is another one.
pub fn touch_expiry(request: &[u8]) -> Option<i64> {
    let mut words = words(head(request)?);
    match words.next()? {
        b"gat" | b"gats" => std::str::from_utf8(words.next()?).ok()?.parse().ok(),
        _ => None,
    }
}

/// A text command that stores: `set`, `add`, `replace`, `append`, `prepend`, `cas`, `lease-set`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreRequest<'a> {
    /// The client's flags.
    pub flags: u32,
    /// The expiry time as it is written.
    pub expiry: i64,
    /// The value.
    pub value: &'a [u8],
    /// The version of `cas`, or the token of `lease-set`.
    pub version: Option<u64>,
}

impl<'a> StoreRequest<'a> {
    /// Parses a request that is complete. `None` if it is no text command that stores, or its numbers are not
    /// plain.
    pub fn of(request: &'a [u8]) -> Option<Self> {
        let line = head(request)?;
        let mut words = words(line);
        let command = words.next()?;
        if !matches!(
            command,
            b"set" | b"add" | b"replace" | b"append" | b"prepend" | b"cas" | b"lease-set"
        ) {
            return None;
        }
        words.next()?;
        let token = match command == LEASE_SET.as_bytes() {
            true => Some(digits(words.next()?)?),
            false => None,
        };
        let flags = u32::try_from(digits(words.next()?)?).ok()?;
        let expiry = std::str::from_utf8(words.next()?).ok()?.parse().ok()?;
        let length = usize::try_from(digits(words.next()?)?).ok()?;
        Some(Self {
            flags,
            expiry,
            value: request.get(line.len()..)?.get(..length)?,
            version: match command {
                b"cas" => Some(digits(words.next()?)?),
                _ => token,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_read_from_replies() {
        let item = |flags, value, version| Item {
            flags,
            value,
            version,
        };
        for (reply, expected) in [
            ("VALUE k 5 2\r\nab\r\nEND\r\n", Some(item(5, &b"ab"[..], None))),
            ("VALUE k 0 0 7\r\n\r\nEND\r\n", Some(item(0, b"", Some(7)))),
            ("END\r\n", None),
            ("SERVER_ERROR x\r\n", None),
            ("VALUE k 5 9\r\nab\r\n", None),
            ("", None),
        ] {
            assert_eq!(Item::of(reply.as_bytes()), expected, "{reply:?}");
        }
    }

    #[test]
    fn time_that_is_left_of_a_value_is_read() {
        let unix = 1_700_000_000;
        for (reply, expected) in [
            ("HD t60\r\n", Some(60)),
            ("HD t-1\r\n", Some(0)),
            ("HD t5000000\r\n", Some(1_705_000_000)),
            ("EN\r\n", None),
            (
                "META k age: 5; exptime: 0; from: 1.2.3.4; is_transient: 0\r\nEND\r\n",
                Some(0),
            ),
            (
                "META k age: unknown; exptime: 1700000060; from: x\r\nEND\r\n",
                Some(60),
            ),
            (
                "META k age: unknown; exptime: 1699999999; from: x\r\nEND\r\n",
                None,
            ),
            ("META k age: 5; exptime: -1; from: x\r\nEND\r\n", None),
            ("META k age: 5; exptime: 60; from: x\r\nEND\r\n", Some(60)),
            ("END\r\n", None),
            ("ERROR\r\n", None),
        ] {
            assert_eq!(expiry(reply.as_bytes(), unix), expected, "{reply:?}");
        }
    }

    #[test]
    fn items_are_written_as_requests_and_replies() {
        let item = Item {
            flags: 3,
            value: b"ab",
            version: Some(7),
        };
        let mut out = Vec::new();
        item.put(b"k", &mut out);
        assert_eq!(out, b"VALUE k 3 2 7\r\nab\r\nEND\r\n");
        assert_eq!(store("add", b"k", 3, -1, b"ab", None), b"add k 3 -1 2\r\nab\r\n");
        assert_eq!(store("cas", b"k", 3, 0, b"", Some(9)), b"cas k 3 0 0 9\r\n\r\n");
        let lease_set = store("lease-set", b"k", 3, 60, b"ab", Some(9));
        assert_eq!(lease_set, b"lease-set k 9 3 60 2\r\nab\r\n");
        assert_eq!(token(&miss(b"k", 9)), Some(9));
        assert_eq!(stale(b"LVALUE k 9 32 1\r\nx\r\nEND\r\n"), Some((9, 32)));
        assert_eq!(stale(b"VALUE k 9 32 1\r\nx\r\nEND\r\n"), None);
    }

    #[test]
    fn expiry_of_a_touch_is_read() {
        for (request, expected) in [
            ("gat 60 k\r\n", Some(60)),
            ("gats -1 k\r\n", Some(-1)),
            ("gets k\r\n", None),
            ("touch k 60\r\n", None),
        ] {
            assert_eq!(touch_expiry(request.as_bytes()), expected, "{request:?}");
        }
    }

    #[test]
    fn requests_that_store_are_read() {
        let stored = |flags, expiry, value, version| StoreRequest {
            flags,
            expiry,
            value,
            version,
        };
        for (request, expected) in [
            ("set k 5 60 2\r\nab\r\n", Some(stored(5, 60, &b"ab"[..], None))),
            ("add k 5 -1 2 noreply\r\nab\r\n", Some(stored(5, -1, b"ab", None))),
            ("cas k 0 0 0 9\r\n\r\n", Some(stored(0, 0, b"", Some(9)))),
            (
                "lease-set k 9 5 60 2\r\nab\r\n",
                Some(stored(5, 60, b"ab", Some(9))),
            ),
            ("get k\r\n", None),
            ("ms k 2\r\nab\r\n", None),
            ("set k 5 60 9\r\nab\r\n", None),
        ] {
            assert_eq!(StoreRequest::of(request.as_bytes()), expected, "{request:?}");
        }
    }
}
