//! `SET @proxima_consistency = '…'`: how fresh the reads of a session are. The proxy answers it, and keeps no
//! connection for it.

use proxima_wire::mysql::sql::{Mode, assignments};

use super::words::has_word;
use crate::protocol::Consistency;

const NAME: &[u8] = b"proxima_consistency";

/// What a text says of the variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum OwnVariable {
    /// It sets another one.
    Untouched,
    /// Reads are so fresh from here on; `None`: as the listener has it.
    Set(Option<Consistency>),
    /// It has no such value.
    Wrong(String),
    /// It is set beside others.
    NotAlone,
}

impl OwnVariable {
    /// What this text says.
    pub(super) fn of(text: &[u8], mode: Mode) -> Self {
        if !has_word(text, NAME) {
            return Self::Untouched;
        }
        let all = assignments(text, mode).unwrap_or_default();
        let values: Vec<&[u8]> = all.iter().filter_map(|one| value(one.text)).collect();
        match (values[..].first(), all.len()) {
            (None, _) => Self::Untouched,
            (Some(&value), 1) => Self::read(value),
            _ => Self::NotAlone,
        }
    }

    fn read(value: &[u8]) -> Self {
        let word = unquoted(value);
        let is_none = [&b""[..], b"default", b"null"]
            .iter()
            .any(|none| word.eq_ignore_ascii_case(none));
        match Consistency::of(word) {
            Some(consistency) => Self::Set(Some(consistency)),
            None if is_none => Self::Set(None),
            None => Self::Wrong(String::from_utf8_lossy(word).into_owned()),
        }
    }
}

/// The value in an assignment to the variable.
fn value(assignment: &[u8]) -> Option<&[u8]> {
    let at = assignment.iter().position(|&byte| byte == b'=')?;
    let (target, value) = (&assignment[..at], &assignment[at + 1..]);
    let target = target.strip_suffix(b":").unwrap_or(target).trim_ascii();
    let name = unquoted(target.strip_prefix(b"@")?);
    name.eq_ignore_ascii_case(NAME).then_some(value.trim_ascii())
}

/// The text within quotes of any kind; the same text if it has none.
fn unquoted(text: &[u8]) -> &[u8] {
    match text {
        [first @ (b'\'' | b'"' | b'`'), inside @ .., last] if first == last => inside,
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::{Consistency, Mode, OwnVariable};

    #[test]
    fn the_variable_is_set_alone_and_to_a_word() {
        let set = |word| OwnVariable::Set(Some(word));
        for (text, expected) in [
            ("SET @proxima_consistency = 'session'", set(Consistency::Session)),
            (
                "set @`Proxima_Consistency`:=\"CAUSAL\" ;",
                set(Consistency::Causal),
            ),
            ("SET @proxima_consistency=eventual", set(Consistency::Eventual)),
            ("SET @proxima_consistency=DEFAULT", OwnVariable::Set(None)),
            ("SET @proxima_consistency=NULL", OwnVariable::Set(None)),
            (
                "SET @proxima_consistency='soon'",
                OwnVariable::Wrong("soon".into()),
            ),
            ("SET @proxima_consistency='strict', a=1", OwnVariable::NotAlone),
            ("SET @a='proxima_consistency'", OwnVariable::Untouched),
            ("SET @proxima_consistency_2='session'", OwnVariable::Untouched),
            ("SELECT @proxima_consistency", OwnVariable::Untouched),
            ("SET @a = 1", OwnVariable::Untouched),
        ] {
            assert_eq!(
                OwnVariable::of(text.as_bytes(), Mode::default()),
                expected,
                "{text}"
            );
        }
    }
}
