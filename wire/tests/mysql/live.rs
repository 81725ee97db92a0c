//! The lexer beside the installed server: what it takes for a read, the server takes for one, too.
//!
//! Statements of the table are cut up and put together at random, with comments that some servers execute,
//! quotes and second statements. The connection only reads: the server rejects each write with 1792, and its
//! trackers tell what else has changed.

use proxima_wire::mysql::sql::{Charset, Class, Mode, statement};

use crate::{
    server::{Client, Server},
    statements::rows,
};

/// Texts that are made. `TEXTS` in the environment is another number.
const TEXTS: usize = 16_000;

/// The error of a write where only reads are allowed.
const REJECTED: u16 = 1792;

/// Objects of which the statements speak.
const OBJECTS: &str = "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, a INT, b VARCHAR(100), j JSON);
    CREATE TABLE u (id INT PRIMARY KEY AUTO_INCREMENT, t_id INT, name VARCHAR(100));
    CREATE TABLE `order` (id INT PRIMARY KEY, `select` INT);
    CREATE SEQUENCE s;
    CREATE FUNCTION plus_one(n INT) RETURNS INT DETERMINISTIC RETURN n + 1;
    INSERT INTO t (a, b) VALUES (1, 'x'), (2, 'y')";

/// Marks that change how a text is read.
const MARKS: [&[u8]; 41] = [
    b"/*!50000",
    b"/*!99999",
    b"/*!",
    b"/*M!100000",
    b"/*M!",
    b"/*",
    b"*/",
    b"/**/",
    b"-- ",
    b"--",
    b"#",
    b"\n",
    b";",
    b"'",
    b"\"",
    b"`",
    b"''",
    b"\\",
    b"\\'",
    b"(",
    b")",
    b" ",
    b" ",
    b"@x",
    b":=",
    b"1e5",
    b"0x",
    b".",
    b" FOR UPDATE",
    b" INTO @x",
    b" INTO OUTFILE 'x'",
    b"; DELETE FROM t",
    b"; COMMIT",
    b" UNION ",
    b"NEXTVAL(s)",
    b"SELECT 1",
    b"EXPLAIN ",
    b"\xa0",
    b"\xbf\\",
    b"\xbf'",
    b"\xc3\xa4",
];

/// Numbers by chance, the same in each run.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % limit.max(1)
    }

    fn one<'a>(&mut self, all: &[&'a [u8]]) -> &'a [u8] {
        all[self.below(all.len())]
    }
}

/// The words of a statement and what is between them.
fn words(text: &[u8]) -> Vec<&[u8]> {
    text.split_inclusive(|byte| byte.is_ascii_whitespace() || b"(),;".contains(byte))
        .collect()
}

/// A text of parts of one or two statements, with marks between them.
fn text(chance: &mut Chance, all: &[&[u8]]) -> Vec<u8> {
    let mut parts = words(chance.one(all));
    let cut = chance.below(parts.len() + 1);
    if chance.below(2) == 0 {
        let other = words(chance.one(all));
        let from = chance.below(other.len());
        parts.truncate(cut);
        parts.extend_from_slice(&other[from..]);
    }
    for _ in 0..chance.below(4) {
        let at = chance.below(parts.len() + 1);
        parts.insert(at, chance.one(&MARKS));
    }
    if chance.below(3) == 0 {
        // A comment that is executed or not, with its end.
        let begin = chance.below(parts.len() + 1);
        let end = begin + chance.below(parts.len() + 1 - begin);
        parts.insert(end, b" */");
        parts.insert(begin, chance.one(&MARKS[..5]));
    }
    parts.concat()
}

/// Modes of a connection, with what makes them.
fn modes() -> Vec<(Mode, String)> {
    let mut all = Vec::new();
    for charset in ["utf8mb4", "latin1", "gbk", "sjis"] {
        for (ansi_quotes, no_backslash_escapes, words) in [
            (false, false, ""),
            (true, false, "ANSI_QUOTES"),
            (false, true, "NO_BACKSLASH_ESCAPES"),
            (true, true, "ANSI_QUOTES,NO_BACKSLASH_ESCAPES"),
        ] {
            let charset_of = Charset::of(charset.as_bytes());
            let mode = Mode {
                ansi_quotes,
                no_backslash_escapes,
                charset: charset_of,
            };
            all.push((mode, format!("SET NAMES {charset}, sql_mode = '{words}'")));
        }
    }
    all
}

/// A connection that only reads.
fn connect(server: &Server, mode: &str) -> Client {
    let mut client = server.connect();
    let tracks = "SET session_track_state_change = 1, session_track_transaction_info = 'STATE'";
    for statement in [mode, tracks, "SET SESSION TRANSACTION READ ONLY"] {
        assert_eq!(client.ask(statement.as_bytes()).error, None, "{statement}");
    }
    client
}

#[test]
fn no_text_that_is_classed_as_a_read_writes_or_changes_the_connection() {
    let Some(server) = Server::start() else { return };
    for object in OBJECTS.split(';') {
        assert_eq!(server.connect().ask(object.as_bytes()).error, None, "{object}");
    }
    let rows = rows();
    // With another argument these take any time.
    let is_slow = |text: &[u8]| {
        let capitals = text.to_ascii_uppercase();
        [&b"SLEEP"[..], b"BENCHMARK"]
            .iter()
            .any(|name| capitals.windows(name.len()).any(|part| part == *name))
    };
    let all: Vec<&[u8]> = rows
        .iter()
        .map(|row| &row.text[..])
        .filter(|text| !is_slow(text))
        .collect();
    let texts = std::env::var("TEXTS")
        .ok()
        .and_then(|number| number.parse().ok())
        .unwrap_or(TEXTS);
    let (mut chance, mut reads, mut wrong) = (Chance(0x9e37_79b9_7f4a_7c15), 0, Vec::new());
    for (mode, words) in modes() {
        let mut client = connect(&server, &words);
        for _ in 0..texts / 16 {
            let text = text(&mut chance, &all);
            if statement(&text, mode).class != Class::Read {
                continue;
            }
            let outcome = client.ask(&text);
            if outcome.error == Some(REJECTED) || outcome.is_changed {
                wrong.push(format!("{outcome:?}, {words}: {}", text.escape_ascii()));
                client = connect(&server, &words);
            }
            reads += usize::from(outcome.error.is_none());
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // Most texts are no statements to the server, and enough are.
    assert!(reads > texts / 30, "{reads} of {texts}");
}
