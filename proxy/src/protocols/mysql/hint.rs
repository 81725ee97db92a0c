//! A client's hint for one statement, in a comment before it, as in `/* proxima: member=writer,
//! consistency=eventual */`.

use crate::protocol::{Consistency, Role};

/// The hint in such a comment. Unknown words have no effect: the next version may know them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Hint {
    /// The server that is to be asked; `None` if the hint does not say.
    pub(super) member: Option<Role>,
    /// How fresh the read is; `None` if the hint does not say.
    pub(super) consistency: Option<Consistency>,
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
                word => {
                    let name = word.strip_prefix(b"consistency=");
                    hint.consistency = name.and_then(Consistency::of).or(hint.consistency);
                }
            }
        }
        hint
    }
}

#[cfg(test)]
mod tests {
    use super::{Consistency, Hint, Role};

    #[test]
    fn the_first_comment_is_a_hint_if_it_says_for_whom() {
        let says = |member, consistency| Hint { member, consistency };
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
                says(Some(Role::Reader), Some(Consistency::Eventual)),
            ),
            (
                "/* proxima: consistency=strict */ SELECT 1",
                says(None, Some(Consistency::Strict)),
            ),
            (
                "/* proxima: consistency=session */ SELECT 1",
                says(None, Some(Consistency::Session)),
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
