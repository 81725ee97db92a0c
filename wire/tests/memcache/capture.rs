//! Reads `captures/*.txt`; `captures/record.py` describes the form.

use std::path::Path;

/// A single request, and the reply of a real memcached.
#[derive(Debug)]
pub(crate) struct Exchange {
    /// File and line, for messages of failed tests.
    pub(crate) place: String,
    pub(crate) request: Vec<u8>,
    pub(crate) reply: Vec<u8>,
    pub(crate) closed: bool,
}

/// All exchanges of one file.
pub(crate) fn read(name: &str) -> Vec<Exchange> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("captures").join(name);
    let text = std::fs::read_to_string(&path).unwrap();
    let mut exchanges: Vec<Exchange> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let (mark, rest) = line.split_at(line.len().min(1));
        let bytes = || decode(rest.strip_prefix(' ').unwrap_or(rest));
        match (mark, exchanges.last_mut()) {
            (">", _) => exchanges.push(Exchange {
                place: format!("{name}:{}", number + 1),
                request: bytes(),
                reply: Vec::new(),
                closed: false,
            }),
            ("<", Some(last)) => last.reply = bytes(),
            ("!", Some(last)) => last.closed = true,
            ("" | "#", _) => {}
            _ => panic!("{name}:{}: {line}", number + 1),
        }
    }
    assert!(!exchanges.is_empty(), "{name} is empty");
    exchanges
}

pub(crate) fn decode(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some(char) = rest.chars().next() {
        rest = &rest[1..];
        match char {
            '\\' => {
                let escape = &rest[..1];
                rest = &rest[1..];
                out.push(match escape {
                    "r" => b'\r',
                    "n" => b'\n',
                    "\\" => b'\\',
                    "x" => {
                        let (hex, after) = rest.split_at(2);
                        rest = after;
                        u8::from_str_radix(hex, 16).unwrap()
                    }
                    other => panic!("\\{other} in {text}"),
                });
            }
            '{' => {
                let (repeat, after) = rest.split_once('}').unwrap();
                rest = after;
                let (byte, count) = repeat.split_once('*').unwrap();
                out.resize(out.len() + count.parse::<usize>().unwrap(), byte.as_bytes()[0]);
            }
            plain => out.push(plain as u8),
        }
    }
    out
}
