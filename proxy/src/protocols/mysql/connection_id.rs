//! The number of a client's connection, where the client selects it in SQL: it is the proxy's, by which
//! `KILL` finds the session, and not that of the connection to a server that a statement happens to have.
//! Expressions compare it with other numbers of the server's, and have the server's.

use super::words::{begins_with, has_word};

/// The ways to ask for the number.
const ASKED: [&[u8]; 3] = [
    b"connection_id",
    b"@@pseudo_thread_id",
    b"@@session.pseudo_thread_id",
];

/// The text that is executed in place of one that selects the number. `None` if it does not, or reads a table,
/// such as the list of processes, whose numbers are the server's.
pub(super) fn with_connection_id(text: &[u8], id: u64) -> Option<Vec<u8>> {
    let asks = has_word(text, ASKED[0]) || has_word(text, b"pseudo_thread_id");
    if !asks || !begins_with(text, &["select"]) {
        return None;
    }
    let (mut out, mut at, mut is_changed) = (Vec::with_capacity(text.len() + 64), 0, false);
    // The last byte that is no white space, at the beginning of an item of the list.
    let mut begins_item = false;
    while let Some(&byte) = text.get(at) {
        let rest = &text[at..];
        if let Some(len) = quoted(rest) {
            out.extend_from_slice(&rest[..len]);
            (at, begins_item) = (at + len, false);
            continue;
        }
        let len = word(rest);
        if len == 0 {
            begins_item = begins_item && byte.is_ascii_whitespace() || byte == b',';
            out.push(byte);
            at += 1;
            continue;
        }
        let (name, behind) = rest.split_at(len);
        if [&b"from"[..], b"into", b"union"]
            .iter()
            .any(|stop| name.eq_ignore_ascii_case(stop))
        {
            return None;
        }
        let asked = ASKED.iter().find(|asked| name.eq_ignore_ascii_case(asked));
        let whole = asked.and_then(|asked| match asked.first() {
            Some(b'@') => Some(len),
            _ => Some(len + parentheses(behind)?),
        });
        let end = whole
            .filter(|_| begins_item)
            .and_then(|whole| Some((whole, ItemEnd::of(&rest[whole..])?)));
        match end {
            Some((whole, end)) => {
                out.extend_from_slice(format!("CAST({id} AS UNSIGNED)").as_bytes());
                if end == ItemEnd::Here {
                    // The column has the name that it has at a server.
                    out.extend_from_slice(b" AS `");
                    out.extend_from_slice(&rest[..whole]);
                    out.push(b'`');
                }
                (at, is_changed, begins_item) = (at + whole, true, false);
            }
            None => {
                out.extend_from_slice(name);
                (at, begins_item) = (at + len, name.eq_ignore_ascii_case(b"select"));
            }
        }
    }
    is_changed.then_some(out)
}

/// Bytes of a text in quotes, or of a comment, at the beginning.
fn quoted(text: &[u8]) -> Option<usize> {
    let end: &[u8] = match text {
        [quote @ (b'\'' | b'"' | b'`'), ..] => std::slice::from_ref(quote),
        [b'/', b'*', ..] => b"*/",
        [b'#', ..] | [b'-', b'-', ..] => b"\n",
        _ => return None,
    };
    let mut at = end.len().max(1);
    while at < text.len() {
        if text[at] == b'\\' && end.len() == 1 && end != b"\n" && end != b"`" {
            at += 2;
        } else if text[at..].starts_with(end) {
            return Some(at + end.len());
        } else {
            at += 1;
        }
    }
    Some(text.len())
}

/// Bytes of a word at the beginning.
fn word(text: &[u8]) -> usize {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || !byte.is_ascii() || b"_$@.".contains(byte);
    text.iter().position(|byte| !is_part(byte)).unwrap_or(text.len())
}

/// Bytes of an empty pair of parentheses at the beginning, with the white space before and in it.
fn parentheses(text: &[u8]) -> Option<usize> {
    let mut bytes = text
        .iter()
        .enumerate()
        .filter(|(_, byte)| !byte.is_ascii_whitespace());
    let (_, b'(') = bytes.next()? else { return None };
    let (end, b')') = bytes.next()? else { return None };
    Some(end + 1)
}

/// The end of an item of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ItemEnd {
    Here,
    /// Behind its name.
    Named,
}

impl ItemEnd {
    /// The end behind what is selected; `None` if an expression goes on.
    fn of(text: &[u8]) -> Option<Self> {
        match text.trim_ascii_start() {
            [] | [b',' | b';', ..] => Some(Self::Here),
            [b'`' | b'\'' | b'"', ..] => Some(Self::Named),
            rest => {
                let name = &rest[..word(rest)];
                if name.eq_ignore_ascii_case(b"limit") {
                    return Some(Self::Here);
                }
                let operators: [&[u8]; 11] = [
                    b"and", b"or", b"xor", b"div", b"mod", b"in", b"is", b"not", b"like", b"between",
                    b"collate",
                ];
                let is_operator = operators
                    .iter()
                    .any(|operator| name.eq_ignore_ascii_case(operator));
                (!name.is_empty() && !is_operator).then_some(Self::Named)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::with_connection_id;

    #[test]
    fn the_number_stands_where_it_is_selected_and_keeps_its_name() {
        for (text, expected) in [
            (
                "SELECT CONNECTION_ID()",
                Some("SELECT CAST(7 AS UNSIGNED) AS `CONNECTION_ID()`"),
            ),
            (
                "/* a, b */ select 1, connection_id ( ) ;",
                Some("/* a, b */ select 1, CAST(7 AS UNSIGNED) AS `connection_id ( )` ;"),
            ),
            (
                "SELECT connection_id() AS id",
                Some("SELECT CAST(7 AS UNSIGNED) AS id"),
            ),
            (
                "SELECT connection_id() my_id",
                Some("SELECT CAST(7 AS UNSIGNED) my_id"),
            ),
            ("SELECT CONNECTION_ID() + 1", None),
            ("SELECT IS_USED_LOCK('a') = CONNECTION_ID()", None),
            ("SELECT CONNECTION_ID() IN (7)", None),
            (
                "SELECT @@pseudo_thread_id, @@session.pseudo_thread_id x",
                Some("SELECT CAST(7 AS UNSIGNED) AS `@@pseudo_thread_id`, CAST(7 AS UNSIGNED) x"),
            ),
            (
                "SELECT 1, CONNECTION_ID() LIMIT 1",
                Some("SELECT 1, CAST(7 AS UNSIGNED) AS `CONNECTION_ID()` LIMIT 1"),
            ),
            ("SELECT 'connection_id()'", None),
            ("SELECT 'it\\'s connection_id()', \"connection_id()\"", None),
            ("SELECT /* connection_id() */ 1 -- connection_id()", None),
            ("SELECT connection_id", None),
            ("SELECT my_connection_id()", None),
            (
                "SELECT id = CONNECTION_ID() FROM information_schema.processlist",
                None,
            ),
            ("SELECT CONNECTION_ID() INTO @x", None),
            ("KILL CONNECTION_ID()", None),
            ("SELECT 'connection_id", None),
        ] {
            let changed = with_connection_id(text.as_bytes(), 7);
            assert_eq!(changed.as_deref(), expected.map(str::as_bytes), "{text}");
        }
    }
}
