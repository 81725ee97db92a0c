//! Requests with another key or another expiry time.

use proxima_wire::{
    message::{Request, Span},
    resp::{Args, Command, append_number, each_key, integer},
};

use super::append_bulk;
use crate::protocol::{Change, Expiry};

/// Replies of these commands name the key, which would not be the client's.
const NAMING: [&str; 10] = [
    "blpop",
    "brpop",
    "bzpopmin",
    "bzpopmax",
    "blmpop",
    "bzmpop",
    "lmpop",
    "zmpop",
    "xread",
    "xreadgroup",
];

/// Appends the head of a request with these changes. Returns false, and appends nothing, if that would not be
/// a request that does the same.
pub(super) fn rewrite(request: &Request, message: &[u8], change: &Change<'_>, out: &mut Vec<u8>) -> bool {
    let head = message.get(..request.head as usize).unwrap_or_default();
    let Some(command) = Command::of(request.command) else {
        return false;
    };
    match (change.key, change.ttl) {
        // Routes change keys. A channel keeps its name, because messages carry it to subscribers.
        (Some(_), None) if command.is_by_channel() => {
            out.extend_from_slice(head);
            true
        }
        (Some(_), None) if request.key.is_empty() || !request.more_keys.is_empty() => false,
        (Some(key), None) => {
            let begin = out.len();
            let is_changed = with_keys(command, head, &mut |_| key.to_vec(), out);
            if !is_changed {
                out.truncate(begin);
            }
            is_changed
        }
        (None, Some(ttl)) => with_ttl(request, command, head, ttl, out),
        (None, None) => {
            out.extend_from_slice(head);
            true
        }
        (Some(_), Some(_)) => false,
    }
}

/// Appends a request, of which `head` has all keys, with each key replaced by what `change` makes of it.
/// Returns false if replies to it name keys, which would not be the client's.
pub(super) fn with_keys(
    command: &Command,
    head: &[u8],
    change: &mut dyn FnMut(&[u8]) -> Vec<u8>,
    out: &mut Vec<u8>,
) -> bool {
    if NAMING.contains(&command.name) {
        return false;
    }
    let mut keys = Vec::new();
    if !command.is_by_channel() {
        each_key(command, head, false, &mut |key| keys.push(key));
    }
    let (mut args, mut at) = (Args::of(head), 0);
    let mut before = args.position();
    let mut keys = keys.into_iter().peekable();
    while let Some(arg) = args.next() {
        if keys.next_if_eq(&arg).is_some() {
            out.extend_from_slice(head.get(at..before).unwrap_or_default());
            append_bulk(&change(arg.of(head)), out);
            at = args.position();
        }
        before = args.position();
    }
    out.extend_from_slice(head.get(at..).unwrap_or_default());
    keys.next().is_none()
}

/// The options of `SET` and `GETEX` that are about expiry, and whether a number follows.
fn option(word: &[u8]) -> Option<bool> {
    const WITH: [&[u8]; 4] = [b"ex", b"px", b"exat", b"pxat"];
    const ALONE: [&[u8]; 2] = [b"keepttl", b"persist"];
    let is = |other: &&[u8]| word.eq_ignore_ascii_case(other);
    match (WITH.iter().any(is), ALONE.iter().any(is)) {
        (true, _) => Some(true),
        (_, true) => Some(false),
        _ => None,
    }
}

