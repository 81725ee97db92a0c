//! mcrouter's answers to lines that it cannot serve.

use memchr::memchr;
use proxima_wire::{
    memcache::{Command, KEY, error},
    message::{Bad, Class, Parsed, Request},
};

use super::grammar::Grammar;

/// The answer to a key that is too long. The value behind it is swallowed, and the connection stays.
pub(super) const BAD_KEY: &[u8] = b"CLIENT_ERROR bad key\r\n";

/// The answer to anything else, after which the connection is closed.
pub(super) const MALFORMED: &[u8] = b"CLIENT_ERROR malformed request\r\n";

/// The answer to a command that operators have not enabled.
pub(super) const DISABLED: &[u8] = b"SERVER_ERROR Command disabled\r\n";

/// mcrouter's further commands.
const COMMANDS_OF_OPERATORS: [&[u8]; 3] = [b"exec", b"admin", b"flush_regex"];

/// Bytes within which a line must end. A key that is far too long is no reason to close the connection.
const LONGEST: usize = 64 << 10;

/// The beginning of keys by which mcrouter is asked about itself.
pub const ADMIN: &[u8] = b"__mcrouter__.";

/// Makes a plan necessary for a `get` of such a key.
#[inline]
pub(super) fn marked(mut request: Request, bytes: &[u8]) -> Request {
    let asks = request.command == Command::Get as u16
        && request.more_keys.is_empty()
        && request.key.of(bytes).starts_with(ADMIN);
    if asks {
        request.class = Class::Admin;
    }
    request
}

/// A request that was rejected by the rules of memcached, as mcrouter rejects it. `bytes` begin with it.
#[cold]
pub(super) fn rejected(bad: Bad, bytes: &[u8]) -> Parsed<Request> {
    if !bad.why.is_empty() || bad.reply == error::TOO_LARGE {
        return Parsed::Bad(bad);
    }
    let within = &bytes[..bytes.len().min(LONGEST)];
    match memchr(b'\n', within) {
        Some(end) => Parsed::Bad(judged(bad, &bytes[..=end])),
        None if bytes.len() <= LONGEST => Parsed::More,
        None => Parsed::Bad(Bad::fatal(MALFORMED)),
    }
}

fn judged(bad: Bad, line: &[u8]) -> Bad {
    use Command::{
        Add, Append, Cas, Gat, Gats, Get, Gets, LeaseGet, LeaseSet, Metadata, Prepend, Replace, Set,
    };
    let words: Vec<&[u8]> = line
        .trim_ascii_end()
        .split(|&byte| byte == b' ')
        .filter(|word| !word.is_empty())
        .collect();
    let name = words.first().copied().unwrap_or_default();
    let number = Command::NAMES.iter().position(|known| known.as_bytes() == name);
    let command = number.and_then(|number| Command::ALL.get(number).copied());
    let keys = match command {
        // mcrouter knows no meta command. Those that are served are rejected as memcached does it.
        Some(command) if command.is_meta() && !bad.close => return bad,
        Some(Get | Gets | LeaseGet | Metadata) => words.get(1..),
        Some(Gat | Gats) => words.get(2..),
        Some(_) => words.get(1..2),
        None if words.len() > 1 && COMMANDS_OF_OPERATORS.contains(&name) => {
            return Bad::refused(line.len(), DISABLED);
        }
        None => None,
    };
    if let Some(value) = Grammar::Mcrouter.value_behind(line).filter(|_| !bad.close) {
        // mcrouter passes it on, and the server rejects it.
        return Bad {
            swallow: value,
            ..bad
        };
    }
    if !keys.unwrap_or_default().iter().any(|key| key.len() > KEY) {
        return Bad::fatal(MALFORMED);
    }
    let value = match command {
        Some(Set | Add | Replace | Append | Prepend | Cas | LeaseSet) => {
            let at = if command == Some(LeaseSet) { 5 } else { 4 };
            let length = words.get(at).and_then(|word| std::str::from_utf8(word).ok());
            match length.and_then(|length| length.parse::<u32>().ok()) {
                Some(length) => u64::from(length) + 2,
                // The beginning of the next request is not known.
                None => return Bad::fatal(MALFORMED),
            }
        }
        _ => 0,
    };
    let is_quiet = words.last().is_some_and(|last| *last == b"noreply");
    Bad {
        swallow: value,
        ..Bad::refused(line.len(), if is_quiet { b"" } else { BAD_KEY })
    }
}

#[cfg(test)]
mod tests {
    use proxima_wire::memcache::{self, Limits};

    use super::*;

    fn read(text: &[u8]) -> Parsed<Request> {
        match memcache::request(text, &Limits::default()) {
            Parsed::Bad(bad) => rejected(bad, text),
            read => read,
        }
    }

