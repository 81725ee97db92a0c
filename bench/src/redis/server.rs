//! The server's side of one connection: as little of Redis as a proxy notices.
//!
//! A read is answered with the value that belongs to its key, a write with `OK`; nothing is stored.
//! Transactions are queued. What proxies say when they connect is answered, too.

use anyhow::{Context, Result, bail, ensure};

use super::request::{append_bulk, append_length, append_value};

/// Bytes of a request of a run at most. A proxy that sends a longer one is wrong.
const LONGEST: usize = 16 << 20;

/// The state between two reads of one connection.
#[derive(Default)]
pub(crate) struct Conversation {
    /// A request that has not ended yet.
    begun: Vec<u8>,
    /// The replies to commands that are queued, and how many. `None`: there is no transaction.
    queued: Option<(Vec<u8>, usize)>,
}

impl Conversation {
    /// See [`Conversation::feed`](crate::protocol::Conversation::feed).
    pub(crate) fn feed(&mut self, bytes: &[u8], value_size: usize, out: &mut Vec<u8>) -> Result<usize> {
        let mut begun = std::mem::take(&mut self.begun);
        begun.extend_from_slice(bytes);
        let (mut at, mut served) = (0, 0);
        while let Some((words, length)) = request(&begun[at..])? {
            served += self.answer(&words, value_size, out)?;
            at += length;
        }
        begun.drain(..at);
        ensure!(begun.len() <= LONGEST, "a request of more than {LONGEST} bytes");
        self.begun = begun;
        Ok(served)
    }

    fn answer(&mut self, words: &[&[u8]], value_size: usize, out: &mut Vec<u8>) -> Result<usize> {
        let name = words
            .first()
            .context("a request without words")?
            .to_ascii_uppercase();
        match (&*name, self.queued.take()) {
            (b"MULTI", _) => {
                out.extend_from_slice(b"+OK\r\n");
                self.queued = Some((Vec::new(), 0));
                Ok(0)
            }
            (b"EXEC", Some((replies, count))) => {
                append_length(b'*', count, out);
                out.extend_from_slice(&replies);
                Ok(0)
            }
            (_, Some((mut replies, count))) => {
                let served = execute(&name, words, value_size, &mut replies)?;
                out.extend_from_slice(b"+QUEUED\r\n");
                self.queued = Some((replies, count + 1));
                Ok(served)
            }
            (_, None) => execute(&name, words, value_size, out),
        }
    }
}

/// Appends the reply to a command, and returns how many keys it reads or writes.
fn execute(name: &[u8], words: &[&[u8]], value_size: usize, out: &mut Vec<u8>) -> Result<usize> {
    match (name, words) {
        (b"GET", [_, key]) => append_value(key, value_size, out),
        (b"SET", [_, _, _]) => out.extend_from_slice(b"+OK\r\n"),
        (b"MGET", [_, keys @ ..]) => {
            append_length(b'*', keys.len(), out);
            keys.iter().for_each(|key| append_value(key, value_size, out));
            return Ok(keys.len());
        }
        (b"MSET", [_, pairs @ ..]) => {
            out.extend_from_slice(b"+OK\r\n");
            return Ok(pairs.len() / 2);
        }
        (b"PING", _) => {
            out.extend_from_slice(b"+PONG\r\n");
            return Ok(0);
        }
        (b"HELLO", [_, version, ..]) => {
            match *version {
                b"3" => append_length(b'%', 3, out),
                _ => append_length(b'*', 6, out),
            }
            let fields: [&[u8]; 5] = [b"server", b"redis", b"version", b"7.0.15", b"proto"];
            fields.iter().for_each(|text| append_bulk(text, out));
            out.extend_from_slice(if *version == b"3" { b":3\r\n" } else { b":2\r\n" });
            return Ok(0);
        }
        (b"CLIENT" | b"SELECT" | b"AUTH", _) => {
            out.extend_from_slice(b"+OK\r\n");
            return Ok(0);
        }
        (b"INFO", _) => {
            append_bulk(
                b"# Server\r\nredis_version:7.0.15\r\nloading:0\r\nrole:master\r\n",
                out,
            );
            return Ok(0);
        }
        _ => bail!(
            "a request that no client of a run sends: {}",
            words.concat().escape_ascii()
        ),
    }
    Ok(1)
}

