//! What the state file says: every copy that the process knew, the life in which its server was last met, whether it owes
//! writes; and how the process ended. A copy that the file does not know is not trusted, so no file at all costs a repair
//! and never a stale read.

use std::{collections::BTreeMap, io, net::IpAddr, time::Duration};

use serde::{Deserialize, Serialize};

use crate::members::{
    Member,
    copies::{EVERYTHING, Incarnation, NOTHING},
};

/// One copy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Row", into = "Row")]
pub(super) struct Note {
    pool: String,
    address: String,
    /// The life in which its server was last met; `None`: it never was.
    pub(super) met: Option<Incarnation>,
    /// Our address towards it, by which its server lists our connections; `None`: not known, or it has none.
    pub(super) from: Option<IpAddr>,
    /// Why it owes writes; `None`: it owes nothing.
    pub(super) owes: Option<String>,
}

/// All that the file says.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Notes {
    /// The process that wrote it has ended with nothing left unanswered at any copy.
    #[serde(default)]
    pub(super) clean: bool,
    /// The kernel's life in which it was written.
    #[serde(default)]
    pub(super) boot_id: Option<String>,
    pub(super) copies: Vec<Note>,
}

/// One copy as it stands in the file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    pool: String,
    address: String,
    pid: Option<u64>,
    uptime_seconds: Option<u64>,
    #[serde(default)]
    from: Option<IpAddr>,
    /// In files of old the reason, or null for nothing.
    owes: Option<String>,
    #[serde(default)]
    why: Option<String>,
}

impl From<Row> for Note {
    fn from(row: Row) -> Self {
        let met = row.pid.zip(row.uptime_seconds).map(|(pid, uptime)| Incarnation {
            pid,
            uptime: Duration::from_secs(uptime),
        });
        let owes = row.owes.filter(|owes| owes != NOTHING);
        Self {
            pool: row.pool,
            address: row.address,
            met,
            from: row.from,
            owes: owes.map(|owes| row.why.unwrap_or(owes)),
        }
    }
}

impl From<Note> for Row {
    fn from(note: Note) -> Self {
        let owes = if note.owes.is_some() { EVERYTHING } else { NOTHING };
        Self {
            pool: note.pool,
            address: note.address,
            pid: note.met.map(|met| met.pid),
            uptime_seconds: note.met.map(|met| met.uptime.as_secs()),
            from: note.from,
            owes: Some(owes.to_owned()),
            why: note.owes,
        }
    }
}

impl Note {
    pub(super) fn new(
        member: &Member,
        met: Option<Incarnation>,
        from: Option<IpAddr>,
        owes: Option<String>,
    ) -> Self {
        Self {
            pool: member.pool.name.to_string(),
            address: member.endpoint(),
            met,
            from,
            owes,
        }
    }
}

/// What the process before this one has left.
#[derive(Debug)]
pub(super) struct Known {
    /// By pool and address.
    copies: BTreeMap<(String, String), Note>,
    /// It ended with nothing left unanswered at any copy.
    pub(super) clean: bool,
    /// Its kernel is not running any more: it was another life of this host's, or another host's.
    pub(super) rebooted: bool,
    /// There was none: nobody has ever used this file.
    pub(super) is_first: bool,
}

impl Known {
    /// `boot_id` is that of the running kernel.
    pub(super) fn new(notes: Notes, boot_id: Option<&str>, is_first: bool) -> Self {
        let rebooted = notes
            .boot_id
            .as_deref()
            .zip(boot_id)
            .is_some_and(|(then, now)| then != now);
        let keyed = |note: Note| ((note.pool.clone(), note.address.clone()), note);
        Self {
            copies: notes.copies.into_iter().map(keyed).collect(),
            clean: notes.clean,
            rebooted,
            is_first,
        }
    }

    /// What was known of this copy.
    pub(super) fn of(&self, member: &Member) -> Option<&Note> {
        self.copies
            .get(&(member.pool.name.to_string(), member.endpoint()))
    }

    /// Those of pools that have had no members yet, as nobody has named them.
    pub(super) fn of_pools(&self, has_begun: impl Fn(&str) -> bool) -> impl Iterator<Item = &Note> {
        self.copies.values().filter(move |note| !has_begun(&note.pool))
    }

    pub(super) fn notes(&self) -> impl Iterator<Item = &Note> {
        self.copies.values()
    }
}

/// The life of the running kernel; `None`: it does not tell.
pub(super) fn boot_id() -> Option<String> {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(id.trim().to_owned())
}

/// The file's text.
pub(super) fn read(text: &[u8]) -> io::Result<Notes> {
    Ok(serde_json::from_slice(text)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = r#"{"copies": [
        {"pool": "cache", "address": "a:1", "pid": 7, "uptime_seconds": 9, "owes": null},
        {"pool": "cache", "address": "b:1", "pid": null, "uptime_seconds": null, "owes": "timeout"}]}"#;

    #[test]
    fn a_file_of_old_is_read_and_was_not_ended_cleanly() {
        let notes = read(OLD.as_bytes()).unwrap();
        assert!(!notes.clean && notes.boot_id.is_none());
        let met = Some(Incarnation {
            pid: 7,
            uptime: Duration::from_secs(9),
        });
        let owes: Vec<_> = notes.copies.iter().map(|note| note.owes.as_deref()).collect();
        assert_eq!((notes.copies[0].met, owes), (met, vec![None, Some("timeout")]));
        assert!(!Known::new(notes, Some("now"), false).rebooted, "nobody knows");
    }

    #[test]
    fn what_is_written_is_read_again() {
        let notes = Notes {
            clean: true,
            boot_id: Some("then".to_owned()),
            copies: read(OLD.as_bytes()).unwrap().copies,
        };
        let text = serde_json::to_string(&notes).unwrap();
        assert!(
            text.contains(r#""owes":"nothing""#) && text.contains(r#""owes":"everything","why":"timeout""#)
        );
        let again = read(text.as_bytes()).unwrap();
        assert_eq!(again.copies, notes.copies);
        let known = Known::new(again, Some("now"), false);
        assert!(known.clean && known.rebooted);
        assert!(!Known::new(notes, Some("then"), false).rebooted);
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        assert!(read(b"").is_err());
        assert!(read(br#"{"copies": [], "dirty": true}"#).is_err());
    }
}
