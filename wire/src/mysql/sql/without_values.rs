//! The text of a statement without its values, for people.

use super::{
    LONGEST, Mode,
    token::{Comments, Token, Tokens},
};

/// The most bytes that are told of a text.
const TOLD: usize = 1024;
/// What stands in place of a value.
const VALUE: &str = "?";
/// What stands in place of further values of a list, and of what is left out at the end.
const MORE: &str = "...";

/// The text with `?` in place of each number and each text in quotes, without comments, and with one blank where
/// there are any. Further values of a list are one `...`, so that lists of any length look alike. Names and words
/// stay. `None`: the text cannot be read.
pub fn without_values(text: &[u8], mode: Mode) -> Option<String> {
    if text.len() > LONGEST || !mode.charset.is_readable(text) {
        return None;
    }
    let mut tokens = Tokens::of(text, mode, Comments::Skipped);
    let (mut out, mut end) = (String::new(), 0);
    while out.len() < TOLD {
        tokens.blanks()?;
        let begin = tokens.at;
        let token = tokens.next()?;
        let is_digit = text.get(begin).is_some_and(u8::is_ascii_digit);
        let word = match token {
            Token::End => return Some(out),
            // 0xff is a word to the lexer, and a value to servers.
            Token::Word(..) if is_digit => VALUE.into(),
            // The name of a variable may be a text in quotes.
            Token::Text | Token::Number => VALUE.into(),
            Token::UserVariable => "@?".into(),
            Token::Word(..) | Token::Name(..) | Token::SystemVariable(_) | Token::Assign | Token::Mark(_) => {
                String::from_utf8_lossy(text.get(begin..tokens.at)?)
            }
        };
        let is_value = word == VALUE;
        if is_value && begins_list(&out) {
            let before = out.trim_end_matches([' ', ',']).len();
            let has_more = out[..before].ends_with(MORE);
            out.truncate(before);
            if !has_more {
                out.push_str(", ");
                out.push_str(MORE);
            }
        } else {
            if begin > end && !out.is_empty() {
                out.push(' ');
            }
            out.push_str(&word);
        }
        end = tokens.at;
    }
    out.truncate(out.floor_char_boundary(TOLD));
    out.push_str(MORE);
    Some(out)
}

/// Is a value that comes next another one of a list?
fn begins_list(out: &str) -> bool {
    let Some(before) = out.trim_end().strip_suffix(',') else {
        return false;
    };
    before.ends_with(VALUE) || before.ends_with(MORE)
}

#[cfg(test)]
mod tests {
    use super::{LONGEST, MORE, Mode, TOLD, without_values};

    fn shown(text: &str) -> String {
        without_values(text.as_bytes(), Mode::default()).unwrap()
    }

    #[test]
    fn values_are_left_out_and_names_stay() {
        for (text, expected) in [
            ("SELECT 1", "SELECT ?"),
            (
                "select  a.b,\n`c d` from t -- secret\n where x='it''s'",
                "select a.b, `c d` from t where x=?",
            ),
            (
                "INSERT INTO t VALUES (1, 'a', 2.5e3), (2,'b',3)",
                "INSERT INTO t VALUES (?, ...), (?, ...)",
            ),
            (
                "SELECT * FROM t WHERE id IN (1,2,3,4)",
                "SELECT * FROM t WHERE id IN (?, ...)",
            ),
            (
                "UPDATE t /* secret */ SET a = -1, b = 2",
                "UPDATE t SET a = -?, b = ?",
            ),
            (
                "SET PASSWORD FOR 'me'@'here' = 'secret'",
                "SET PASSWORD FOR ?@? = ?",
            ),
            ("SELECT @'secret', @@sql_mode", "SELECT @?, @@sql_mode"),
            ("SELECT x'ff', _utf8'a', 0xff", "SELECT x?, _utf8?, ..."),
            ("SELECT 0xff, a", "SELECT ?, a"),
            ("SELECT \"a\\\"b\"", "SELECT ?"),
            ("/*!50000 SELECT 'secret' */", ""),
            ("", ""),
        ] {
            assert_eq!(shown(text), expected, "{text}");
        }
    }

    #[test]
    fn quotes_are_read_as_the_connection_reads_them() {
        let ansi = Mode {
            ansi_quotes: true,
            ..Mode::default()
        };
        assert_eq!(without_values(b"SELECT \"a\"", ansi).unwrap(), "SELECT \"a\"");
        let plain = Mode {
            no_backslash_escapes: true,
            ..Mode::default()
        };
        assert_eq!(
            without_values(b"SELECT 'a\\', 'b'", plain).unwrap(),
            "SELECT ?, ..."
        );
    }

    #[test]
    fn what_cannot_be_read_is_not_told_and_what_is_long_is_cut() {
        assert_eq!(without_values(b"SELECT 'secret", Mode::default()), None);
        assert_eq!(without_values(&vec![b'a'; LONGEST + 1], Mode::default()), None);
        let long = shown(&"ü, ".repeat(TOLD));
        assert!(long.len() <= TOLD + MORE.len() && long.ends_with(MORE));
    }
}
