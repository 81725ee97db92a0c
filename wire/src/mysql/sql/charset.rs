//! Character sets, as far as they decide what a byte of a text is.

/// What the bytes above 127 of a text may be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Charset {
    /// UTF-8 or ASCII: letters, of which no byte is below 128.
    #[default]
    Utf8,
    /// A character each, some of which are blanks: latin1 and the others of one byte.
    Single,
    /// Parts of characters whose second byte may be a quote or a backslash: gbk, sjis, big5, and every set that
    /// is not known.
    Hiding,
}

/// The names of `SHOW CHARACTER SET` that are UTF-8.
const UTF8: [&str; 5] = ["utf8", "utf8mb3", "utf8mb4", "ascii", "binary"];

/// Those of one byte a character. swe7 has letters in the place of `\` and `@`, and is left out.
const SINGLE: [&str; 20] = [
    "armscii8", "cp1250", "cp1251", "cp1256", "cp1257", "cp850", "cp852", "cp866", "dec8", "geostd8",
    "greek", "hebrew", "hp8", "keybcs2", "koi8r", "koi8u", "latin1", "latin2", "latin5", "latin7",
];

impl Charset {
    /// The set with this name, in any case, as `character_set_client` tells it.
    pub fn of(name: &[u8]) -> Self {
        let is_in = |names: &[&str]| {
            names
                .iter()
                .any(|other| other.as_bytes().eq_ignore_ascii_case(name))
        };
        // In `binary` each byte is a character, and none above 127 is a blank.
        if is_in(&UTF8) {
            Self::Utf8
        } else if is_in(&SINGLE) {
            Self::Single
        } else {
            Self::Hiding
        }
    }

    /// Is each byte of this text what it seems to be?
    pub(super) fn is_readable(self, text: &[u8]) -> bool {
        self != Self::Hiding || text.is_ascii()
    }
}

#[cfg(test)]
mod tests {
    use super::Charset;

    #[test]
    fn sets_whose_characters_may_hide_a_quote_are_told_from_others() {
        for (name, charset) in [
            ("utf8mb4", Charset::Utf8),
            ("UTF8", Charset::Utf8),
            ("latin1", Charset::Single),
            ("koi8r", Charset::Single),
            ("gbk", Charset::Hiding),
            ("sjis", Charset::Hiding),
            ("big5", Charset::Hiding),
            ("cp932", Charset::Hiding),
            ("gb18030", Charset::Hiding),
            ("swe7", Charset::Hiding),
            ("", Charset::Hiding),
        ] {
            assert_eq!(Charset::of(name.as_bytes()), charset, "{name}");
        }
    }
}