    #[test]
    fn a_key_that_is_too_long_swallows_its_value_and_keeps_the_connection() {
        for length in [251, 3_000, 10_000, 60_000] {
            let key = "k".repeat(length);
            let table = [
                (format!("get {key}\r\n"), 0),
                (format!("gets a {key}\r\n"), 0),
                (format!("gat 0 {key}\n"), 0),
                (format!("delete {key}\r\n"), 0),
                (format!("incr {key} 1\r\n"), 0),
                (format!("touch {key} 0\r\n"), 0),
                (format!("set {key} 0 0 5\r\n"), 7),
                (format!("append {key} 0 0 100000\r\n"), 100_002),
                (format!("cas {key} 0 0 5 7\r\n"), 7),
                (format!("lease-get a {key}\r\n"), 0),
                (format!("metaget {key}\r\n"), 0),
                (format!("lease-set {key} 9 0 0 5\r\n"), 7),
                (format!("set {key} x -1 5\r\n"), 7),
            ];
            for (text, swallow) in table {
                let (head, shown) = (text.len() as u32, &text[..text.len().min(20)]);
                // `get` takes the keys of a line that has not ended one by one.
                let is_get = text.starts_with('g');
                let half = &text.as_bytes()[..text.len() - 2];
                assert!(
                    is_get || length < 300 || matches!(read(half), Parsed::More),
                    "{shown}"
                );
                let expected = Bad {
                    swallow,
                    ..Bad::refused(head as usize, BAD_KEY)
                };
                assert!(
                    matches!(read(text.as_bytes()), Parsed::Bad(bad) if bad == expected),
                    "{shown}"
                );
            }
            let quiet = format!("set {key} 0 0 5 noreply\r\n");
            assert!(
                matches!(read(quiet.as_bytes()), Parsed::Bad(bad) if bad.reply.is_empty() && bad.swallow == 7)
            );
        }
    }

    #[test]
    fn whatever_else_cannot_be_parsed_closes_the_connection() {
        let long = "x".repeat(LONGEST + 1);
        let unknown_length = format!("set {} 0 0 x\r\n", "k".repeat(300));
        for text in [
            "get\r\n",
            "get \r\n",
            "nonsense\r\n",
            "set k 0 0\r\n",
            "set k -1 0 5\r\n",
            "set k 0 0 -1\r\n",
            "incr k\r\n",
            "incr k x\r\n",
            "touch k\r\n",
            "delete k x\r\n",
            "incr k -1\r\n",
            "exec\r\n",
            "GET k\r\n",
            "\r\n",
            &long,
            &unknown_length,
        ] {
            let shown = &text[..text.len().min(20)];
            assert!(
                matches!(read(text.as_bytes()), Parsed::Bad(bad) if bad == Bad::fatal(MALFORMED)),
                "{shown}"
            );
        }
    }

    #[test]
    fn what_mcrouter_reads_and_no_server_takes_keeps_the_connection() {
        let huge = "9".repeat(30);
        let table = [
            (format!("set k 0 {huge} 5\r\n"), error::BAD_FORMAT, 7),
            (format!("set k {huge} 0 5 noreply\r\n"), b"", 7),
            ("set k 0 0 00000000000005\r\n".into(), error::BAD_FORMAT, 7),
            (format!("incr k {huge}\n"), error::BAD_DELTA, 0),
            ("touch k 4294967296\r\n".into(), error::BAD_TTL, 0),
            (format!("gat {huge} k k\r\n"), error::BAD_TTL, 0),
            ("delete k 5\r\n".into(), error::DELETE_USAGE, 0),
            ("delete k 5 noreply\r\n".into(), b"", 0),
            ("delete k -1 noreply\r\n".into(), b"", 0),
            (format!("flush_all {huge}\r\n"), error::BAD_TTL, 0),
            ("exec anything at all\r\n".into(), DISABLED, 0),
            ("flush_regex .*\r\n".into(), DISABLED, 0),
        ];
        for (text, reply, swallow) in table {
            let expected = Bad {
                swallow,
                ..Bad::refused(text.len(), reply)
            };
            assert!(
                matches!(read(text.as_bytes()), Parsed::Bad(bad) if bad == expected),
                "{text}: {:?}",
                read(text.as_bytes())
            );
        }
    }

    #[test]
    fn line_that_mcrouter_has_no_words_for_is_rejected_as_by_memcached() {
        let limits = Limits {
            value: 10,
            ..Limits::default()
        };
        for text in ["mg\r\n", "ms k\r\n", "set k 0 0 11\r\n", "delete k 5\r\n"] {
            let Parsed::Bad(bad) = memcache::request(text.as_bytes(), &limits) else {
                panic!("{text}")
            };
            assert!(
                matches!(rejected(bad, text.as_bytes()), Parsed::Bad(same) if same == bad),
                "{text}"
            );
        }
        let binary = [0x80, 0, 0];
        assert!(matches!(read(&binary), Parsed::Bad(bad) if bad.reply.is_empty() && bad.close));
    }
}
