//! Replies as the client of a run reads and judges them.

use proxima_wire::mysql::ErrPacket;

use super::{packet, result_set};
use crate::{verdict::Verdict, workload::value};

pub(crate) use result_set::{EMPTY, END, STORED, append_announcement};

/// Judges the reply to a read (or a write) of the value of `key` at the start of `bytes`. `binary`: the
/// statement was prepared.
///
/// Returns its length and its contents. `None`: more bytes are needed.
pub(crate) fn judge(
    bytes: &[u8],
    binary: bool,
    key: &[u8],
    set: bool,
    value_size: usize,
) -> Option<(usize, Verdict)> {
    if let Some(&0xff) = bytes.get(packet::HEAD) {
        return refusal(bytes);
    }
    if set {
        let good = |reply: &[u8]| bytes.starts_with(reply).then_some((reply.len(), Verdict::Stored));
        let judged = good(result_set::STORED).or_else(|| good(result_set::REPLACED));
        return judged.or_else(|| wait(bytes, &[result_set::STORED, result_set::REPLACED]));
    }
    if bytes.starts_with(EMPTY) {
        return Some((EMPTY.len(), Verdict::Miss));
    }
    let mut announcement = Vec::new();
    append_announcement(binary, value_size, &mut announcement);
    let Some(rest) = bytes.strip_prefix(&*announcement) else {
        let behind = bytes.strip_prefix(result_set::COLUMNS).unwrap_or_default();
        return match behind.get(packet::HEAD) {
            Some(0xff) => refusal(behind).map(|(length, why)| (result_set::COLUMNS.len() + length, why)),
            _ => wait(bytes, &[EMPTY, &announcement]),
        };
    };
    let (data, end) = rest.get(..value_size + END.len())?.split_at(value_size);
    if end != END {
        return Some((0, Verdict::wrong("the result does not end behind its row", end)));
    }
    if !value::matches(key, data) {
        let begin = &data[..data.len().min(64)];
        return Some((0, Verdict::wrong("not the bytes of this key", begin)));
    }
    Some((announcement.len() + value_size + END.len(), Verdict::Hit))
}

/// Whether these bytes are the whole reply to a read.
pub(crate) fn is_result(bytes: &[u8]) -> bool {
    bytes == EMPTY || bytes.starts_with(result_set::COLUMNS) && bytes.ends_with(END)
}

/// Whether these bytes begin with an error that has come as a whole.
pub(crate) fn is_refusal(bytes: &[u8]) -> bool {
    packet::first(bytes).is_some_and(|packet| packet.payload.first() == Some(&0xff))
}

/// Waits while `bytes` may be the beginning of one of these replies.
fn wait(bytes: &[u8], replies: &[&[u8]]) -> Option<(usize, Verdict)> {
    let may_be = |reply: &&[u8]| reply.starts_with(bytes);
    (!replies.iter().any(may_be)).then(|| (0, Verdict::wrong("no reply to this statement", bytes)))
}

/// The error at the start of `bytes`.
fn refusal(bytes: &[u8]) -> Option<(usize, Verdict)> {
    let packet = packet::first(bytes)?;
    let verdict = match ErrPacket::read(packet.payload) {
        Ok(error) => Verdict::Refused(format!("error {}: {}", error.code, error.message.escape_ascii())),
        Err(_) => Verdict::wrong("no error", bytes),
    };
    Some((packet.length, verdict))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hit(binary: bool, key: &[u8], size: usize) -> Vec<u8> {
        let mut reply = Vec::new();
        result_set::append_hit(binary, key, size, &mut reply);
        reply
    }

    /// Bytes of MariaDB 10.11.
    #[test]
    fn what_a_server_sends_is_a_hit_a_miss_or_a_store() {
        const COLUMN: &[u8] = b"\x01\0\0\x01\x01/\0\0\x02\x03def\rproxima_bench\x05bench\x05bench\x01v\x01v\
                                \x0c?\0\xff\xff\xff\xff\xfc\x91\x10\0\0\0";
        let text = [COLUMN, b"\x03\0\0\x03\x02k1\x07\0\0\x04\xfe\0\0\x02\0\0\0"].concat();
        let binary = [COLUMN, b"\x05\0\0\x03\0\0\x02k1\x07\0\0\x04\xfe\0\0\x02\0\0\0"].concat();
        let none = [COLUMN, b"\x07\0\0\x03\xfe\0\0\x02\0\0\0"].concat();
        for (reply, is_binary, verdict) in [
            (&text, false, Verdict::Hit),
            (&binary, true, Verdict::Hit),
            (&none, false, Verdict::Miss),
            (&none, true, Verdict::Miss),
        ] {
            assert_eq!(
                judge(reply, is_binary, b"k1", false, 2),
                Some((reply.len(), verdict))
            );
        }
        let stored = b"\x07\0\0\x01\0\x02\0\x02\0\0\0";
        assert_eq!(judge(stored, false, b"k1", true, 2), Some((11, Verdict::Stored)));
        let error = b"\x0e\0\0\x01\xff\x1e\x04#42S22words";
        let refused = Verdict::Refused("error 1054: words".into());
        assert_eq!(judge(error, false, b"k1", false, 2), Some((18, refused)));
    }

    #[test]
    fn every_prefix_waits_and_the_whole_is_a_hit() {
        for binary in [false, true] {
            for size in [0, 100, 300, 70_000] {
                let reply = hit(binary, b"key7", size);
                for length in (0..reply.len()).step_by(1 + size / 300) {
                    let verdict = judge(&reply[..length], binary, b"key7", false, size);
                    assert_eq!(verdict, None, "{length} bytes of {size}");
                }
                let verdict = judge(&reply, binary, b"key7", false, size);
                assert_eq!(verdict, Some((reply.len(), Verdict::Hit)));
            }
        }
    }

    #[test]
    fn one_wrong_byte_is_found_wherever_it_stands() {
        for binary in [false, true] {
            let reply = hit(binary, b"key7", 100);
            for place in 0..reply.len() {
                let mut bad = reply.clone();
                bad[place] ^= 0x20;
                let verdict = judge(&bad, binary, b"key7", false, 100).map(|(_, verdict)| verdict);
                assert!(
                    matches!(verdict, Some(Verdict::Wrong(_))),
                    "byte {place}: {verdict:?}"
                );
            }
        }
    }

    #[test]
    fn a_store_with_a_wrong_byte_is_wrong() {
        for place in (0..STORED.len()).filter(|place| *place != 5) {
            let mut bad = STORED.to_vec();
            bad[place] ^= 0x20;
            let verdict = judge(&bad, false, b"key7", true, 0).map(|(_, verdict)| verdict);
            assert!(
                matches!(verdict, Some(Verdict::Wrong(_))),
                "byte {place}: {verdict:?}"
            );
        }
    }
}
