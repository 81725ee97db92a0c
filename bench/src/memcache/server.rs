//! The server's side of one connection: as little of memcached as a proxy notices.
//!
//! A get is answered with the value that belongs to its key, a set with `STORED`; nothing is stored.
//! `version` and `mn` are answered because proxies probe with them, `stats` because they tell a server's
//! lives apart by it.

use std::{process, sync::LazyLock, time::Instant};

use anyhow::{Context, Result, ensure};

use super::request;

/// The start of all stand-in servers of this process, which is their first use.
static STARTED: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Bytes of a request line of a run at most. A proxy that sends a longer one is wrong.
const LONGEST_LINE: usize = 64 * 1024;

/// The state between two reads of one connection.
#[derive(Default)]
pub(crate) struct Conversation {
    /// A request line that has not ended yet.
    line: Vec<u8>,
    /// Bytes still to come of a set's data, its line end included.
    body_left: usize,
}

impl Conversation {
    /// Takes the next `bytes` of the connection, appends the replies they complete to `out` and returns how
    /// many keys were read or written. Values are `value_size` bytes long.
    ///
    /// # Errors
    /// On bytes no client of memcached sends.
    pub(crate) fn feed(&mut self, mut bytes: &[u8], value_size: usize, out: &mut Vec<u8>) -> Result<usize> {
        let mut served = 0;
        while !bytes.is_empty() {
            if self.body_left > 0 {
                let taken = self.body_left.min(bytes.len());
                self.body_left -= taken;
                bytes = &bytes[taken..];
                if self.body_left == 0 {
                    out.extend_from_slice(b"STORED\r\n");
                    served += 1;
                }
                continue;
            }
            let Some(end) = bytes.iter().position(|&byte| byte == b'\n') else {
                self.line.extend_from_slice(bytes);
                ensure!(
                    self.line.len() <= LONGEST_LINE,
                    "a request line of more than {LONGEST_LINE} bytes"
                );
                break;
            };
            let (head, rest) = bytes.split_at(end + 1);
            bytes = rest;
            if self.line.is_empty() {
                served += self.request(head, value_size, out)?;
            } else {
                self.line.extend_from_slice(head);
                let line = std::mem::take(&mut self.line);
                served += self.request(&line, value_size, out)?;
            }
        }
        Ok(served)
    }

    /// One request line, its line end included.
    fn request(&mut self, line: &[u8], value_size: usize, out: &mut Vec<u8>) -> Result<usize> {
        let mut words = line.trim_ascii_end().split(|&byte| byte == b' ');
        match words.next().unwrap_or_default() {
            b"get" | b"gets" => {
                let mut served = 0;
                for key in words {
                    request::append_value(key, value_size, out);
                    served += 1;
                }
                out.extend_from_slice(b"END\r\n");
                Ok(served)
            }
            b"set" => {
                let length = words
                    .nth(3)
                    .and_then(|word| std::str::from_utf8(word).ok()?.parse::<usize>().ok());
                let length =
                    length.with_context(|| format!("a set without a length: {}", line.escape_ascii()))?;
                self.body_left = length + 2;
                Ok(0)
            }
            b"version" => {
                out.extend_from_slice(b"VERSION 1.6.18\r\n");
                Ok(0)
            }
            b"stats" => {
                let (pid, uptime) = (process::id(), STARTED.elapsed().as_secs());
                let stats = format!(
                    "STAT pid {pid}\r\nSTAT uptime {uptime}\r\nSTAT version 1.6.18\r\nSTAT total_items 0\r\nEND\r\n"
                );
                out.extend_from_slice(stats.as_bytes());
                Ok(0)
            }
            b"mn" => {
                out.extend_from_slice(b"MN\r\n");
                Ok(0)
            }
            _ => {
                out.extend_from_slice(b"ERROR\r\n");
                Ok(0)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_split_of_the_bytes_is_served_alike() {
        let mut asked = Vec::new();
        request::append_get(b"one", &mut asked);
        request::append_set(b"two", 300, &mut asked);
        asked.extend_from_slice(b"version\r\nget one two\r\n");
        let mut whole = Vec::new();
        assert_eq!(Conversation::default().feed(&asked, 50, &mut whole).unwrap(), 4);
        for size in 1..asked.len() {
            let (mut conversation, mut out) = (Conversation::default(), Vec::new());
            let served: usize = asked
                .chunks(size)
                .map(|piece| conversation.feed(piece, 50, &mut out).unwrap())
                .sum();
            assert_eq!((served, &out), (4, &whole), "in pieces of {size}");
        }
    }

    #[test]
    fn a_set_without_a_length_is_an_error() {
        assert!(
            Conversation::default()
                .feed(b"set k 0 0\r\n", 50, &mut Vec::new())
                .is_err()
        );
    }
}
