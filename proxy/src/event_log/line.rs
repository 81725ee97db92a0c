//! One line of the log, and what it says in which field.

use std::fmt::{self, Debug, Write};

use tracing::field::{Field, Visit};

/// The longest text of an event, in bytes. What a configuration's error quotes may be long.
const LONGEST: usize = 4096;

/// Writes a field as text lines of the log have it: a value with blanks is quoted, so that a line can be parsed.
///
/// # Errors
/// Those of the writer.
pub fn write_field(to: &mut dyn Write, name: &str, value: &dyn Debug) -> fmt::Result {
    match name {
        "message" => write!(to, "{value:?}"),
        name => write!(to, "{name}={}", quoted(format!("{value:?}"))),
    }
}

/// The value of a field, quoted unless it is one plain word. Texts that were given as such are quoted
/// already.
fn quoted(value: String) -> String {
    let is_quoted = value.len() >= 2 && value.starts_with('"') && value.ends_with('"');
    let is_plain = |c: char| !(c.is_whitespace() || c.is_control() || matches!(c, '"' | '='));
    match is_quoted || !value.is_empty() && value.chars().all(is_plain) {
        true => value,
        false => format!("{value:?}"),
    }
}

/// The fields of one line.
#[derive(Default)]
pub(super) struct Line {
    /// The line as the log has it, without time and level.
    pub(super) text: String,
    /// What the line is about: the fields that name something.
    pub(super) names: Vec<String>,
    pub(super) before: Option<String>,
    pub(super) after: Option<String>,
    pub(super) why: Option<String>,
}

impl Line {
    fn note(&mut self, name: &str, plain: String) {
        let to = match name {
            "pool" | "member" | "server" | "peer" | "listener" | "rule" | "service" | "endpoint" | "name"
            | "path" | "certificate" | "folder" => return self.names.push(cut(plain)),
            "before" => &mut self.before,
            "after" | "state" | "view" | "version" | "open" => &mut self.after,
            "why" | "reason" | "error" | "failure" => &mut self.why,
            _ => return,
        };
        *to = Some(cut(plain));
    }

    fn add(&mut self, name: &str, value: &dyn Debug) {
        if !self.text.is_empty() {
            self.text.push(' ');
        }
        // A text takes everything.
        let _ = write_field(&mut self.text, name, value);
        self.text = cut(std::mem::take(&mut self.text));
    }
}

impl Visit for Line {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field.name(), &value);
        self.note(field.name(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.add(field.name(), value);
        self.note(field.name(), format!("{value:?}"));
    }
}

/// A text that is no longer than [`LONGEST`].
fn cut(mut text: String) -> String {
    if text.len() > LONGEST {
        text.truncate(text.floor_char_boundary(LONGEST));
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{LONGEST, cut, quoted};

    #[test]
    fn values_of_several_words_are_quoted_and_words_are_not() {
        assert_eq!(quoted("127.0.0.1:1".into()), "127.0.0.1:1");
        assert_eq!(quoted("no answer".into()), "\"no answer\"");
        assert_eq!(quoted("\"no answer\"".into()), "\"no answer\"");
        assert_eq!(quoted(String::new()), "\"\"");
        assert_eq!(quoted("a=b".into()), "\"a=b\"");
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        let text = cut("ü".repeat(LONGEST));
        assert!(text.len() <= LONGEST + '…'.len_utf8());
        assert!(text.starts_with('ü') && text.ends_with('…'));
    }
}
