//! How long an origin's reply may be kept, by its fields: RFC 9111, as a shared cache reads them.

use std::{sync::Arc, time::Duration};

use hyper::header::{AGE, DATE, ETAG, HeaderMap, VARY};

use super::{
    Terms, Validator,
    fields::{Fields, MOST_SECONDS, control, date, expires, seconds, texts},
};
use crate::micros::Micros;

/// The longest entity tag that is kept, in bytes.
const LONGEST_ETAG: usize = 1024;

/// The terms on which a reply with these fields may be kept. `None` if it may not be kept. `before`: what it
/// confirms. `now`: the present since 1970; `took`: the time that the reply has taken to come.
pub fn freshness(
    fields: &HeaderMap,
    before: Option<&Validator>,
    now: Duration,
    took: Duration,
) -> Option<Terms> {
    if fields.contains_key(VARY) {
        return None;
    }
    let date = texts(fields, &DATE).next().and_then(date);
    let known = before.map(|before| before.fields).unwrap_or_default();
    let fields_now = Fields {
        control: control(fields).or(known.control),
        expires: expires(fields, date.unwrap_or(now.as_secs())).or(known.expires),
    };
    let control = fields_now.control.unwrap_or_default();
    if control.is_forbidden {
        return None;
    }
    let lifetime = control.s_maxage.or(control.max_age).or(fields_now.expires);
    let etag = match texts(fields, &ETAG).next() {
        None => before.map(|before| before.etag.clone()),
        Some(tag) => is_etag(tag).then(|| tag.into()),
    };
    let limit = match (control.is_confirmed, lifetime) {
        (true, _) => Some(Micros::ZERO),
        (false, None) => None,
        (false, Some(lifetime)) => {
            let apparent = date.map_or(0, |date| now.as_secs().saturating_sub(date));
            let told = texts(fields, &AGE)
                .map(|age| seconds(age).unwrap_or(MOST_SECONDS))
                .max();
            let told = Duration::from_secs(told.unwrap_or(0)) + took;
            let age = told.max(Duration::from_secs(apparent));
            Some(Duration::from_secs(lifetime).saturating_sub(age).into())
        }
    };
    Some(Terms {
        limit,
        is_strict: control.is_strict || control.is_confirmed,
        validator: etag.map(|etag| {
            Arc::new(Validator {
                etag,
                fields: fields_now,
            })
        }),
        is_error: false,
    })
}

/// Is this an entity tag that can be sent back?
fn is_etag(text: &[u8]) -> bool {
    let tag = text.strip_prefix(b"W/").unwrap_or(text);
    let inner = tag.strip_prefix(b"\"").and_then(|tag| tag.strip_suffix(b"\""));
    let is_in_tag = |byte: &u8| matches!(byte, b'!' | b'#'..=b'~' | 0x80..);
    inner.is_some_and(|inner| inner.iter().all(is_in_tag)) && text.len() <= LONGEST_ETAG
}

/// Are these two the same version, weakly compared?
fn is_same_etag(one: &[u8], other: &[u8]) -> bool {
    let opaque = |tag: &[u8]| tag.strip_prefix(b"W/").unwrap_or(tag).to_owned();
    opaque(one) == opaque(other)
}

