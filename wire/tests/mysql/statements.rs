//! What statements do, as `statements/mysql.tsv` says. The same table is put to a real server by
//! `tests/test_mysql_statements.py`.

use std::{fmt, path::Path};

use proptest::{
    collection::vec,
    prelude::{Just, Strategy, any, prop_assert, prop_oneof, proptest},
};
use proxima_wire::mysql::sql::{Charset, Class, LONGEST, Mode, Statement, statement};

/// A row of the table.
pub(crate) struct Row {
    place: String,
    /// The class and the flags.
    expected: (&'static str, String),
    mode: Mode,
    pub(crate) text: Vec<u8>,
}

impl fmt::Debug for Row {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.place, self.text.escape_ascii())
    }
}

pub(crate) fn rows() -> Vec<Row> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("statements/mysql.tsv");
    let text = std::fs::read_to_string(path).unwrap();
    let all = text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.starts_with('#'));
    all.map(|(number, line)| row(number + 1, line)).collect()
}

fn row(number: usize, line: &str) -> Row {
    let columns: Vec<_> = line.splitn(4, '\t').collect();
    let &[class, flags, mode, text] = &columns[..] else {
        panic!("line {number}: {line}")
    };
    let known = Class::ALL.iter().find(|(_, word)| *word == class);
    Row {
        place: format!("mysql.tsv:{number}"),
        expected: (known.expect("a known class").1, flags.replace('-', "")),
        mode: self::mode(mode),
        text: decode(text),
    }
}

fn mode(words: &str) -> Mode {
    let mut mode = Mode::default();
    for word in words.split(',').filter(|word| *word != "-") {
        match word {
            "ansi" => mode.ansi_quotes = true,
            "noescape" => mode.no_backslash_escapes = true,
            charset => mode.charset = Charset::of(charset.as_bytes()),
        }
    }
    mode
}

fn decode(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        out.push(match byte {
            b'\\' => match bytes.next() {
                Some(b'n') => b'\n',
                Some(b't') => b'\t',
                Some(b'\\') => b'\\',
                Some(b'x') => {
                    let hex: Vec<u8> = bytes.by_ref().take(2).collect();
                    u8::from_str_radix(std::str::from_utf8(&hex).unwrap(), 16).unwrap()
                }
                other => panic!("{other:?} behind a backslash in {text}"),
            },
            other => other,
        });
    }
    out
}

fn said(statement: Statement) -> (&'static str, String) {
    let (_, word) = Class::ALL
        .iter()
        .find(|(class, _)| *class == statement.class)
        .unwrap();
    let flags = [
        (statement.reads_session, 'r'),
        (statement.changes_session, 'c'),
        (statement.is_several, 's'),
    ];
    let flags = flags.into_iter().filter(|(is_set, _)| *is_set);
    (word, flags.map(|(_, letter)| letter).collect())
}

#[test]
fn statements_are_of_the_class_that_the_table_says() {
    let rows = rows();
    assert!(rows.len() >= 400, "{}", rows.len());
    let wrong: Vec<_> = rows
        .iter()
        .map(|row| (row, said(statement(&row.text, row.mode))))
        .filter(|(row, said)| *said != row.expected)
        .map(|(row, said)| format!("{row:?}: {said:?}, not {:?}", row.expected))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_comment_or_blanks_around_a_statement_change_nothing() {
    for row in rows() {
        let [before, after] = [&b"/* a */ -- b\n # c\n"[..], b"\n-- d\n/* e */\n"];
        let text = [before, &row.text[..], after].concat();
        // Where quotes or comments are open, more may be read than before.
        if row.expected.0 != "unknown" {
            assert_eq!(said(statement(&text, row.mode)), row.expected, "{row:?}");
        }
    }
}

#[test]
fn a_statement_that_is_too_long_is_unknown() {
    let text = |len: usize| format!("SELECT '{}'", "x".repeat(len - 9)).into_bytes();
    let class = |len| statement(&text(len), Mode::default()).class;
    assert_eq!(class(LONGEST), Class::Read);
    assert_eq!(class(LONGEST + 1), Class::Unknown);
}

/// Texts that resemble statements.
fn noise() -> impl Strategy<Value = Vec<u8>> {
    let word = prop_oneof![
        4 => "[a-z0-9_@.]{1,6}".prop_map(String::into_bytes),
        6 => prop_oneof![
            Just("SELECT"), Just("FOR"), Just("UPDATE"), Just("WITH"), Just("AS"), Just("INTO"), Just("SET"),
            Just("EXPLAIN"), Just("GLOBAL"), Just("NEXT"), Just("VALUE"), Just("LAST_INSERT_ID"),
        ].prop_map(|word| word.as_bytes().to_vec()),
        6 => prop_oneof![
            Just("("), Just(")"), Just(";"), Just("'"), Just("\""), Just("`"), Just("\\"), Just("/*!"),
            Just("/*"), Just("*/"), Just("--"), Just("#"), Just("\n"), Just("@@"), Just(":="), Just("1e5"),
            Just("/*!50000"), Just("/*M!"), Just("*"),
        ].prop_map(|mark| mark.as_bytes().to_vec()),
        6 => Just(b" ".to_vec()),
        1 => vec(any::<u8>(), 0..4),
    ];
    vec(word, 0..40).prop_map(|words| words.concat())
}

fn modes() -> impl Iterator<Item = Mode> {
    let charsets = [Charset::Utf8, Charset::Single, Charset::Hiding];
    charsets.into_iter().flat_map(|charset| {
        [(false, false), (true, false), (false, true), (true, true)].map(
            |(ansi_quotes, no_backslash_escapes)| Mode {
                ansi_quotes,
                no_backslash_escapes,
                charset,
            },
        )
    })
}

proptest! {
    #[test]
    fn no_text_makes_the_lexer_panic(text in noise()) {
        for mode in modes() {
            statement(&text, mode);
        }
    }

    #[test]
    fn a_write_behind_a_readable_text_is_no_read(text in noise()) {
        for mode in modes() {
            let before = statement(&text, mode);
            if before.class != Class::Read {
                continue;
            }
            let both = [&text[..], b"\n; DELETE FROM t"].concat();
            prop_assert!(!statement(&both, mode).class.is_read());
        }
    }
}