/// The words of a request, and its length.
type Read<'a> = (Vec<&'a [u8]>, usize);

/// The words of the request at the start of `bytes`, and its length. `None` if it is incomplete.
fn request(bytes: &[u8]) -> Result<Option<Read<'_>>> {
    let Some((count, mut at)) = number(bytes, b'*')? else {
        return Ok(None);
    };
    let mut words = Vec::with_capacity(count.min(1_024));
    for _ in 0..count {
        let Some((length, line)) = number(bytes.get(at..).unwrap_or_default(), b'$')? else {
            return Ok(None);
        };
        let start = at + line;
        let Some(word) = bytes.get(start..start + length + 2) else {
            return Ok(None);
        };
        ensure!(word.ends_with(b"\r\n"), "a bulk string that does not end");
        words.push(&word[..length]);
        at = start + length + 2;
    }
    Ok(Some((words, at)))
}

/// The number on the line at the start of `bytes`, and the line's length. `None` if it is incomplete.
fn number(bytes: &[u8], kind: u8) -> Result<Option<(usize, usize)>> {
    let Some(end) = bytes.iter().take(32).position(|&byte| byte == b'\n') else {
        ensure!(
            bytes.len() < 32,
            "a line that does not end: {}",
            bytes[..32].escape_ascii()
        );
        return Ok(None);
    };
    let digits = bytes[..end].strip_prefix(&[kind]).map(<[u8]>::trim_ascii_end);
    let number = digits.and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
    let number: usize = number.with_context(|| format!("no length: {}", bytes[..end].escape_ascii()))?;
    ensure!(number <= LONGEST, "a length of {number}");
    Ok(Some((number, end + 1)))
}

#[cfg(test)]
mod tests {
    use super::super::request::{append_get, append_mget, append_mset, append_set};
    use super::*;

    fn replies(requests: &[u8], portion: usize) -> (Vec<u8>, usize) {
        let (mut conversation, mut out, mut served) = (Conversation::default(), Vec::new(), 0);
        for part in requests.chunks(portion) {
            served += conversation.feed(part, 10, &mut out).unwrap();
        }
        (out, served)
    }

    #[test]
    fn replies_are_the_same_however_the_bytes_come() {
        let mut requests = Vec::new();
        append_get(b"a", &mut requests);
        append_set(b"b", 10, &mut requests);
        append_mget([&b"a"[..], b"b", b"c"].into_iter(), &mut requests);
        append_mset([&b"a"[..], b"b"].into_iter(), 10, &mut requests);
        requests.extend_from_slice(b"*1\r\n$5\r\nMULTI\r\n");
        append_get(b"a", &mut requests);
        append_set(b"a", 10, &mut requests);
        requests.extend_from_slice(b"*1\r\n$4\r\nEXEC\r\n");
        let whole = replies(&requests, requests.len());
        assert_eq!(whole.1, 9);
        let text = String::from_utf8_lossy(&whole.0).into_owned();
        assert!(
            text.contains("+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n$10\r\n"),
            "{text}"
        );
        for portion in [1, 2, 3, 7, 50] {
            assert_eq!(replies(&requests, portion), whole, "{portion} bytes at a time");
        }
    }

    #[test]
    fn bytes_that_are_no_request_are_refused() {
        for bytes in [
            &b"GET a\r\n"[..],
            b"*1\r\nGET\r\n",
            b"*1\r\n$1\r\nabc",
            b"*1\r\n$4\r\nNOPE\r\n",
            &[b'*'; 40],
        ] {
            let mut out = Vec::new();
            assert!(
                Conversation::default().feed(bytes, 10, &mut out).is_err(),
                "{}",
                bytes.escape_ascii()
            );
        }
    }
}
