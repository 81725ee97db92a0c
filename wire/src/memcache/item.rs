//! Items that the proxy itself reads at one server and stores at another, or takes apart.

use std::io::Write;

use super::{
    held::{head, words},
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
    /// Seconds until it expires; `None`: it never does, or the reply does not say.
    pub left: Option<u64>,
}

impl<'a> Item<'a> {
    /// Parses the reply to `get`, `gets`, `gat` or `gats` of one key. `None`: it has no value.
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
            left: None,
        })
    }

    /// Parses the reply to what [`read`] asks. `None`: there is no fresh value.
    pub fn read(reply: &'a [u8]) -> Option<Self> {
        let line = head(reply)?;
        let mut words = words(line);
        if words.next() != Some(b"VA") {
            return None;
        }
        let length = usize::try_from(digits(words.next()?)?).ok()?;
        let (mut flags, mut left, mut version) = (None, None, None);
        for word in words {
            match word {
                [b'f', number @ ..] => flags = digits(number),
                b"t-1" => left = Some(None),
                [b't', number @ ..] => left = Some(Some(digits(number).filter(|&left| left > 0)?)),
                [b'c', number @ ..] => version = digits(number),
                [b'W' | b'X' | b'Z', ..] => return None,
                _ => {}
            }
        }
        Some(Self {
            flags: u32::try_from(flags?).ok()?,
            value: reply.get(line.len()..)?.get(..length)?,
            version,
            left: left?,
        })
    }

    /// The expiry time for a server that gets the item now. `unix`: seconds since 1970.
    pub fn expiry(&self, unix: u64) -> i64 {
        match self.left {
            None => 0,
            // A longer span than this counts as a moment since 1970.
            Some(left) if left > LONGEST_TTL as u64 => unix.saturating_add(left).min(i32::MAX as u64) as i64,
            Some(left) => left as i64,
        }
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

/// The request for an item with its flags and the time that is left of it.
pub fn read(key: &[u8]) -> Vec<u8> {
    [b"mg ", key, b" v f t\r\n"].concat()
}

/// The request that only asks whether a server has the key.
pub fn probe(key: &[u8]) -> Vec<u8> {
    [b"mg ", key, b"\r\n"].concat()
}

/// The request of a command with nothing but a key: `get`, `gets`, `delete`.
pub fn of_key(command: &str, key: &[u8]) -> Vec<u8> {
    [command.as_bytes(), b" ", key, b"\r\n"].concat()
}

/// The request that stores this value: `command` is `set`, `add` and so on, or `cas` with a `version`.
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
    let _ = write!(out, " {flags} {expiry} {}", value.len());
    if let Some(version) = version {
        let _ = write!(out, " {version}");
    }
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
    out
}

/// The expiry time of a `gat` or `gats`, as it is written. `None`: the request is another one.
pub fn touch_expiry(request: &[u8]) -> Option<i64> {
    let mut words = words(head(request)?);
    match words.next()? {
        b"gat" | b"gats" => std::str::from_utf8(words.next()?).ok()?.parse().ok(),
        _ => None,
    }
}

/// What a text command that stores says: `set`, `add`, `replace`, `append`, `prepend`, `cas`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stored<'a> {
    /// The client's flags.
    pub flags: u32,
    /// The expiry time as it is written.
    pub expiry: i64,
    /// The value.
    pub value: &'a [u8],
    /// The version of `cas`.
    pub version: Option<u64>,
}

impl<'a> Stored<'a> {
    /// Parses a request that is complete. `None`: it is no text command that stores, or its numbers are not
    /// plain.
    pub fn of(request: &'a [u8]) -> Option<Self> {
        let line = head(request)?;
        let mut words = words(line);
        let command = words.next()?;
        if !matches!(
            command,
            b"set" | b"add" | b"replace" | b"append" | b"prepend" | b"cas"
        ) {
            return None;
        }
        let flags = u32::try_from(digits(words.nth(1)?)?).ok()?;
        let expiry = std::str::from_utf8(words.next()?).ok()?.parse().ok()?;
        let length = usize::try_from(digits(words.next()?)?).ok()?;
        Some(Self {
            flags,
            expiry,
            value: request.get(line.len()..)?.get(..length)?,
            version: match command {
                b"cas" => Some(digits(words.next()?)?),
                _ => None,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_read_from_replies() {
        let item = |flags, value, version, left| Item {
            flags,
            value,
            version,
            left,
        };
        for (reply, expected) in [
            (
                "VALUE k 5 2\r\nab\r\nEND\r\n",
                Some(item(5, &b"ab"[..], None, None)),
            ),
            ("VALUE k 0 0 7\r\n\r\nEND\r\n", Some(item(0, b"", Some(7), None))),
            ("END\r\n", None),
            ("SERVER_ERROR x\r\n", None),
            ("VALUE k 5 9\r\nab\r\n", None),
            ("", None),
        ] {
            assert_eq!(Item::of(reply.as_bytes()), expected, "{reply:?}");
        }
        for (reply, expected) in [
            ("VA 2 f5 t-1\r\nab\r\n", Some(item(5, &b"ab"[..], None, None))),
            (
                "VA 2 t60 f0 c9\r\nab\r\n",
                Some(item(0, b"ab", Some(9), Some(60))),
            ),
            ("VA 1 f0 t-1 W\r\na\r\n", None),
            ("VA 1 f0\r\na\r\n", None),
            ("EN\r\n", None),
        ] {
            assert_eq!(Item::read(reply.as_bytes()), expected, "{reply:?}");
        }
    }

    #[test]
    fn items_are_written_as_requests_and_replies() {
        let item = Item {
            flags: 3,
            value: b"ab",
            version: Some(7),
            left: Some(60),
        };
        let mut out = Vec::new();
        item.put(b"k", &mut out);
        assert_eq!(out, b"VALUE k 3 2 7\r\nab\r\nEND\r\n");
        assert_eq!(store("add", b"k", 3, -1, b"ab", None), b"add k 3 -1 2\r\nab\r\n");
        assert_eq!(store("cas", b"k", 3, 0, b"", Some(9)), b"cas k 3 0 0 9\r\n\r\n");
        assert_eq!(read(b"k"), b"mg k v f t\r\n");
        for (left, expiry) in [(None, 0), (Some(60), 60), (Some(5_000_000), 1_705_000_000)] {
            assert_eq!(Item { left, ..item }.expiry(1_700_000_000), expiry, "{left:?}");
        }
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
        let stored = |flags, expiry, value, version| Stored {
            flags,
            expiry,
            value,
            version,
        };
        for (request, expected) in [
            ("set k 5 60 2\r\nab\r\n", Some(stored(5, 60, &b"ab"[..], None))),
            ("add k 5 -1 2 noreply\r\nab\r\n", Some(stored(5, -1, b"ab", None))),
            ("cas k 0 0 0 9\r\n\r\n", Some(stored(0, 0, b"", Some(9)))),
            ("get k\r\n", None),
            ("ms k 2\r\nab\r\n", None),
            ("set k 5 60 9\r\nab\r\n", None),
        ] {
            assert_eq!(Stored::of(request.as_bytes()), expected, "{request:?}");
        }
    }
}
