//! The assignments of a SET statement.

use super::{
    LONGEST, Mode,
    token::{Comments, Token, Tokens},
};

/// One assignment of a SET statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Assignment<'a> {
    /// Its text.
    pub text: &'a [u8],
    /// The system variable that it sets for the session. `None`: it sets something else.
    pub variable: Option<&'a [u8]>,
}

/// The assignments of this text. `None`: it is not one SET statement, or cannot be read, or some servers read it
/// in another way than others.
pub fn assignments(text: &[u8], mode: Mode) -> Option<Vec<Assignment<'_>>> {
    if text.len() > LONGEST || !mode.charset.is_readable(text) {
        return None;
    }
    let mut tokens = Tokens::of(text, mode, Comments::Executed);
    let Token::Word(_, start, end) = tokens.next()? else {
        return None;
    };
    if !tokens.slice(start, end).eq_ignore_ascii_case(b"set") {
        return None;
    }
    let mut all = Vec::new();
    loop {
        let begun = tokens.at;
        let (variable, last) = assignment(&mut tokens)?;
        let ends = match last {
            Token::End => tokens.at,
            _ => tokens.at - 1,
        };
        let text = text.get(begun..ends)?.trim_ascii();
        all.push(Assignment { text, variable });
        if last != Token::Mark(b',') {
            let is_one = last == Token::End || tokens.next()? == Token::End;
            let is_plain = is_one && tokens.comments == 0 && !all.iter().any(|one| one.text.is_empty());
            return is_plain.then_some(all);
        }
    }
}

/// Reads one assignment: the variable that it sets, and the token behind it.
fn assignment<'a>(tokens: &mut Tokens<'a>) -> Option<(Option<&'a [u8]>, Token)> {
    let (mut target, mut variable, mut is_over, mut depth) = (Vec::new(), None, false, 0u32);
    loop {
        let token = tokens.next()?;
        match token {
            Token::Mark(b',') if depth == 0 => return Some((variable, token)),
            Token::Mark(b';') | Token::End => return (depth == 0).then_some((variable, token)),
            Token::Mark(b'(') => depth += 1,
            Token::Mark(b')') => depth = depth.checked_sub(1)?,
            Token::Mark(b'=') | Token::Assign if !is_over => {
                variable = set_by(&target, tokens);
                is_over = true;
            }
            _ => {}
        }
        if !is_over {
            target.push(token);
        }
    }
}

/// The variable of the session that these tokens before `=` name.
fn set_by<'a>(target: &[Token], tokens: &Tokens<'a>) -> Option<&'a [u8]> {
    let name = |token: &Token| match *token {
        Token::Word(_, start, end) | Token::Name(start, end) => Some(tokens.slice(start, end)),
        _ => None,
    };
    let is_own = |token: &Token| {
        name(token).is_some_and(|scope| {
            scope.eq_ignore_ascii_case(b"session") || scope.eq_ignore_ascii_case(b"local")
        })
    };
    match target {
        [one] | [Token::SystemVariable(false), one] => name(one),
        [scope, one] if is_own(scope) => name(one),
        [Token::SystemVariable(false), scope, Token::Mark(b'.'), one] if is_own(scope) => name(one),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{super::Mode, assignments};

    /// Texts and variables; an empty name: it sets something else.
    fn read(text: &str) -> Option<Vec<(&str, &str)>> {
        let all = assignments(text.as_bytes(), Mode::default())?;
        let pair = |one: super::Assignment<'_>| {
            let place = |part: &[u8]| {
                let start = part.as_ptr() as usize - text.as_ptr() as usize;
                &text[start..start + part.len()]
            };
            (place(one.text), one.variable.map_or("", place))
        };
        Some(all.into_iter().map(pair).collect())
    }

    #[test]
    fn assignments_are_told_apart_with_what_they_set() {
        for (text, expected) in [
            ("SET a = 1", vec![("a = 1", "a")]),
            (
                "set @@a=1,@@session.b:=f(1, ',', \"x,\") , LOCAL `c`=(2,(3));",
                vec![
                    ("@@a=1", "a"),
                    ("@@session.b:=f(1, ',', \"x,\")", "b"),
                    ("LOCAL `c`=(2,(3))", "c"),
                ],
            ),
            (
                "SET /* a=1, */ SESSION a=b=c, NAMES utf8 COLLATE x, @u=1 -- c",
                vec![
                    ("/* a=1, */ SESSION a=b=c", "a"),
                    ("NAMES utf8 COLLATE x", ""),
                    ("@u=1 -- c", ""),
                ],
            ),
            (
                "SET GLOBAL a=1, @@global.b=2, @@persist.c=3, PERSIST d=4",
                vec![
                    ("GLOBAL a=1", ""),
                    ("@@global.b=2", ""),
                    ("@@persist.c=3", ""),
                    ("PERSIST d=4", ""),
                ],
            ),
            ("SET TRANSACTION READ ONLY", vec![("TRANSACTION READ ONLY", "")]),
        ] {
            assert_eq!(read(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_is_not_one_statement_that_all_servers_read_alike_has_none() {
        for text in [
            "",
            "SET",
            "SET ,",
            "SET a=1,",
            "SELECT 1",
            "SET a=1; SET b=2",
            "SET a=(1",
            "SET a=1)",
            "SET a='x",
            "SET a=1 /*!40000 , b=2 */",
            "SET a=1 /*M!100000 , b=2 */",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
