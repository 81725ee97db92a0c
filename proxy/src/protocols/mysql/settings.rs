//! The part of a session's state that a proxy can tell another server: the schema, and the variables that
//! have another value than at the login.
//!
//! Invariant: only what a server has reported itself stands here. What it reports wrongly, or not at all,
//! keeps a session at its connection instead.

use std::fmt;

use proxima_wire::mysql::{
    Status, Tracker, Trackers,
    sql::{Charset, Mode},
};

/// The character set of a connection, and its collation.
pub(super) const CONNECTION: &[u8] = b"character_set_connection";
pub(super) const COLLATION: &[u8] = b"collation_connection";

/// The variable that MySQL reports with every statement.
pub(super) const STATEMENT_ID: &[u8] = b"statement_id";

/// The most variables, and the most bytes of their names and values. A session with more keeps its
/// connection.
const MOST: usize = 64;
const MOST_BYTES: usize = 16 * 1024;

/// Variables whose value is not what a server reports, or that mean something only on one connection.
const UNREPLAYABLE: [&str; 12] = [
    "error_count",
    "gtid_domain_id",
    "gtid_next",
    "gtid_seq_no",
    "insert_id",
    "last_insert_id",
    "pseudo_slave_mode",
    "pseudo_thread_id",
    "rand_seed1",
    "rand_seed2",
    "timestamp",
    "warning_count",
];

/// Does a text name one of them?
pub(super) fn names_unreplayable(text: &[u8]) -> bool {
    let mut words = text.split(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_');
    words.any(|word| {
        UNREPLAYABLE
            .iter()
            .any(|name| word.eq_ignore_ascii_case(name.as_bytes()))
    })
}

/// The known state of a session.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct Settings {
    /// The default database; empty without one.
    pub(super) schema: Vec<u8>,
    /// Names and values, by name.
    variables: Vec<Variable>,
}

/// A name and a value.
type Variable = (Box<[u8]>, Box<[u8]>);

impl Settings {
    /// The value of a variable; `None` if it is still that of the login.
    pub(super) fn get(&self, name: &[u8]) -> Option<&[u8]> {
        let position = self.find(name).ok()?;
        Some(&self.variables[position].1)
    }

    /// Notes what a server has reported. `said`: the collation that the statement has named, which is not
    /// reported with its character set. Returns `false` if any of it cannot be replayed.
    #[must_use]
    pub(super) fn note(&mut self, trackers: Trackers<'_>, said: Option<&[u8]>) -> bool {
        let (mut is_known, mut connection, mut collation) = (true, false, None);
        for tracker in trackers {
            match tracker {
                // MySQL counts the statements of all sessions.
                Tracker::Variable { name, .. } if name == STATEMENT_ID => {}
                Tracker::Variable { name, value } => {
                    connection |= name == CONNECTION;
                    if name == COLLATION {
                        collation = Some(value);
                    }
                    is_known &= self.set(name, value);
                }
                Tracker::Schema(schema) if self.schema != schema => self.schema = schema.to_vec(),
                _ => {}
            }
        }
        // Each of these two changes the other, which is not reported.
        match (connection, collation) {
            (true, None) => match said {
                Some(said) => is_known &= self.set(COLLATION, said),
                None => self.unset(COLLATION),
            },
            (false, Some(collation)) => {
                let name = collation.split(|&byte| byte == b'_').next().unwrap_or_default();
                let name = name.to_vec();
                is_known &= self.set(CONNECTION, &name);
            }
            _ => {}
        }
        is_known
    }

    fn unset(&mut self, name: &[u8]) {
        if let Ok(position) = self.find(name) {
            self.variables.remove(position);
        }
    }

    /// Notes a value. Returns `false` if it cannot be replayed.
    #[must_use]
    pub(super) fn set(&mut self, name: &[u8], value: &[u8]) -> bool {
        match self.find(name) {
            Ok(position) => {
                if *self.variables[position].1 != *value {
                    self.variables[position].1 = value.into();
                }
            }
            Err(position) => self.variables.insert(position, (name.into(), value.into())),
        }
        let is_known = !UNREPLAYABLE.iter().any(|other| other.as_bytes() == name);
        // A client that sets the tracking of the session gets its reports as well from then on.
        is_known
            && !name.starts_with(b"session_track")
            && self.variables.len() <= MOST
            && self.memory() <= MOST_BYTES
    }

