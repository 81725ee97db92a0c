//! The fields of a reply that limit how long it may be kept.

use hyper::header::{CACHE_CONTROL, EXPIRES, HeaderMap, HeaderName};
use time::{Month, OffsetDateTime};

/// The largest number of seconds that is told apart from larger ones.
pub(super) const MOST_SECONDS: u64 = 1 << 31;

/// The fields of a reply about its freshness, for confirmations that do not repeat them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fields {
    /// The directives of `cache-control`. `None` if the reply has no such field.
    pub(super) control: Option<Control>,
    /// The seconds from its date to its expiry.
    pub(super) expires: Option<u64>,
}

/// The directives of `cache-control` that a shared cache obeys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Control {
    /// `no-store` or `private`.
    pub(super) is_forbidden: bool,
    /// `no-cache`.
    pub(super) is_confirmed: bool,
    /// `must-revalidate`, `proxy-revalidate`, or `s-maxage`, which says the same.
    pub(super) is_strict: bool,
    pub(super) max_age: Option<u64>,
    pub(super) s_maxage: Option<u64>,
}

pub(super) fn texts<'a>(fields: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a [u8]> {
    fields
        .get_all(name)
        .iter()
        .map(|value| value.as_bytes().trim_ascii())
}

/// The directives of all fields `cache-control` together. The shortest time of a repeated directive counts.
pub(super) fn control(fields: &HeaderMap) -> Option<Control> {
    let mut control = None;
    for text in texts(fields, &CACHE_CONTROL) {
        let control = control.get_or_insert_with(Control::default);
        for (name, value) in Directives(text) {
            let name = name.to_ascii_lowercase();
            // A time that cannot be read is over.
            let shorter = |known: Option<u64>| {
                let time = value.and_then(seconds).unwrap_or(0);
                Some(known.map_or(time, |known| known.min(time)))
            };
            match &*name {
                b"no-store" | b"private" => control.is_forbidden = true,
                b"no-cache" => control.is_confirmed = true,
                b"must-revalidate" | b"proxy-revalidate" => control.is_strict = true,
                b"max-age" => control.max_age = shorter(control.max_age),
                b"s-maxage" => {
                    control.is_strict = true;
                    control.s_maxage = shorter(control.s_maxage);
                }
                _ => {}
            }
        }
    }
    control
}

/// The seconds from the date to the expiry; 0 where it cannot be read.
pub(super) fn expires(fields: &HeaderMap, date_of: u64) -> Option<u64> {
    let times = texts(fields, &EXPIRES);
    times
        .map(|time| date(time).map_or(0, |expiry| expiry.saturating_sub(date_of)))
        .min()
}

/// The directives of a list, each with its argument. Commas and quotes within a quoted argument belong to it.
struct Directives<'a>(&'a [u8]);

impl<'a> Iterator for Directives<'a> {
    type Item = (&'a [u8], Option<&'a [u8]>);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if self.0.is_empty() {
                return None;
            }
            let mut is_quoted = false;
            let mut is_escaped = false;
            let end = self.0.iter().position(|&byte| {
                match (is_quoted, byte) {
                    _ if is_escaped => is_escaped = false,
                    (true, b'\\') => is_escaped = true,
                    (_, b'"') => is_quoted = !is_quoted,
                    (false, b',') => return true,
                    _ => {}
                }
                false
            });
            let end = end.unwrap_or(self.0.len());
            let directive = self.0[..end].trim_ascii();
            self.0 = self.0.get(end + 1..).unwrap_or_default();
            if directive.is_empty() {
                continue;
            }
            let Some(at) = directive.iter().position(|&byte| byte == b'=') else {
                return Some((directive, None));
            };
            let value = directive[at + 1..].trim_ascii();
            let bare = value
                .strip_prefix(b"\"")
                .and_then(|value| value.strip_suffix(b"\""));
            return Some((directive[..at].trim_ascii(), Some(bare.unwrap_or(value))));
        }
    }
}

/// Seconds as fields write them.
pub(super) fn seconds(text: &[u8]) -> Option<u64> {
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let more = |sum: u64, digit: &u8| (sum * 10 + u64::from(digit - b'0')).min(MOST_SECONDS);
    Some(text.iter().fold(0, more))
}

/// A date in one of HTTP's three forms, in seconds since 1970.
pub(super) fn date(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?;
    let words: Vec<&str> = text
        .split([' ', ',', '-'])
        .filter(|word| !word.is_empty())
        .collect();
    let (day, month, year, clock) = match words[..] {
        // Sun, 06 Nov 1994 08:49:37 GMT; Sunday, 06-Nov-94 08:49:37 GMT
        [_, day, month, year, clock, "GMT"] => (day, month, year, clock),
        // Sun Nov  6 08:49:37 1994
        [_, month, day, clock, year] => (day, month, year, clock),
        _ => return None,
    };
    let number = |text: &str| seconds(text.as_bytes()).and_then(|number| u8::try_from(number).ok());
    let names = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let month = names.iter().position(|name| *name == month)? as u8 + 1;
    let year = match (year.len(), seconds(year.as_bytes())?) {
        // Two digits mean the century in which the date is not far ahead.
        (2, year @ ..=69) => 2000 + year,
        (2, year) => 1900 + year,
        (4, year) => year,
        _ => return None,
    };
    let mut parts = clock.split(':').map(number);
    let (hour, minute, second) = (parts.next()??, parts.next()??, parts.next()??);
    if parts.next().is_some() {
        return None;
    }
    let month = Month::try_from(month).ok()?;
    let date = time::Date::from_calendar_date(year as i32, month, number(day)?).ok()?;
    // A leap second is the one after it.
    let time = time::Time::from_hms(hour, minute, second.min(59)).ok()?;
    let at = OffsetDateTime::new_utc(date, time).unix_timestamp();
    u64::try_from(at).ok()
}

#[cfg(test)]
mod tests {
    use super::date;

    /// Sun, 06 Nov 1994 08:49:37 GMT.
    const NOW: u64 = 784_111_777;

    #[test]
    fn dates_in_three_forms() {
        for (text, expected) in [
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(NOW)),
            ("Sunday, 06-Nov-94 08:49:37 GMT", Some(NOW)),
            ("Sun Nov  6 08:49:37 1994", Some(NOW)),
            ("Sun, 06 Nov 1994 08:49:60 GMT", Some(NOW + 22)),
            ("Thu, 01 Jan 1970 00:00:00 GMT", Some(0)),
            ("Wed, 31 Dec 1969 23:59:59 GMT", None),
            ("Sun, 32 Nov 1994 08:49:37 GMT", None),
            ("Sun, 06 Nov 1994 24:49:37 GMT", None),
            ("Sun, 06 Nov 1994 08:49:37", None),
            ("Sun, 06 Nov 1994 08:49:37 CET", None),
            ("0", None),
            ("", None),
        ] {
            assert_eq!(date(text.as_bytes()), expected, "{text}");
        }
    }
}
