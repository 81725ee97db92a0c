//! Classifies a statement by its words, without parsing it.
//!
//! [`statement`] looks at the first word of each statement of a text, and for reads at the words behind it
//! that make them something else: `INTO`, `FOR UPDATE`, `:=`, functions that change or tell the state of the
//! connection. It takes one pass, or two where a comment may be executed, and allocates nothing.
//!
//! **Unknown is always safe.** A statement of unknown class goes to the server that takes writes. Texts that
//! are hard to read are therefore unknown: more than [`LONGEST`] bytes, quotes and comments without an end,
//! bytes that mean something else in another [`Charset`], a comment that only some servers execute and that
//! would change the meaning.
//!
//! **A read may still write.** A function that is stored at the server can do anything, and its name does not
//! show it. A server that is only to be read from must reject writes itself (`SET SESSION TRANSACTION READ
//! ONLY`; within `START TRANSACTION READ ONLY` alone, statements such as TRUNCATE end the transaction and
//! run).

mod charset;
mod class;
mod comment;
mod function;
mod keyword;
mod number;
mod scan;
mod selected_id;
mod set;
mod show;
mod token;
mod trigger;
mod verb;
mod without_values;

pub use charset::Charset;
pub use class::{Class, Statement};
use scan::Scan;
pub use selected_id::{SelectedId, selected_ids};
pub use set::{Assignment, assignments};
use token::{Comments, Tokens};
pub use without_values::without_values;

/// The most bytes of a text that is looked at.
pub const LONGEST: usize = 64 * 1024;

/// The state of a connection that decides how its server reads a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Mode {
    /// `sql_mode` has ANSI_QUOTES: names stand in `"` as well.
    pub ansi_quotes: bool,
    /// `sql_mode` has NO_BACKSLASH_ESCAPES: `\` is a character as any other.
    pub no_backslash_escapes: bool,
    /// `character_set_client`.
    pub charset: Charset,
}

/// Classifies the statements of this text.
pub fn statement(text: &[u8], mode: Mode) -> Statement {
    if text.len() > LONGEST || !mode.charset.is_readable(text) {
        return Statement::UNKNOWN;
    }
    let mut tokens = Tokens::of(text, mode, Comments::Executed);
    let executed = read(&mut tokens);
    if tokens.comments == 0 {
        return executed.unwrap_or(Statement::UNKNOWN);
    }
    let skipped = read(&mut Tokens::of(text, mode, Comments::Skipped));
    let (Some(executed), Some(skipped)) = (executed, skipped) else {
        return Statement::UNKNOWN;
    };
    let either = executed.or_without_comments(skipped);
    // Some comments may be executed and others not, so that words may meet that are adjacent in neither text.
    match tokens.comments > 1 && (either.class.is_read() || tokens.comment_begins_statement) {
        true => Statement {
            class: Class::Unknown,
            ..either
        },
        false => either,
    }
}

/// The text without the blanks and comments that it begins with, as long as no server executes them.
pub fn without_comments(text: &[u8]) -> &[u8] {
    let mut rest = text.trim_ascii_start();
    loop {
        let behind = match rest {
            [b'#', ..] => behind_line(rest),
            [b'-', b'-', blank, ..] if blank.is_ascii_whitespace() => behind_line(rest),
            [b'/', b'*', b'!' | b'M', ..] => return rest,
            [b'/', b'*', ..] => memchr::memmem::find(rest, b"*/").map(|end| &rest[end + 2..]),
            _ => return rest,
        };
        match behind {
            Some(behind) => rest = behind.trim_ascii_start(),
            None => return rest,
        }
    }
}

/// The name behind the first COLLATE of a text. `None` without a COLLATE.
pub fn collation(text: &[u8]) -> Option<&[u8]> {
    const WORD: &[u8] = b"collate";
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let mut windows = text.windows(WORD.len());
    let at = windows.position(|word| word.eq_ignore_ascii_case(WORD))?;
    let rest = &text[at + WORD.len()..];
    let start = rest.iter().position(is_part)?;
    let name = &rest[start..];
    let len = name.iter().position(|byte| !is_part(byte)).unwrap_or(name.len());
    Some(&name[..len])
}

fn behind_line(text: &[u8]) -> Option<&[u8]> {
    memchr::memchr(b'\n', text).map(|end| &text[end + 1..])
}

/// Reads all statements of a text. `None`: it cannot be read.
fn read(tokens: &mut Tokens<'_>) -> Option<Statement> {
    let mut all = Statement::EMPTY;
    let mut scan = Scan::new();
    loop {
        let token = tokens.next()?;
        if !token.ends_statement() {
            scan.take(token, tokens);
            continue;
        }
        all = all.then(scan.end());
        if token.ends_text() {
            return Some(all);
        }
        scan = Scan::new();
    }
}