    /// Those of a login, with this schema.
    pub(super) fn of_schema(schema: &[u8]) -> Self {
        Self {
            schema: schema.to_vec(),
            variables: Vec::new(),
        }
    }

    /// Takes the variables of the other one.
    pub(super) fn copy_variables(&mut self, other: &Self) {
        self.variables.clone_from(&other.variables);
    }

    /// Names and values, by name.
    pub(super) fn variables(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.variables.iter().map(|(name, value)| (&**name, &**value))
    }

    /// Do they have the same variables, whatever the schema?
    pub(super) fn has_variables_of(&self, other: &Self) -> bool {
        self.variables == other.variables
    }

    /// The mode in which a text is read in this session, whose server has told this status; `None` if the
    /// mode is not known, which is so before the first reply.
    pub(super) fn mode(&self, login: Charset, status: Status) -> Mode {
        let sql_mode = self.get(b"sql_mode").unwrap_or_default();
        let has = |word: &[u8]| sql_mode.split(|&byte| byte == b',').any(|one| one == word);
        Mode {
            ansi_quotes: status.has(Status::ANSI_QUOTES) || has(b"ANSI_QUOTES"),
            no_backslash_escapes: status.has(Status::NO_BACKSLASH_ESCAPES) || has(b"NO_BACKSLASH_ESCAPES"),
            charset: self.get(b"character_set_client").map_or(login, Charset::of),
        }
    }

    /// Bytes of names and values.
    pub(super) fn memory(&self) -> usize {
        let bytes = |(name, value): &Variable| name.len() + value.len();
        self.schema.capacity()
            + self.variables.capacity() * size_of::<Variable>()
            + self.variables.iter().map(bytes).sum::<usize>()
    }

    fn find(&self, name: &[u8]) -> Result<usize, usize> {
        self.variables.binary_search_by(|(other, _)| (**other).cmp(name))
    }
}

/// Values may be anything that a client has said.
impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} settings", self.variables.len())
    }
}

/// Appends a value as it stands in a SET: numbers as they are, anything else as a text in which no character
/// is read in two ways, whatever `sql_mode` and character set a connection has.
pub(super) fn append_value(value: &[u8], out: &mut Vec<u8>) {
    let digits = value.strip_prefix(b"-").unwrap_or(value);
    let is_number = !digits.is_empty()
        && digits.iter().filter(|&&byte| byte == b'.').count() <= 1
        && digits.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.')
        && digits.first().is_some_and(u8::is_ascii_digit);
    if is_number {
        return out.extend_from_slice(value);
    }
    let is_plain =
        |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'\'' | b'"' | b'\\') || byte == b' ';
    if value.iter().copied().all(is_plain) {
        out.push(b'\'');
        out.extend_from_slice(value);
        return out.push(b'\'');
    }
    out.extend_from_slice(b"_utf8mb4 X'");
    for byte in value {
        out.extend_from_slice(format!("{byte:02X}").as_bytes());
    }
    out.push(b'\'');
}

#[cfg(test)]
mod tests {
    use super::{Settings, append_value};

    #[test]
    fn values_are_written_so_that_they_are_read_in_one_way() {
        for (value, text) in [
            ("1", "1"),
            ("-2.5", "-2.5"),
            ("+01:00", "'+01:00'"),
            ("", "''"),
            ("ON", "'ON'"),
            ("a'b", "_utf8mb4 X'612762'"),
            ("\\", "_utf8mb4 X'5C'"),
            ("1.2.3", "'1.2.3'"),
            (".5", "'.5'"),
        ] {
            let mut out = Vec::new();
            append_value(value.as_bytes(), &mut out);
            assert_eq!(out, text.as_bytes(), "{value}");
        }
    }

    #[test]
    fn variables_that_cannot_be_replayed_are_reported() {
        let mut settings = Settings::default();
        assert!(settings.set(b"time_zone", b"SYSTEM") && settings.set(b"sql_mode", b""));
        assert_eq!(settings.get(b"time_zone"), Some(&b"SYSTEM"[..]));
        assert!(!settings.set(b"timestamp", b"1"));
        assert!(!settings.set(b"session_track_schema", b"OFF"));
        assert!(!settings.set(b"sql_mode", &[b'x'; 20_000]));
    }

    #[test]
    fn sessions_with_too_many_variables_are_told() {
        let mut settings = Settings::default();
        let taken = (0..100).take_while(|number| settings.set(format!("v{number}").as_bytes(), b"1"));
        assert_eq!(taken.count(), super::MOST);
    }
}
