//! The meaning of a text's first words, beside its class.

use proxima_wire::mysql::{
    Header,
    sql::{self, Class, Statement},
};

/// Does COMMIT or ROLLBACK end the session as well?
pub(super) fn releases(text: &[u8]) -> bool {
    let is = |word: &[u8], name: &str| word.eq_ignore_ascii_case(name.as_bytes());
    let words = text
        .split(|byte| !byte.is_ascii_alphabetic())
        .filter(|word| !word.is_empty());
    // RELEASE SAVEPOINT begins with the word, and NO RELEASE takes it back.
    let mut before: &[u8] = b"no";
    for word in words {
        if is(word, "release") && !is(before, "no") {
            return true;
        }
        before = word;
    }
    false
}

/// Does a statement of transactions end one by its words? One that is rolled back to a savepoint goes on.
pub(super) fn ends_transaction(text: &[u8]) -> bool {
    let is_back = begins_with(text, &["rollback"]);
    begins_with(text, &["commit"]) || is_back && !has_word(text, b"to")
}

/// Is it `SET TRANSACTION`, which counts for the next transaction alone?
pub(super) fn is_for_next_transaction(statement: Statement, text: &[u8]) -> bool {
    statement.class == Class::Session && {
        let mut words = sql::without_comments(text)
            .split(|byte| !byte.is_ascii_alphabetic())
            .filter(|word| !word.is_empty());
        let is = |word: Option<&[u8]>, name: &str| {
            word.is_some_and(|word| word.eq_ignore_ascii_case(name.as_bytes()))
        };
        is(words.next(), "set") && is(words.next(), "transaction")
    }
}

/// Does a text make a role active? A column may have that name.
pub(super) fn sets_role(text: &[u8]) -> bool {
    const ROLE: &[u8] = b"role";
    let mut parts = text.windows(ROLE.len()).enumerate();
    parts.any(|(at, part)| {
        let (before, behind) = (
            text[..at].trim_ascii_end(),
            text[at + ROLE.len()..].trim_ascii_start(),
        );
        let set = before.len().checked_sub(3).map(|begin| &before[begin..]);
        part.eq_ignore_ascii_case(ROLE)
            && set.is_some_and(|set| set.eq_ignore_ascii_case(b"set"))
            && !behind.starts_with(b"=")
    })
}

/// The schema that a message makes the client's own; `None` if it does not.
pub(super) fn used(message: &[u8]) -> Option<&[u8]> {
    match message.get(Header::LEN..)? {
        [0x02, schema @ ..] => Some(schema),
        [0x03, text @ ..] if begins_with(text, &["use"]) => {
            let rest = sql::without_comments(text).get(3..)?;
            let is_word = rest
                .first()
                .is_some_and(|first| first.is_ascii_whitespace() || *first == b'`');
            let name = rest.trim_ascii();
            let name = name.strip_suffix(b";").unwrap_or(name).trim_ascii_end();
            if let Some(quoted) = name.strip_prefix(b"`") {
                return quoted.strip_suffix(b"`").filter(|name| !name.contains(&b'`'));
            }
            let is_part =
                |byte: &u8| byte.is_ascii_alphanumeric() || !byte.is_ascii() || b"_$".contains(byte);
            (is_word && name.iter().all(is_part)).then_some(name)
        }
        _ => None,
    }
}

/// Does it begin a transaction that only reads?
pub(super) fn begins_read_only(text: &[u8]) -> bool {
    begins_with(text, &["start"]) && !has_word(text, b"write") && {
        let mut words = text.split(|byte| !byte.is_ascii_alphabetic());
        words.any(|word| word.eq_ignore_ascii_case(b"read"))
    }
}

/// Does the text begin with a word that asks for no data, and so waits for nothing? A comment that some
/// servers execute may hide one.
pub(super) fn shows(text: &[u8]) -> bool {
    begins_with(text, &SHOWS) || begins_with(text, &["/*"])
}

/// Words that ask for what tables, servers or statements are, and wait for nothing.
pub(super) const SHOWS: [&str; 4] = ["show", "desc", "explain", "help"];

/// May a statement read a table?
pub(super) fn may_read_table(text: &[u8]) -> bool {
    has_word(text, b"from") || has_word(text, b"table")
}

