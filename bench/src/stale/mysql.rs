//! The words of MySQL: each key has a row, in the table of a load.

use proxima_wire::mysql::ErrPacket;

use super::answer::{Failure, Parsed, excerpt, wrong};
use crate::mysql::{packet, request, result_set::COLUMNS};

/// The statement that stores a value.
pub(super) fn set(key: &str, value: &[u8]) -> Vec<u8> {
    let mut request = Vec::new();
    request::append_replace(key.as_bytes(), value, &mut request);
    request
}

/// The statement that reads a value.
pub(super) fn get(key: &str) -> Vec<u8> {
    let mut request = Vec::new();
    request::append_get(key.as_bytes(), &mut request);
    request
}

/// The statement that deletes what has a key that begins so, which has no quote and no backslash.
pub(super) fn delete(prefix: &str) -> Vec<u8> {
    let mut request = Vec::new();
    let text = format!("DELETE FROM bench WHERE LEFT(k, {})='{prefix}'", prefix.len());
    request::append_query(text.as_bytes(), &mut request);
    request
}

/// The statement that makes the table.
pub(super) fn create() -> Vec<u8> {
    let mut request = Vec::new();
    request::append_query(request::CREATE.as_bytes(), &mut request);
    request
}

/// The reply to a statement without rows.
pub(super) fn parse_done(reply: &[u8]) -> Parsed<()> {
    let packet = packet::first(reply)?;
    let done = match packet.payload.first() {
        Some(0) => Ok(()),
        Some(0xff) => Err(refusal(packet.payload)),
        _ => Err(wrong("no reply to this statement", reply)),
    };
    Some((packet.length, done))
}

/// The reply to a read.
pub(super) fn parse_value(reply: &[u8]) -> Parsed<Option<Vec<u8>>> {
    if reply.get(packet::HEAD) == Some(&0xff) {
        let packet = packet::first(reply)?;
        return Some((packet.length, Err(refusal(packet.payload))));
    }
    let Some(rest) = reply.strip_prefix(COLUMNS) else {
        let may_come = COLUMNS.starts_with(reply);
        return (!may_come).then(|| (reply.len(), Err(wrong("no reply to this statement", reply))));
    };
    let (mut at, mut value) = (0, None);
    loop {
        let packet = packet::first(&rest[at..])?;
        at += packet.length;
        let ended = match packet.payload {
            // A row of so many bytes would begin with 0xfe only if it had 16 MiB.
            [0xfe, ..] => Ok(value.take()),
            [0xff, ..] => Err(refusal(packet.payload)),
            row => match packet::text(row) {
                Some((text, [])) if value.is_none() => {
                    value = Some(text.to_vec());
                    continue;
                }
                _ => return Some((reply.len(), Err(wrong("no row with a value", row)))),
            },
        };
        return Some((COLUMNS.len() + at, ended));
    }
}

/// The words of an error.
fn refusal(payload: &[u8]) -> Failure {
    match ErrPacket::read(payload) {
        Ok(error) => Failure::Refused(format!("error {}: {}", error.code, excerpt(error.message))),
        Err(_) => wrong("no error", payload),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(packets: &[u8]) -> Vec<u8> {
        [COLUMNS, packets].concat()
    }

    #[test]
    fn a_value_waits_for_its_last_byte() {
        let whole = reply(b"\x06\0\0\x03\x05hello\x07\0\0\x04\xfe\0\0\x02\0\0\0");
        for length in 0..whole.len() {
            assert_eq!(parse_value(&whole[..length]), None, "{length} bytes");
        }
        assert_eq!(
            parse_value(&whole),
            Some((whole.len(), Ok(Some(b"hello".to_vec()))))
        );
        let none = reply(b"\x07\0\0\x03\xfe\0\0\x02\0\0\0");
        assert_eq!(parse_value(&none), Some((none.len(), Ok(None))));
    }

    #[test]
    fn refusals_are_told_from_nonsense() {
        let error = b"\x0e\0\0\x01\xff\x1e\x04#42S22words";
        let refused = Failure::Refused("error 1054: words".into());
        assert_eq!(parse_done(error), Some((18, Err(refused.clone()))));
        assert_eq!(parse_value(error), Some((18, Err(refused.clone()))));
        let late = reply(&[&error[..3], b"\x03", &error[4..]].concat());
        assert_eq!(parse_value(&late), Some((late.len(), Err(refused))));
        for bytes in [
            b"\x07\0\0\x01\0\x01\0\x02\0\0\0".to_vec(),
            reply(b"\x06\0\0\x03\x06hello\x07\0\0\x04\xfe\0\0\x02\0\0\0"),
            reply(b"\x02\0\0\x03\x01a\x02\0\0\x04\x01b"),
        ] {
            let parsed = parse_value(&bytes);
            assert!(
                matches!(parsed, Some((_, Err(Failure::Wrong(_))))),
                "{}",
                bytes.escape_ascii()
            );
        }
        assert_eq!(parse_done(b"\x07\0\0\x01\0\x01\0\x02\0\0\0"), Some((11, Ok(()))));
    }
}
