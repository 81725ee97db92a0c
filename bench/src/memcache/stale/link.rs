//! One client's connection to one address: a request, its reply, and a new connection when that fails.

use std::{
    io::{self, ErrorKind, Read, Write},
    net::{SocketAddr, TcpStream},
    time::{Duration, Instant},
};

/// Bytes of a reply of a run at most: a value and the lines around it.
const LONGEST_REPLY: usize = 2 * 1024 * 1024;

/// Why a request has failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// The other side said no, in these words.
    Refused(String),
    /// There was no reply: the connection failed, or the time was over.
    Lost(String),
    /// A reply that cannot be one to this request.
    Wrong(String),
}

/// A complete reply's length, and what it said.
type Parsed<T> = Option<(usize, Result<T, Failure>)>;

pub(super) struct Link {
    pub(super) address: SocketAddr,
    timeout: Duration,
    stream: Option<TcpStream>,
}

impl Link {
    pub(super) fn new(address: SocketAddr, timeout: Duration) -> Self {
        Self {
            address,
            timeout,
            stream: None,
        }
    }

    /// Stores `value` for `ttl` seconds; 0: for ever.
    pub(super) fn set(&mut self, key: &str, ttl: u64, value: &[u8]) -> Result<(), Failure> {
        let mut request = format!("set {key} 0 {ttl} {}\r\n", value.len()).into_bytes();
        request.extend_from_slice(value);
        request.extend_from_slice(b"\r\n");
        self.ask(&request, parse_stored)
    }

    /// The value, if there is one.
    pub(super) fn get(&mut self, key: &str) -> Result<Option<Vec<u8>>, Failure> {
        self.ask(format!("get {key}\r\n").as_bytes(), |reply| {
            parse_value(key, reply)
        })
    }

    fn ask<T>(&mut self, request: &[u8], parse: impl Fn(&[u8]) -> Parsed<T>) -> Result<T, Failure> {
        let answer = self.exchange(request, parse).unwrap_or_else(|error| {
            let words = match error.kind() {
                // The errors of the kernel when the time for a read or write is over.
                ErrorKind::WouldBlock | ErrorKind::TimedOut => format!("nothing within {:?}", self.timeout),
                _ => error.to_string(),
            };
            Err(Failure::Lost(words))
        });
        let in_step = match &answer {
            Ok(_) => true,
            // After any other refusal (ERROR, CLIENT_ERROR) the rest of the request may be taken for the next
            // one.
            Err(Failure::Refused(words)) => words.starts_with("SERVER_ERROR") || words == "NOT_STORED",
            Err(Failure::Lost(_) | Failure::Wrong(_)) => false,
        };
        if !in_step {
            self.stream = None;
        }
        answer
    }

    fn exchange<T>(
        &mut self,
        request: &[u8],
        parse: impl Fn(&[u8]) -> Parsed<T>,
    ) -> io::Result<Result<T, Failure>> {
        let deadline = Instant::now() + self.timeout;
        let stream = match &mut self.stream {
            Some(stream) => stream,
            None => {
                let stream = TcpStream::connect_timeout(&self.address, self.timeout)?;
                // Where no process listens on an ephemeral port of this machine, a connection may meet
                // itself.
                if stream.local_addr()? == self.address {
                    return Err(ErrorKind::ConnectionRefused.into());
                }
                stream.set_nodelay(true)?;
                stream.set_write_timeout(Some(self.timeout))?;
                self.stream.insert(stream)
            }
        };
        stream.write_all(request)?;
        let mut reply = Vec::new();
        let mut chunk = [0; 16 * 1024];
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(ErrorKind::TimedOut.into());
            }
            stream.set_read_timeout(Some(left))?;
            match stream.read(&mut chunk) {
                Ok(0) => return Err(io::Error::other("the connection was closed by the other side")),
                Ok(length) => reply.extend_from_slice(&chunk[..length]),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            match parse(&reply) {
                Some((length, answer)) if length == reply.len() => return Ok(answer),
                Some(_) => return Ok(Err(wrong("more than was asked for", &reply))),
                None if reply.len() > LONGEST_REPLY => {
                    return Ok(Err(wrong("a reply without an end", &reply)));
                }
                None => {}
            }
        }
    }
}