/// The expiry of a value that this request stores.
pub(super) fn expiry(request: &Request, message: &[u8], unix: u64) -> Expiry {
    let head = message.get(..request.head as usize).unwrap_or_default();
    let args: Vec<&[u8]> = Args::of(head).map(|arg| arg.of(head)).collect();
    let number = |at: usize| args.get(at).and_then(|text| integer(text));
    let left = |number: Option<i64>, unit: &[u8]| {
        let seconds = match unit.to_ascii_lowercase().as_slice() {
            b"px" => number?.div_ceil_of(1000),
            b"exat" => number?.saturating_sub_unsigned(unix),
            b"pxat" => number?.div_ceil_of(1000).saturating_sub_unsigned(unix),
            _ => number?,
        };
        // A value that has expired already must not live for ever.
        Some(if seconds == 0 { -1 } else { seconds })
    };
    let found = match Command::of(request.command).map_or("", |command| command.name) {
        "setex" | "expire" => left(number(2), b"ex"),
        "psetex" | "pexpire" => left(number(2), b"px"),
        "expireat" => left(number(2), b"exat"),
        "pexpireat" => left(number(2), b"pxat"),
        name @ ("set" | "getex") => {
            let first = if name == "set" { 3 } else { 2 };
            let is_option = |&at: &usize| args.get(at).is_some_and(|word| option(word).is_some());
            match (first..args.len()).find(is_option) {
                None if name == "set" => return Expiry::Never,
                None => None,
                Some(at) if option(args[at]) == Some(true) => left(number(at + 1), args[at]),
                // The value keeps its own time, or loses it.
                Some(at) if args[at].eq_ignore_ascii_case(b"persist") => return Expiry::Never,
                Some(_) => None,
            }
        }
        _ => None,
    };
    found.map_or(Expiry::None, Expiry::In)
}

/// Division that rounds up.
trait DivCeil {
    fn div_ceil_of(self, divisor: i64) -> i64;
}

impl DivCeil for i64 {
    fn div_ceil_of(self, divisor: i64) -> i64 {
        self.div_euclid(divisor) + i64::from(self.rem_euclid(divisor) > 0)
    }
}

/// Appends the request with this expiry, in seconds; 0: never, less: at once.
fn with_ttl(request: &Request, command: &Command, head: &[u8], ttl: i64, out: &mut Vec<u8>) -> bool {
    let mut args = Args::of(head);
    let count = args.left();
    args.next();
    let spans: Vec<Span> = Args::of(head).collect();
    let word = |at: usize| spans.get(at).map(|span| span.of(head)).unwrap_or_default();
    // A time in the past makes the value expire at once.
    let (unit, number): (&[u8], String) = match ttl {
        ..0 => (b"PXAT", "1".to_owned()),
        _ => (b"EX", ttl.to_string()),
    };
    if request.is_open {
        // The value is still to come, and so is what may stand behind it.
        if command.name != "set" || count != 3 || ttl <= 0 {
            return false;
        }
        append_number(b'*', 4, out);
        [&b"SETEX"[..], word(1), number.as_bytes()]
            .iter()
            .for_each(|word| append_bulk(word, out));
        out.extend_from_slice(head.get(args_end(head, 2)..).unwrap_or_default());
        return true;
    }
    if request.body > 0 {
        return false;
    }
    let mut words: Vec<&[u8]> = Vec::with_capacity(spans.len() + 2);
    match command.name {
        "set" | "getex" => {
            let first = if command.name == "set" { 3 } else { 2 };
            words.extend((0..first).map(word));
            let mut at = first;
            while at < spans.len() {
                match option(word(at)) {
                    Some(true) => at += 1,
                    Some(false) => {}
                    None => words.push(word(at)),
                }
                at += 1;
            }
            match (ttl, command.name) {
                (0, "set") => {}
                (0, _) => words.push(b"PERSIST"),
                _ => words.extend([unit, number.as_bytes()]),
            }
        }
        "setex" | "psetex" => {
            words.extend([&b"SET"[..], word(1), word(3)]);
            if ttl != 0 {
                words.extend([unit, number.as_bytes()]);
            }
        }
        "expire" | "pexpire" | "expireat" | "pexpireat" if ttl == 0 => {
            words.extend([&b"PERSIST"[..], word(1)])
        }
        "expire" | "pexpire" | "expireat" | "pexpireat" => {
            let name: &[u8] = if ttl < 0 { b"PEXPIREAT" } else { b"EXPIRE" };
            words.extend([name, word(1), number.as_bytes()]);
            words.extend((3..spans.len()).map(word));
        }
        _ => return false,
    }
    append_number(b'*', words.len() as i64, out);
    words.iter().for_each(|word| append_bulk(word, out));
    true
}

/// The position behind so many words.
fn args_end(head: &[u8], words: usize) -> usize {
    let mut args = Args::of(head);
    args.by_ref().take(words).for_each(drop);
    args.position()
}

#[cfg(test)]
mod tests {
    use proxima_wire::{
        message::{Parse, Parsed},
        resp::{self, Limits},
    };

    use super::{expiry, rewrite};
    use crate::protocol::{Change, Expiry};

