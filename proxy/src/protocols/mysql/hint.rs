//! A client's hint for one statement, in a comment before it, as in `/* proxima: member=writer,
//! consistency=eventual */`.

use crate::protocol::Role;

/// The hint in such a comment. Unknown words have no effect: the next version may know them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Hint {
    /// The server that is to be asked; `None` if the hint does not say.
    pub(super) member: Option<Role>,
    /// The read waits for nothing; `None` if the hint does not say.
    pub(super) is_eventual: Option<bool>,
}

impl Hint {
    /// The hint that a text begins with.
    pub(super) fn of(text: &[u8]) -> Self {
        let mut hint = Self::default();
        let inside = text.trim_ascii_start().strip_prefix(b"/*");
        let words = inside.and_then(|inside| inside.trim_ascii_start().strip_prefix(b"proxima:"));
        let end = words.and_then(|words| memchr::memmem::find(words, b"*/"));
        let (Some(words), Some(end)) = (words, end) else {
            return hint;
        };
        for word in words[..end].split(|byte| byte.is_ascii_whitespace() || *byte == b',') {
            match word {
                b"member=writer" => hint.member = Some(Role::Writer),
                b"member=reader" => hint.member = Some(Role::Reader),
                b"consistency=eventual" => hint.is_eventual = Some(true),
                b"consistency=strict" => hint.is_eventual = Some(false),
                _ => {}
            }
        }
        hint
    }
}

#[cfg(test)]
mod tests {
    use super::{Hint, Role};

    #[test]
    fn the_first_comment_is_a_hint_if_it_says_for_whom() {
        let says = |member, is_eventual| Hint { member, is_eventual };
        for (text, expected) in [
            (
                "/* proxima: member=writer */ SELECT 1",
                says(Some(Role::Writer), None),
            ),
            (
                " /*proxima:member=reader*/SELECT 1",
                says(Some(Role::Reader), None),
            ),
            (
                "/* proxima: consistency=eventual, member=reader later=1 */ SHOW TABLES",
                says(Some(Role::Reader), Some(true)),
            ),
            (
                "/* proxima: consistency=strict */ SELECT 1",
                says(None, Some(false)),
            ),
            ("/* proxima: consistency=never */ SELECT 1", Hint::default()),
            ("/* proxima: member=writer SELECT 1", Hint::default()),
            ("/* for proxima: member=writer */ SELECT 1", Hint::default()),
            ("SELECT 1 /* proxima: member=writer */", Hint::default()),
            ("SELECT '/* proxima: member=writer */'", Hint::default()),
            ("", Hint::default()),
        ] {
            assert_eq!(Hint::of(text.as_bytes()), expected, "{text}");
        }
    }
}
