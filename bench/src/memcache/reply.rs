//! Replies as the client of a run reads and judges them.

use super::request;
use crate::{verdict::Verdict, workload::value};

/// Bytes of a reply line of a run at most. Without a bound, a stream that never ends a line would be waited
/// for.
const LONGEST_LINE: usize = 2_048;

/// Judges the reply to a `get` (or a `set`) of `key` at the start of `bytes`.
///
/// Returns its length and its contents. `None`: more bytes are needed.
pub(crate) fn judge(bytes: &[u8], key: &[u8], set: bool, value_size: usize) -> Option<(usize, Verdict)> {
    let Some(end) = bytes
        .windows(2)
        .take(LONGEST_LINE)
        .position(|pair| pair == b"\r\n")
    else {
        return (bytes.len() > LONGEST_LINE).then(|| (0, Verdict::wrong("a line that does not end", bytes)));
    };
    let line = &bytes[..end];
    let after_line = end + 2;
    if set {
        return Some(match line {
            b"STORED" => (after_line, Verdict::Stored),
            _ => (after_line, refusal(line)),
        });
    }
    if line == b"END" {
        return Some((after_line, Verdict::Miss));
    }
    if !line.starts_with(b"VALUE ") {
        return Some((after_line, refusal(line)));
    }
    let mut expected = Vec::with_capacity(after_line);
    request::append_value_line(key, value_size, &mut expected);
    if bytes[..after_line] != expected {
        return Some((
            0,
            Verdict::wrong(&format!("expected {}", expected.escape_ascii()), line),
        ));
    }
    let length = after_line + value_size + b"\r\nEND\r\n".len();
    let reply = bytes.get(..length)?;
    let (data, tail) = reply[after_line..].split_at(value_size);
    if tail != b"\r\nEND\r\n" {
        return Some((
            0,
            Verdict::wrong("the value does not end where its length says", tail),
        ));
    }
    if !value::matches(key, data) {
        return Some((
            0,
            Verdict::wrong("not the bytes of this key", &data[..data.len().min(64)]),
        ));
    }
    Some((length, Verdict::Hit))
}

/// An error line that memcached and its proxies have, or else a wrong reply.
fn refusal(line: &[u8]) -> Verdict {
    let known: [&[u8]; 4] = [b"SERVER_ERROR", b"CLIENT_ERROR", b"ERROR", b"NOT_STORED"];
    if known.iter().any(|word| line.starts_with(word)) {
        Verdict::Refused(line.escape_ascii().to_string())
    } else {
        Verdict::wrong("no reply to this request", line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hit(key: &[u8], size: usize) -> Vec<u8> {
        let mut reply = Vec::new();
        request::append_value(key, size, &mut reply);
        reply.extend_from_slice(b"END\r\n");
        reply
    }

    #[test]
    fn every_prefix_of_a_hit_waits_and_the_whole_is_a_hit() {
        let reply = hit(b"key7", 100);
        for length in 0..reply.len() {
            assert_eq!(
                judge(&reply[..length], b"key7", false, 100),
                None,
                "{length} bytes"
            );
        }
        assert_eq!(
            judge(&reply, b"key7", false, 100),
            Some((reply.len(), Verdict::Hit))
        );
    }

    #[test]
    fn one_wrong_byte_is_found_wherever_it_stands() {
        let reply = hit(b"key7", 100);
        for place in 0..reply.len() {
            let mut bad = reply.clone();
            bad[place] ^= 0x20;
            let verdict = judge(&bad, b"key7", false, 100).map(|(_, verdict)| verdict);
            assert!(
                !matches!(verdict, Some(Verdict::Hit | Verdict::Miss)),
                "byte {place}: {verdict:?}"
            );
        }
    }

    #[test]
    fn another_keys_value_and_another_length_are_wrong() {
        for reply in [hit(b"key8", 100), hit(b"key7", 99), hit(b"key7", 101)] {
            assert!(matches!(
                judge(&reply, b"key7", false, 100),
                Some((_, Verdict::Wrong(_)))
            ));
        }
    }

    #[test]
    fn misses_stores_and_refusals_are_told_apart() {
        let verdict = |bytes, set| judge(bytes, b"k", set, 10).unwrap().1;
        assert_eq!(verdict(b"END\r\n", false), Verdict::Miss);
        assert_eq!(verdict(b"STORED\r\n", true), Verdict::Stored);
        assert!(matches!(
            verdict(b"SERVER_ERROR timeout\r\n", true),
            Verdict::Refused(_)
        ));
        assert!(matches!(
            verdict(b"SERVER_ERROR timeout\r\n", false),
            Verdict::Refused(_)
        ));
        assert!(matches!(verdict(b"END\r\n", true), Verdict::Wrong(_)));
        assert!(matches!(verdict(b"STORED\r\n", false), Verdict::Wrong(_)));
        assert!(matches!(verdict(&[b'x'; 4_096], false), Verdict::Wrong(_)));
    }
}
