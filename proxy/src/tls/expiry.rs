//! The end of a certificate's validity.
//!
//! The library checks that, and does not tell it. It stands at a fixed place of each certificate (RFC 5280):
//!
//! ```text
//!  Certificate { TBSCertificate { [0] version, serial, algorithm, issuer, Validity { from, until }, …
//! ```

use std::str;

use time::{Date, Month, PrimitiveDateTime, Time};

const SEQUENCE: u8 = 0x30;
const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// The end of a certificate, in seconds since 1970; `None` if these bytes are no certificate.
pub(crate) fn expiry(certificate: &[u8]) -> Option<i64> {
    let (_, mut body) = inside(certificate, SEQUENCE)?;
    body = inside(body, SEQUENCE)?.1;
    if body.first() == Some(&VERSION) {
        body = element(body)?.rest;
    }
    for _serial_algorithm_issuer in 0..3 {
        body = element(body)?.rest;
    }
    let (_, validity) = inside(body, SEQUENCE)?;
    let until = element(element(validity)?.rest)?;
    seconds(until.tag, until.content)
}

struct Element<'a> {
    tag: u8,
    content: &'a [u8],
    rest: &'a [u8],
}

/// The content of the first element, which must have this tag.
fn inside(bytes: &[u8], tag: u8) -> Option<(u8, &[u8])> {
    let first = element(bytes)?;
    (first.tag == tag).then_some((tag, first.content))
}

/// The first element: its tag, its length in one of two forms, and its content.
fn element(bytes: &[u8]) -> Option<Element<'_>> {
    let (&[tag, first], rest) = bytes.split_first_chunk::<2>()?;
    let (length, rest) = match first {
        0..0x80 => (usize::from(first), rest),
        _ => {
            let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            if digits.len() > 4 {
                return None;
            }
            let length = digits
                .iter()
                .fold(0, |length, &digit| length << 8 | usize::from(digit));
            (length, rest)
        }
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some(Element { tag, content, rest })
}

/// `YYMMDDHHMMSSZ` or `YYYYMMDDHHMMSSZ`.
fn seconds(tag: u8, text: &[u8]) -> Option<i64> {
    let text = str::from_utf8(text).ok()?.strip_suffix('Z')?;
    let two = |at: usize| text.get(at..at + 2)?.parse::<u8>().ok();
    let (year, at) = match tag {
        UTC_TIME => {
            let year = i32::from(two(0)?);
            (if year < 50 { 2000 + year } else { 1900 + year }, 2)
        }
        GENERALIZED_TIME => (text.get(..4)?.parse().ok()?, 4),
        _ => return None,
    };
    let date = Date::from_calendar_date(year, Month::try_from(two(at)?).ok()?, two(at + 2)?).ok()?;
    let time = Time::from_hms(two(at + 4)?, two(at + 6)?, two(at + 8)?).ok()?;
    Some(PrimitiveDateTime::new(date, time).assume_utc().unix_timestamp())
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    use super::*;

    #[test]
    fn end_of_a_certificate_is_found_in_both_forms_of_a_date() {
        for (year, month, day) in [(2030, 1, 31), (2049, 12, 31), (2050, 1, 1), (2199, 2, 28)] {
            let mut params = CertificateParams::new(vec!["a.test".to_owned()]).unwrap();
            params.not_after = date_time_ymd(year, month, day);
            let certificate = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
            let found = expiry(certificate.der());
            assert_eq!(found, Some(date_time_ymd(year, month, day).unix_timestamp()));
        }
    }

    #[test]
    fn no_cut_of_a_certificate_is_read_beyond_its_end() {
        let params = CertificateParams::new(vec!["a.test".to_owned()]).unwrap();
        let certificate = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
        let whole = certificate.der();
        for length in 0..whole.len() {
            assert_eq!(expiry(&whole[..length]), None, "{length}");
        }
        for tag in 0..=u8::MAX {
            expiry(&[tag; 40]);
            expiry(&[SEQUENCE, 0x84, tag, tag, tag, tag, 0]);
        }
    }
}