impl Validator {
    /// May a reply with these fields confirm this version? One that names another version may not.
    pub fn is_confirmed_by(&self, fields: &HeaderMap) -> bool {
        texts(fields, &ETAG).all(|tag| is_same_etag(tag, &self.etag))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use hyper::header::{HeaderMap, HeaderName, HeaderValue};

    use super::{Terms, Validator, freshness, is_same_etag};
    use crate::micros::Micros;

    /// Sun, 06 Nov 1994 08:49:37 GMT.
    const NOW: u64 = 784_111_777;

    fn map(fields: &str) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in fields.lines().filter_map(|line| line.split_once(": ")) {
            let name = HeaderName::from_bytes(name.trim().as_bytes()).unwrap();
            map.append(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        map
    }

    fn terms(fields: &str, before: Option<&Validator>) -> Option<Terms> {
        freshness(&map(fields), before, Duration::from_secs(NOW), Duration::ZERO)
    }

    #[test]
    fn fields_are_read_as_a_shared_cache_does() {
        const ANY: Option<(Option<u64>, bool)> = Some((None, false));
        let for_secs = |secs, is_strict| Some((Some(secs), is_strict));
        for (fields, expected) in [
            ("", ANY),
            ("cache-control: public", ANY),
            ("cache-control: max-age=60", for_secs(60, false)),
            ("cache-control: Max-Age = 60", for_secs(60, false)),
            ("cache-control: max-age=\"60\"", for_secs(60, false)),
            ("cache-control: max-age=60, s-maxage=10", for_secs(10, true)),
            ("cache-control: s-maxage=100, max-age=6", for_secs(100, true)),
            ("cache-control: max-age=60\nage: 20", for_secs(40, false)),
            ("cache-control: max-age=60\nage: 90", for_secs(0, false)),
            ("cache-control: max-age=60\nage: x", for_secs(0, false)),
            ("cache-control: max-age=60\nage: 5\nage: 50", for_secs(10, false)),
            (
                "cache-control: max-age=60\ndate: Sun, 06 Nov 1994 08:49:27 GMT",
                for_secs(50, false),
            ),
            (
                "cache-control: max-age=60\ndate: Sun, 06 Nov 1994 09:49:27 GMT",
                for_secs(60, false),
            ),
            (
                "cache-control: max-age=60\ncache-control: max-age=5",
                for_secs(5, false),
            ),
            ("cache-control: max-age=60, max-age=x", for_secs(0, false)),
            ("cache-control: max-age=-1", for_secs(0, false)),
            ("cache-control: max-age", for_secs(0, false)),
            (
                "cache-control: max-age=99999999999999999999999",
                for_secs(1 << 31, false),
            ),
            ("cache-control: must-revalidate", Some((None, true))),
            ("cache-control: max-age=5,, proxy-revalidate", for_secs(5, true)),
            ("cache-control: no-cache", for_secs(0, true)),
            (
                "cache-control: no-cache=\"a, no-store\", max-age=9",
                for_secs(0, true),
            ),
            ("cache-control: x=\"no-store\", y=\"a\\\"b, private\"", ANY),
            ("cache-control: x=\"no-store", ANY),
            ("cache-control: no-store", None),
            ("cache-control: max-age=60\ncache-control: NO-STORE", None),
            ("cache-control: private", None),
            ("cache-control: private=\"a\", max-age=1", None),
            ("vary: accept", None),
            ("vary: *", None),
            ("vary: ", None),
            ("pragma: no-cache", ANY),
            ("expires: Sun, 06 Nov 1994 08:49:47 GMT", for_secs(10, false)),
            (
                "expires: Sun, 06 Nov 1994 08:49:47 GMT\ncache-control: max-age=3",
                for_secs(3, false),
            ),
            (
                "date: Sun, 06 Nov 1994 08:49:27 GMT\nexpires: Sun, 06 Nov 1994 08:49:47 GMT",
                for_secs(10, false),
            ),
            ("expires: 0", for_secs(0, false)),
            ("expires: Sun, 06 Nov 1993 08:49:47 GMT", for_secs(0, false)),
            (
                "expires: Sun, 06 Nov 1994 08:49:47 GMT\nexpires: Sun, 06 Nov 1994 08:49:38 GMT",
                for_secs(1, false),
            ),
        ] {
            let found = terms(fields, None);
            let found = found.map(|terms| (terms.limit.map(|limit| limit.0 / 1_000_000), terms.is_strict));
            assert_eq!(found, expected, "{fields:?}");
        }
    }

    #[test]
    fn the_time_that_a_reply_takes_is_part_of_its_age() {
        let fields = map("cache-control: max-age=60\nage: 10");
        let took = Duration::from_millis(1500);
        let terms = freshness(&fields, None, Duration::from_secs(NOW), took).unwrap();
        assert_eq!(terms.limit, Some(Micros(48_500_000)));
    }

    #[test]
    fn a_confirmation_takes_over_what_it_does_not_repeat() {
        let first = terms("etag: \"a\"\ncache-control: max-age=9, must-revalidate", None).unwrap();
        let before = first.validator.as_deref().unwrap();
        assert_eq!(&*before.etag, b"\"a\"");
        let limit = |terms: &Terms| terms.limit.map(|limit| limit.0 / 1_000_000);
        let again = terms("age: 4", Some(before)).unwrap();
        assert_eq!((limit(&again), again.is_strict), (Some(5), true));
        assert_eq!(&*again.validator.unwrap().etag, b"\"a\"");
        let again = terms("cache-control: max-age=3", Some(before)).unwrap();
        assert_eq!((limit(&again), again.is_strict), (Some(3), false));
        assert_eq!(terms("vary: a", Some(before)), None);
        assert_eq!(terms("cache-control: no-store", Some(before)), None);
        assert!(before.is_confirmed_by(&map("")));
        assert!(before.is_confirmed_by(&map("etag: W/\"a\"")));
        assert!(!before.is_confirmed_by(&map("etag: \"b\"")));
    }

    #[test]
    fn what_is_no_entity_tag_is_not_sent_back() {
        let long = format!("etag: \"{}\"", "x".repeat(2000));
        for (fields, is_kept) in [
            ("etag: \"a\"", true),
            ("etag: W/\"a\"", true),
            ("etag: \"\"", true),
            ("etag: a", false),
            ("etag: \"a\", \"b\"", false),
            ("etag: *", false),
            (&*long, false),
            ("", false),
        ] {
            let terms = terms(fields, None).unwrap();
            assert_eq!(terms.validator.is_some(), is_kept, "{fields:?}");
        }
        assert!(is_same_etag(b"W/\"a\"", b"\"a\""));
        assert!(!is_same_etag(b"\"a\"", b"\"b\""));
    }
}
