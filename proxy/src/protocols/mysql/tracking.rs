//! Session tracking as clients ask for it. Servers are not told of that: the proxy has asked for everything,
//! and depends on it. A client that wants less hears of more.

use proxima_wire::mysql::sql::{Mode, assignments};

use super::words::has_word;

/// The common part of the names of all these variables.
const COMMON: &[u8] = b"session_track_";

/// The variables by which the proxy is told of every change of a session.
const OURS: [&str; 3] = [
    "session_track_schema",
    "session_track_state_change",
    "session_track_system_variables",
];

/// The handling of a text that may set one of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Tracking {
    /// It sets none.
    Untouched,
    /// It sets nothing else.
    Alone,
    /// This text is executed in its place, which sets all but those.
    Rest(Vec<u8>),
    /// It cannot be told what it sets.
    Unclear,
}

impl Tracking {
    /// The handling of this text.
    pub(super) fn of(text: &[u8], mode: Mode) -> Self {
        if !has_word(text, COMMON) {
            return Self::Untouched;
        }
        let Some(all) = assignments(text, mode) else {
            return Self::Unclear;
        };
        let is_ours = |name: &[u8]| OURS.iter().any(|ours| name.eq_ignore_ascii_case(ours.as_bytes()));
        let others = all.iter().filter(|one| !one.variable.is_some_and(is_ours));
        let others: Vec<&[u8]> = others.map(|one| one.text).collect();
        match others.len() {
            0 => Self::Alone,
            count if count == all.len() => Self::Untouched,
            // A comment to the end of a line would hide what follows.
            _ => Self::Rest([b"SET ", &others.join(&b"\n, "[..])[..]].concat()),
        }
    }
}

#[cfg(test)]
mod tests {
    use proxima_wire::mysql::sql::Mode;

    use super::Tracking;

    #[test]
    fn rest_of_a_text_is_executed_without_the_tracked_variables() {
        let rest = |text: &str| Tracking::Rest(text.as_bytes().to_vec());
        for (text, expected) in [
            ("SET a=1", Tracking::Untouched),
            ("SELECT @@session_track_schema", Tracking::Unclear),
            ("SET a=@@session_track_schema", Tracking::Untouched),
            ("SET GLOBAL session_track_schema=0", Tracking::Untouched),
            ("SET session_track_transaction_info=STATE", Tracking::Untouched),
            ("SET SESSION session_track_schema=1", Tracking::Alone),
            (
                "set @@Session.Session_Track_State_Change=off, session_track_schema=1",
                Tracking::Alone,
            ),
            (
                "set sql_mode=CONCAT(@@sql_mode,',X'),session_track_system_variables=CONCAT('a,b',IF(1,',c','')),\
                 session_track_schema=1,NAMES utf8mb4",
                rest("SET sql_mode=CONCAT(@@sql_mode,',X')\n, NAMES utf8mb4"),
            ),
            (
                "SET a=1 -- x\n, `session_track_schema`=1, b=2",
                rest("SET a=1 -- x\n, b=2"),
            ),
            ("SET session_track_schema=0; SET a=1", Tracking::Unclear),
            ("SET /*!50000 session_track_schema=0 */", Tracking::Unclear),
        ] {
            assert_eq!(Tracking::of(text.as_bytes(), Mode::default()), expected, "{text}");
        }
    }
}