/// Does this stand anywhere in the text, in any case?
pub(super) fn has_word(text: &[u8], word: &[u8]) -> bool {
    text.windows(word.len())
        .any(|part| part.eq_ignore_ascii_case(word))
}

/// Is it `SET CHARACTER SET`? The connection then has the collation of the database.
pub(super) fn is_charset(text: &[u8]) -> bool {
    let mut words = sql::without_comments(text)
        .split(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_')
        .filter(|word| !word.is_empty());
    let is =
        |word: Option<&[u8]>, name: &str| word.is_some_and(|word| word.eq_ignore_ascii_case(name.as_bytes()));
    let (set, first) = (words.next(), words.next());
    is(set, "set") && (is(first, "charset") || is(first, "character") && is(words.next(), "set"))
}

/// Does the text begin with one of these words, in any case?
pub(super) fn begins_with(text: &[u8], words: &[&str]) -> bool {
    let text = sql::without_comments(text);
    words.iter().any(|word| {
        text.get(..word.len())
            .is_some_and(|first| first.eq_ignore_ascii_case(word.as_bytes()))
    })
}

#[cfg(test)]
mod tests {
    use proxima_wire::mysql::sql::{Class, Statement};

    use super::{
        begins_read_only, begins_with, ends_transaction, is_charset, is_for_next_transaction, releases,
        sets_role, shows, used,
    };

    #[test]
    fn a_schema_is_that_of_use_or_of_its_message() {
        for (message, expected) in [
            (&b"\x02shop"[..], Some(&b"shop"[..])),
            (b"\x03USE shop", Some(b"shop")),
            (b"\x03/* a */ use  `my shop` ;", Some(b"my shop")),
            (b"\x03use`shop`", Some(b"shop")),
            (b"\x03USE shop; DROP TABLE t", None),
            (b"\x03USER shop", None),
            (b"\x03SELECT 1", None),
            (b"\x03USE", None),
            (b"", None),
        ] {
            let message = [&[0; 4], message].concat();
            let found = used(&message);
            assert_eq!(found, expected, "{}", message.escape_ascii());
        }
    }

    #[test]
    fn words_are_found_behind_comments_and_in_any_case() {
        for text in [
            "COMMIT RELEASE",
            "rollback and no chain release",
            "commit work Release;",
        ] {
            assert!(releases(text.as_bytes()), "{text}");
        }
        for text in ["COMMIT NO RELEASE", "RELEASE SAVEPOINT a", "COMMIT", ""] {
            assert!(!releases(text.as_bytes()), "{text}");
        }
        for text in [
            "show tables",
            " /* a */ DESC t",
            "/*!40000 SHOW TABLES */",
            "-- a\nexplain select 1",
        ] {
            assert!(shows(text.as_bytes()), "{text}");
        }
        assert!(!shows(b"/* show */ SELECT 1") && !begins_with(b"", &["show"]));
        assert!(begins_read_only(
            b"/* a */ start transaction with consistent snapshot, READ ONLY"
        ));
        assert!(!begins_read_only(b"START TRANSACTION READ WRITE") && !begins_read_only(b"BEGIN"));
        assert!(is_charset(b"set CHARACTER SET latin1") && is_charset(b"SET charset utf8"));
        assert!(!is_charset(b"SET character_set_client = latin1"));
        for (text, ends) in [
            ("COMMIT", true),
            ("/* a */ rollback work and chain", true),
            ("ROLLBACK TO SAVEPOINT a", false),
            ("SAVEPOINT a", false),
            ("BEGIN", false),
        ] {
            assert_eq!(ends_transaction(text.as_bytes()), ends, "{text}");
        }
        for (text, is_role) in [
            ("SET ROLE admin", true),
            ("select 1; set\n role 'a'", true),
            ("SET DEFAULT ROLE a FOR b", false),
            ("UPDATE users SET role = 1", false),
            ("SELECT role FROM users", false),
            ("SET", false),
        ] {
            assert_eq!(sets_role(text.as_bytes()), is_role, "{text}");
        }
        let session = Statement::of(Class::Session);
        assert!(is_for_next_transaction(session, b"SET TRANSACTION READ ONLY"));
        assert!(!is_for_next_transaction(
            session,
            b"SET SESSION TRANSACTION READ ONLY"
        ));
    }
}
