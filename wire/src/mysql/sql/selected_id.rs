//! The places where a text selects the number of its connection.

use super::{
    LONGEST, Mode,
    token::{Comments, Token, Tokens},
};

/// A place where a text selects the number of its connection: an item of the list that is nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SelectedId {
    /// The first byte.
    pub start: usize,
    /// The byte behind it.
    pub end: usize,
    /// The column has a name of its own.
    pub is_named: bool,
}

/// Words behind an expression that goes on, and are no name of its column.
const OPERATORS: [&[u8]; 11] = [
    b"and", b"or", b"xor", b"div", b"mod", b"in", b"is", b"not", b"like", b"between", b"collate",
];

/// The places where this text selects `CONNECTION_ID()` or `@@pseudo_thread_id`. There are none in a text that
/// is not one SELECT, or reads a table: in the list of processes, the numbers are the server's.
pub fn selected_ids(text: &[u8], mode: Mode) -> Vec<SelectedId> {
    let is_readable = text.len() <= LONGEST && mode.charset.is_readable(text);
    is_readable
        .then(|| read(text, mode))
        .flatten()
        .unwrap_or_default()
}

fn read(text: &[u8], mode: Mode) -> Option<Vec<SelectedId>> {
    let mut tokens = Tokens::of(text, mode, Comments::Executed);
    let mut all = Vec::new();
    let (mut depth, mut begins_item) = (0_u32, false);
    let mut token = tokens.next()?;
    if !is_word(&tokens, token, b"select") {
        return None;
    }
    while token != Token::End {
        match token {
            Token::Mark(b'(') => depth += 1,
            Token::Mark(b')') => depth = depth.checked_sub(1)?,
            Token::Mark(b';') if tokens.next()? == Token::End => break,
            Token::Mark(b';') => return None,
            _ => {}
        }
        let stops: [&[u8]; 3] = [b"from", b"into", b"union"];
        if stops.iter().any(|stop| is_word(&tokens, token, stop)) {
            return None;
        }
        if begins_item && let Some(id) = item(&tokens, token) {
            // What is behind it is read again.
            tokens.at = id.end;
            all.push(id);
        }
        let is_list = token == Token::Mark(b',') || is_word(&tokens, token, b"select");
        begins_item = depth == 0 && is_list;
        token = tokens.next()?;
    }
    (tokens.comments == 0).then_some(all)
}

/// The item that begins with this token, if it is the number and nothing else.
fn item(behind: &Tokens<'_>, first: Token) -> Option<SelectedId> {
    let mut tokens = behind.clone();
    let start = match first {
        Token::Word(_, start, _) if is_word(&tokens, first, b"connection_id") => {
            let is_call = tokens.next()? == Token::Mark(b'(') && tokens.next()? == Token::Mark(b')');
            is_call.then_some(start as usize)?
        }
        Token::SystemVariable(false) => {
            let start = tokens.at - 2;
            let mut name = tokens.next()?;
            if is_word(&tokens, name, b"session") {
                name = (tokens.next()? == Token::Mark(b'.')).then(|| tokens.next())??;
            }
            is_word(&tokens, name, b"pseudo_thread_id").then_some(start)?
        }
        _ => return None,
    };
    let end = tokens.at;
    let next = tokens.next()?;
    let is_limit = is_word(&tokens, next, b"limit");
    let is_named = match next {
        Token::Mark(b',' | b';') | Token::End => false,
        Token::Name(..) | Token::Text => true,
        Token::Word(..) if OPERATORS.iter().any(|operator| is_word(&tokens, next, operator)) => {
            return None;
        }
        Token::Word(..) => !is_limit,
        _ => return None,
    };
    Some(SelectedId { start, end, is_named })
}

fn is_word(tokens: &Tokens<'_>, token: Token, word: &[u8]) -> bool {
    match token {
        Token::Word(_, start, end) => tokens.slice(start, end).eq_ignore_ascii_case(word),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::{super::Mode, selected_ids};

    fn found(text: &str, mode: Mode) -> Vec<(&str, bool)> {
        let all = selected_ids(text.as_bytes(), mode);
        all.iter()
            .map(|id| (&text[id.start..id.end], id.is_named))
            .collect()
    }

    #[test]
    fn the_number_is_found_where_it_is_selected_alone() {
        for (text, expected) in [
            ("SELECT CONNECTION_ID()", vec![("CONNECTION_ID()", false)]),
            (
                "/* a, b */ select 1, connection_id ( ) ;",
                vec![("connection_id ( )", false)],
            ),
            ("SELECT connection_id() AS id", vec![("connection_id()", true)]),
            ("SELECT connection_id() `from`", vec![("connection_id()", true)]),
            (
                "SELECT 1, CONNECTION_ID() LIMIT 1",
                vec![("CONNECTION_ID()", false)],
            ),
            (
                "SELECT @@pseudo_thread_id, @@session.pseudo_thread_id x",
                vec![
                    ("@@pseudo_thread_id", false),
                    ("@@session.pseudo_thread_id", true),
                ],
            ),
            ("SELECT CONNECTION_ID() + 1", vec![]),
            ("SELECT IS_USED_LOCK('a') = CONNECTION_ID()", vec![]),
            ("SELECT CONNECTION_ID() IN (7)", vec![]),
            ("SELECT f(1, CONNECTION_ID())", vec![]),
            ("SELECT 'connection_id()'", vec![]),
            ("SELECT 'it\\'s', 'connection_id()'", vec![]),
            ("SELECT /* connection_id() */ 1 -- connection_id()", vec![]),
            ("SELECT connection_id", vec![]),
            (
                "SELECT CONNECTION_ID() FROM information_schema.processlist",
                vec![],
            ),
            ("SELECT CONNECTION_ID() INTO @x", vec![]),
            ("SELECT CONNECTION_ID(); SELECT 1", vec![]),
            ("SELECT /*!50000 CONNECTION_ID() */", vec![]),
            ("KILL CONNECTION_ID()", vec![]),
            ("SELECT 'connection_id", vec![]),
            ("SELECT @@global.pseudo_thread_id", vec![]),
        ] {
            assert_eq!(found(text, Mode::default()), expected, "{text}");
        }
    }

    #[test]
    fn quotes_are_read_as_the_session_reads_them() {
        let text = r"SELECT 'x\', ', connection_id(), '-- '";
        assert_eq!(found(text, Mode::default()), [("connection_id()", false)]);
        let plain = Mode {
            no_backslash_escapes: true,
            ..Mode::default()
        };
        assert_eq!(found(text, plain), []);
    }
}
