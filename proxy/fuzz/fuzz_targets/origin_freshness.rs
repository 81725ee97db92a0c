//! The fields of an origin's reply: any of them are read, and none of them makes a time longer than what they
//! say, or keeps what they forbid.
#![no_main]

use std::time::Duration;

use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use libfuzzer_sys::fuzz_target;
use proxima::near::freshness;

const NAMES: [&str; 7] = [
    "cache-control",
    "age",
    "date",
    "expires",
    "vary",
    "etag",
    "x-other",
];

fuzz_target!(|bytes: &[u8]| {
    let mut fields = HeaderMap::new();
    for line in bytes.split(|&byte| byte == b'\n') {
        let Some((&name, value)) = line.split_first() else {
            continue;
        };
        if let Ok(value) = HeaderValue::from_bytes(value) {
            let name = NAMES[usize::from(name) % NAMES.len()];
            fields.append(HeaderName::from_static(name), value);
        }
    }
    let now = Duration::from_secs(1_800_000_000);
    let terms = freshness(&fields, None, now, Duration::ZERO);
    // A reply that takes longer to come is fresh for less.
    let later = freshness(&fields, None, now, Duration::from_secs(5));
    assert_eq!(terms.is_some(), later.is_some());
    if let (Some(terms), Some(later)) = (&terms, &later) {
        assert_eq!(terms.limit.is_some(), later.limit.is_some());
        assert!(later.limit <= terms.limit);
        if let Some(validator) = &terms.validator {
            assert!(HeaderValue::from_bytes(&validator.etag).is_ok());
            let confirmed = freshness(&HeaderMap::new(), Some(validator), now, Duration::ZERO);
            assert!(confirmed.is_some_and(|confirmed| confirmed.is_strict == terms.is_strict));
        }
    }
    assert!(terms.is_none() || !fields.contains_key("vary"));
    for word in ["no-store", "private"] {
        let mut more = fields.clone();
        more.append("cache-control", HeaderValue::from_static(word));
        assert_eq!(freshness(&more, None, now, Duration::ZERO), None);
    }
    let mut more = fields.clone();
    more.append("cache-control", HeaderValue::from_static("no-cache"));
    if let Some(terms) = freshness(&more, None, now, Duration::ZERO) {
        assert!(terms.is_strict && terms.limit.is_some_and(|limit| limit.0 == 0));
    }
});
