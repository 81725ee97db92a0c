//! Replies as the client of a run reads and judges them.

use crate::{verdict::Verdict, workload::value};

/// Bytes of a line of a run at most. Without a bound, a stream that never ends a line would be waited for.
const LONGEST_LINE: usize = 2_048;

/// See [`Protocol::judge`](crate::protocol::Protocol::judge).
pub(crate) fn line(bytes: &[u8]) -> Option<Result<&[u8], Verdict>> {
    let end = bytes
        .windows(2)
        .take(LONGEST_LINE)
        .position(|pair| pair == b"\r\n");
    match end {
        Some(end) => Some(Ok(&bytes[..end])),
        None => (bytes.len() > LONGEST_LINE).then(|| Err(Verdict::wrong("a line that does not end", bytes))),
    }
}

/// Judges the reply to a `GET` (or a `SET`) of `key` at the start of `bytes`.
///
/// Returns its length and its contents. `None`: more bytes are needed.
pub(crate) fn judge(bytes: &[u8], key: &[u8], set: bool, value_size: usize) -> Option<(usize, Verdict)> {
    let line = match line(bytes)? {
        Ok(line) => line,
        Err(wrong) => return Some((0, wrong)),
    };
    let after_line = line.len() + 2;
    if let Some(words) = line.strip_prefix(b"-") {
        return Some((after_line, Verdict::Refused(words.escape_ascii().to_string())));
    }
    match (set, line) {
        (true, b"+OK") => return Some((after_line, Verdict::Stored)),
        (false, b"$-1") => return Some((after_line, Verdict::Miss)),
        (false, _) if line == format!("${value_size}").as_bytes() => {}
        _ => return Some((0, Verdict::wrong("no reply to this request", line))),
    }
    let length = after_line + value_size + 2;
    let (data, tail) = bytes.get(after_line..length)?.split_at(value_size);
    if tail != b"\r\n" {
        return Some((
            0,
            Verdict::wrong("the value does not end where its length says", tail),
        ));
    }
    if !value::matches(key, data) {
        let begin = &data[..data.len().min(64)];
        return Some((0, Verdict::wrong("not the bytes of this key", begin)));
    }
    Some((length, Verdict::Hit))
}

/// Judges the reply to an `MGET` of `keys` (or, with `set`, to an `MSET`).
///
/// Returns its length and its contents: a hit if every key is one. `None`: more bytes are needed.
pub(crate) fn judge_many<'a>(
    bytes: &[u8],
    keys: impl ExactSizeIterator<Item = &'a [u8]>,
    set: bool,
    value_size: usize,
) -> Option<(usize, Verdict)> {
    if set || bytes.starts_with(b"-") {
        return judge(bytes, b"", true, 0);
    }
    let line = match line(bytes)? {
        Ok(line) => line,
        Err(wrong) => return Some((0, wrong)),
    };
    if line != format!("*{}", keys.len()).as_bytes() {
        return Some((0, Verdict::wrong("not an element for each key", line)));
    }
    let (mut length, mut all) = (line.len() + 2, Verdict::Hit);
    for key in keys {
        let (more, verdict) = judge(&bytes[length..], key, false, value_size)?;
        length += more;
        match verdict {
            Verdict::Hit => {}
            Verdict::Miss => all = Verdict::Miss,
            other => return Some((0, other)),
        }
    }
    Some((length, all))
}

#[cfg(test)]
mod tests {
    use super::super::request;
    use super::*;

    fn list(keys: &[&[u8]], size: usize) -> Vec<u8> {
        let mut reply = Vec::new();
        request::append_length(b'*', keys.len(), &mut reply);
        keys.iter()
            .for_each(|key| request::append_value(key, size, &mut reply));
        reply
    }

    #[test]
    fn every_prefix_of_a_list_waits_and_the_whole_is_a_hit() {
        let keys: [&[u8]; 2] = [b"key7", b"key8"];
        let reply = list(&keys, 100);
        for length in 0..reply.len() {
            let verdict = judge_many(&reply[..length], keys.iter().copied(), false, 100);
            assert_eq!(verdict, None, "{length} bytes");
        }
        let verdict = judge_many(&reply, keys.iter().copied(), false, 100);
        assert_eq!(verdict, Some((reply.len(), Verdict::Hit)));
    }

    #[test]
    fn one_wrong_byte_is_found_wherever_it_stands() {
        let keys: [&[u8]; 2] = [b"key7", b"key8"];
        let reply = list(&keys, 100);
        for place in 0..reply.len() {
            let mut bad = reply.clone();
            bad[place] ^= 0x20;
            let verdict = judge_many(&bad, keys.iter().copied(), false, 100).map(|(_, verdict)| verdict);
            assert!(
                !matches!(verdict, Some(Verdict::Hit | Verdict::Miss)),
                "byte {place}: {verdict:?}"
            );
        }
    }

    #[test]
    fn misses_stores_and_refusals_are_told_apart() {
        let verdict = |bytes, set| judge(bytes, b"k", set, 10).unwrap().1;
        assert_eq!(verdict(b"$-1\r\n", false), Verdict::Miss);
        assert_eq!(verdict(b"+OK\r\n", true), Verdict::Stored);
        assert!(matches!(verdict(b"-ERR no\r\n", true), Verdict::Refused(_)));
        assert!(matches!(verdict(b"$-1\r\n", true), Verdict::Wrong(_)));
        assert!(matches!(verdict(b"+OK\r\n", false), Verdict::Wrong(_)));
        assert!(matches!(verdict(&[b'x'; 4_096], false), Verdict::Wrong(_)));
    }
}
