//! Character sets, as far as they decide the meaning of a text's bytes.

/// The possible meanings of a text's bytes above 127.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Charset {
    /// UTF-8 or ASCII: letters, of which no byte is below 128.
    #[default]
    Utf8,
    /// A character each, some of which are blanks: latin1 and the others of one byte.
    Single,
    /// Parts of characters whose second byte may be a quote or a backslash: gbk, sjis, big5, and every set
    /// that is not known.
    Hiding,
}

/// The names of `SHOW CHARACTER SET` that are UTF-8.
const UTF8: [&str; 5] = ["utf8", "utf8mb3", "utf8mb4", "ascii", "binary"];

/// Those of one byte a character. swe7 has letters in the place of `\` and `@`, and is left out.
const SINGLE: [&str; 23] = [
    "armscii8", "cp1250", "cp1251", "cp1256", "cp1257", "cp850", "cp852", "cp866", "dec8", "geostd8",
    "greek", "hebrew", "hp8", "keybcs2", "koi8r", "koi8u", "latin1", "latin2", "latin5", "latin7", "macce",
    "macroman", "tis620",
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

    /// The set of the collation with this number, as logins name it. A login has only the lowest byte of the
    /// number; clients whose collation has a larger number set it by a statement.
    pub const fn of_collation(number: u16) -> Self {
        // MariaDB has each of the first collations once more, without padding.
        let number = match number {
            1024..2048 => number - 1024,
            _ => number,
        };
        match number {
            11 | 33 | 45 | 46 | 63 | 65 | 83 | 192..=215 | 223..=247 | 255..=323 => Self::Utf8,
            576..=578 | 608..=610 | 2048..2560 => Self::Utf8,
            2..=9 | 14..=16 | 18 | 20..=23 | 25..=27 | 29..=32 | 34 | 36..=44 => Self::Single,
            47..=53 | 57..=59 | 64 | 66..=75 | 77..=81 | 89 | 92..=94 | 99 => Self::Single,
            _ => Self::Hiding,
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