fn parse_stored(reply: &[u8]) -> Parsed<()> {
    let (line, length) = first_line(reply)?;
    let answer = if line == b"STORED" {
        Ok(())
    } else {
        Err(refusal(line))
    };
    Some((length, answer))
}

fn parse_value(key: &str, reply: &[u8]) -> Parsed<Option<Vec<u8>>> {
    let (line, length) = first_line(reply)?;
    if line == b"END" {
        return Some((length, Ok(None)));
    }
    let Some(words) = line.strip_prefix(b"VALUE ") else {
        return Some((length, Err(refusal(line))));
    };
    let mut words = words.split(|&byte| byte == b' ');
    let same_key = words.next() == Some(key.as_bytes());
    let size = words
        .nth(1)
        .and_then(|word| std::str::from_utf8(word).ok()?.parse::<usize>().ok())
        .filter(|&size| size <= LONGEST_REPLY);
    let (true, Some(size)) = (same_key, size) else {
        return Some((reply.len(), Err(wrong("no value of this key", line))));
    };
    let whole = length + size + b"\r\nEND\r\n".len();
    let (value, end) = reply.get(length..whole)?.split_at(size);
    let answer = if end == b"\r\nEND\r\n" {
        Ok(Some(value.to_vec()))
    } else {
        Err(wrong("the value does not end where its length says", end))
    };
    Some((whole, answer))
}

/// The first line, and its length with its end.
fn first_line(reply: &[u8]) -> Option<(&[u8], usize)> {
    let end = reply.windows(2).position(|pair| pair == b"\r\n")?;
    Some((&reply[..end], end + 2))
}

/// An error line that memcached and its proxies have, or else a wrong reply.
fn refusal(line: &[u8]) -> Failure {
    let known: [&[u8]; 4] = [b"SERVER_ERROR", b"CLIENT_ERROR", b"ERROR", b"NOT_STORED"];
    if known.iter().any(|word| line.starts_with(word)) {
        Failure::Refused(excerpt(line))
    } else {
        wrong("no reply to this request", line)
    }
}

fn wrong(what: &str, bytes: &[u8]) -> Failure {
    Failure::Wrong(format!("{what}: {}", excerpt(bytes)))
}

fn excerpt(bytes: &[u8]) -> String {
    bytes[..bytes.len().min(200)].escape_ascii().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_waits_for_its_last_byte() {
        let reply = b"VALUE k 0 5\r\nhello\r\nEND\r\n";
        for length in 0..reply.len() {
            assert_eq!(parse_value("k", &reply[..length]), None, "{length} bytes");
        }
        assert_eq!(
            parse_value("k", reply),
            Some((reply.len(), Ok(Some(b"hello".to_vec()))))
        );
        assert_eq!(parse_value("k", b"END\r\n"), Some((5, Ok(None))));
    }

    #[test]
    fn refusals_are_told_from_nonsense() {
        for line in [
            "SERVER_ERROR out of memory",
            "CLIENT_ERROR bad",
            "ERROR",
            "NOT_STORED",
        ] {
            let reply = format!("{line}\r\n");
            let refused = Failure::Refused(line.into());
            assert_eq!(
                parse_stored(reply.as_bytes()),
                Some((reply.len(), Err(refused.clone())))
            );
            assert_eq!(
                parse_value("k", reply.as_bytes()),
                Some((reply.len(), Err(refused)))
            );
        }
        for reply in [
            &b"STORED\r\n"[..],
            b"VALUE other 0 1\r\nx\r\nEND\r\n",
            b"VALUE k 0 1\r\nxy\r\nEND\r\n",
            b"VALUE k 0 99999999999999999999\r\n",
            b"VALUE k 0 9999999999\r\n",
            b"VALUE k\r\n",
        ] {
            let parsed = parse_value("k", reply);
            assert!(
                matches!(parsed, Some((_, Err(Failure::Wrong(_))))),
                "{}",
                reply.escape_ascii()
            );
        }
        assert!(matches!(
            parse_stored(b"END\r\n"),
            Some((5, Err(Failure::Wrong(_))))
        ));
    }
}
