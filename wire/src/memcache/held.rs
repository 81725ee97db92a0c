//! A value with its flags and expiry time, as `mg … v f t` returns it.

use super::line::{self, Words};
use super::number::{self, LONGEST_TTL, digits};
use std::io::Write;

/// A value as a server holds it.
pub(super) struct HeldValue<'a> {
    value: &'a [u8],
    flags: u64,
    /// Seconds until it expires. `None`: it never does.
    seconds: Option<u64>,
}

impl<'a> HeldValue<'a> {
    /// Parses `VA LENGTH fFLAGS tSECONDS` and the value. `None` for any other reply, such as a stale value.
    pub(super) fn of(reply: &'a [u8]) -> Option<Self> {
        let line = head(reply)?;
        let rest = line::text(line).strip_prefix(b"VA ")?;
        let (length, _) = number::leading(rest)?;
        let value = reply.get(line.len()..)?.strip_suffix(b"\r\n")?;
        let (mut flags, mut seconds) = (None, None);
        for word in words(line).skip(2) {
            match word {
                [b'f', number @ ..] => flags = digits(number),
                b"t-1" => seconds = Some(None),
                [b't', number @ ..] => seconds = Some(Some(digits(number).filter(|&left| left > 0)?)),
                [b'W' | b'X' | b'Z', ..] => return None,
                _ => {}
            }
        }
        let whole = value.len() as u64 == length;
        whole.then_some(Self {
            value,
            flags: flags?,
            seconds: seconds?,
        })
    }

    /// Appends the rest of a `ms` behind its key: length, `flags` of the request, those of the value, expiry
    /// and value. `unix` is the time in seconds since 1970.
    pub(super) fn put(&self, flags: &[u8], unix: u64, out: &mut Vec<u8>) {
        // Writing to a Vec cannot fail.
        let _ = write!(out, " {}", self.value.len());
        out.extend_from_slice(flags);
        let _ = write!(out, " F{}", self.flags);
        if let Some(seconds) = self.seconds {
            // Times have 32 bits, and a longer span than this counts as a moment since 1970.
            let is_span = seconds <= LONGEST_TTL as u64;
            let time = if is_span {
                seconds
            } else {
                unix.saturating_add(seconds)
            };
            let _ = write!(out, " T{}", time.min(i32::MAX as u64));
        }
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(self.value);
        out.extend_from_slice(b"\r\n");
    }
}

/// The first line of a reply, with its end.
pub(super) fn head(reply: &[u8]) -> Option<&[u8]> {
    memchr::memchr(b'\n', reply).map(|end| &reply[..=end])
}

/// The words of a line.
pub(super) fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    let text = line::text(line);
    Words::from(text, 0).map(|word| word.of(text))
}
