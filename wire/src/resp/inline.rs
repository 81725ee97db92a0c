//! Inline commands: a line of words, some of them in quotes.

use super::number::append_number;

/// The number of words on this line; `None`: its quotes are unbalanced.
pub fn count(line: &[u8]) -> Option<u32> {
    let mut words = 0;
    let mut at = 0;
    while let Some(end) = word(line, &mut at, &mut |_| {})? {
        at = end;
        words += 1;
    }
    Some(words)
}

/// Appends the array of bulk strings that means the same as this line. Returns false, and appends nothing, if
/// the quotes are unbalanced.
#[must_use]
pub fn append_array(line: &[u8], out: &mut Vec<u8>) -> bool {
    let Some(words) = count(line) else {
        return false;
    };
    append_number(b'*', i64::from(words), out);
    let mut at = 0;
    while let Some(Some(end)) = word(line, &mut at, &mut |_| {}) {
        let mut len = 0;
        let mut begin = at;
        word(line, &mut begin, &mut |_| len += 1);
        append_number(b'$', len, out);
        word(line, &mut at, &mut |byte| out.push(byte));
        out.extend_from_slice(b"\r\n");
        at = end;
    }
    true
}

const fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

/// Reads the next word, byte by byte, and returns the position behind it. `at` is moved to its beginning.
/// `None`: its quotes are unbalanced; `Some(None)`: there is no further word.
fn word(line: &[u8], at: &mut usize, take: &mut impl FnMut(u8)) -> Option<Option<usize>> {
    while line.get(*at).is_some_and(|&byte| is_blank(byte)) {
        *at += 1;
    }
    let mut here = *at;
    if here >= line.len() {
        return Some(None);
    }
    while let Some(&byte) = line.get(here) {
        here += 1;
        match byte {
            _ if is_blank(byte) => return Some(Some(here - 1)),
            b'"' | b'\'' => return quoted(line, here, byte, take).map(Some),
            _ => take(byte),
        }
    }
    Some(Some(here))
}

/// Reads the rest of a word behind its opening quote. The closing one ends the word.
fn quoted(line: &[u8], mut at: usize, quote: u8, take: &mut impl FnMut(u8)) -> Option<usize> {
    loop {
        let byte = *line.get(at)?;
        at += 1;
        match (byte, line.get(at..).unwrap_or_default()) {
            (b'\\', [b'x', high, low, ..])
                if quote == b'"' && hex(*high).is_some() && hex(*low).is_some() =>
            {
                take(hex(*high)? << 4 | hex(*low)?);
                at += 3;
            }
            (b'\\', [escaped, ..]) if quote == b'"' => {
                take(match escaped {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 8,
                    b'a' => 7,
                    other => *other,
                });
                at += 1;
            }
            (b'\\', [b'\'', ..]) if quote == b'\'' => {
                take(b'\'');
                at += 1;
            }
            (byte, after) if byte == quote => {
                return after.first().is_none_or(|&next| is_blank(next)).then_some(at);
            }
            _ => take(byte),
        }
    }
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|value| value as u8)
}

#[cfg(test)]
mod tests {
    use super::append_array;

    #[test]
    fn words_are_unquoted_as_servers_do() {
        for (line, expected) in [
            ("get a", Some("*2 get a")),
            ("  get \t a \r", Some("*2 get a")),
            (r#"set a "b c""#, Some("*3 set a b c")),
            (r#"a"b""#, Some("*1 ab")),
            (r#""\x41\n\q\"" 'it\'s \n'"#, Some("*2 A\nq\" it's \\n")),
            (r#""""#, Some("*1 ")),
            ("''", Some("*1 ")),
            (r#""a"b"#, None),
            (r#""a"#, None),
            (r#""a\""#, None),
            ("'a", None),
            (r#""\xZZ""#, Some("*1 xZZ")),
            ("", Some("*0")),
        ] {
            let mut out = Vec::new();
            let made = append_array(line.as_bytes(), &mut out);
            let text = String::from_utf8(out).unwrap();
            let words = text.split("\r\n").filter(|word| !word.starts_with('$'));
            let words: Vec<_> = words.collect();
            let shown = words[..words.len() - 1].join(" ");
            assert_eq!(made.then_some(shown.as_str()), expected, "{line:?}");
        }
    }
}