    fn message(words: &str) -> Vec<u8> {
        let words: Vec<&str> = words.split(' ').collect();
        let mut out = format!("*{}\r\n", words.len());
        words
            .iter()
            .for_each(|word| out += &format!("${}\r\n{word}\r\n", word.len()));
        out.into_bytes()
    }

    fn changed(words: &str, change: Change<'_>) -> Option<Vec<u8>> {
        let message = message(words);
        let Parsed::Head(request) =
            resp::request(&mut Parse::default(), &message, &Limits { value: 1 << 20 })
        else {
            panic!("{words}");
        };
        let mut out = Vec::new();
        rewrite(&request, &message, &change, &mut out).then_some(out)
    }

    #[test]
    fn a_key_is_changed_where_it_stands_and_nowhere_else() {
        for (words, expected) in [
            ("GET k", Some("GET p:k")),
            ("SET k k EX 10", Some("SET p:k k EX 10")),
            ("EVAL return 1 k", Some("EVAL return 1 p:k")),
            ("OBJECT ENCODING k", Some("OBJECT ENCODING p:k")),
            ("MGET a b", None),
            ("LMPOP 1 k LEFT", None),
            ("XREAD STREAMS k 0", None),
            ("PING", None),
            ("NOSUCH k", None),
        ] {
            let key = Some(&b"p:k"[..]);
            let found = changed(words, Change { key, ttl: None });
            assert_eq!(found, expected.map(message), "{words}");
        }
    }

    #[test]
    fn an_expiry_is_read_and_changed_in_every_form() {
        const NOW: u64 = 1000;
        for (words, left, longer, never, gone) in [
            (
                "SET k v",
                Expiry::Never,
                "SET k v EX 60",
                "SET k v",
                "SET k v PXAT 1",
            ),
            (
                "SET k v ex 5 NX",
                Expiry::In(5),
                "SET k v NX EX 60",
                "SET k v NX",
                "SET k v NX PXAT 1",
            ),
            (
                "SET k v PXAT 1001500",
                Expiry::In(2),
                "SET k v EX 60",
                "SET k v",
                "SET k v PXAT 1",
            ),
            (
                "SETEX k 5 v",
                Expiry::In(5),
                "SET k v EX 60",
                "SET k v",
                "SET k v PXAT 1",
            ),
            (
                "PSETEX k 1 v",
                Expiry::In(1),
                "SET k v EX 60",
                "SET k v",
                "SET k v PXAT 1",
            ),
            (
                "GETEX k EXAT 900",
                Expiry::In(-100),
                "GETEX k EX 60",
                "GETEX k PERSIST",
                "GETEX k PXAT 1",
            ),
            (
                "GETEX k PERSIST",
                Expiry::Never,
                "GETEX k EX 60",
                "GETEX k PERSIST",
                "GETEX k PXAT 1",
            ),
            (
                "EXPIRE k 7 NX",
                Expiry::In(7),
                "EXPIRE k 60 NX",
                "PERSIST k",
                "PEXPIREAT k 1 NX",
            ),
            (
                "PEXPIREAT k 1000000",
                Expiry::In(-1),
                "EXPIRE k 60",
                "PERSIST k",
                "PEXPIREAT k 1",
            ),
        ] {
            let text = message(words);
            let Parsed::Head(request) =
                resp::request(&mut Parse::default(), &text, &Limits { value: 1 << 20 })
            else {
                panic!("{words}");
            };
            assert_eq!(expiry(&request, &text, NOW), left, "{words}");
            for (ttl, expected) in [(60, longer), (0, never), (-1, gone)] {
                let found = changed(
                    words,
                    Change {
                        key: None,
                        ttl: Some(ttl),
                    },
                );
                assert_eq!(found, Some(message(expected)), "{words} with {ttl}");
            }
        }
        for words in ["GET k", "SET k v KEEPTTL", "GETEX k", "INCR k", "DEL k"] {
            let text = message(words);
            let Parsed::Head(request) =
                resp::request(&mut Parse::default(), &text, &Limits { value: 1 << 20 })
            else {
                panic!("{words}");
            };
            assert_eq!(expiry(&request, &text, NOW), Expiry::None, "{words}");
        }
    }
}
