//! The contents of the state file: every copy that the process knew, the life in which its server was last
//! met, whether it missed writes; and how the process ended. A copy that the file does not know is not
//! trusted, so a lost file costs a repair and never a stale read.

use std::{collections::BTreeMap, io, net::IpAddr, time::Duration};

use serde::{Deserialize, Serialize};

use super::super::{EVERYTHING, NOTHING};
use crate::{members::ServerIdentity, protocol::Incarnation};

/// One copy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Row", into = "Row")]
pub struct Record {
    server: Server,
    /// The life in which its server was last met; `None`: it never was.
    pub met: Option<Incarnation>,
    /// Our address towards it, by which its server lists our connections; `None` if it is unknown, or a Unix
    /// socket leads there.
    pub from: Option<IpAddr>,
    /// Why it missed writes; `None` if it missed no write.
    pub missed: Option<String>,
}

/// A server as the file names it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Server {
    pool: String,
    address: String,
    /// `None`: the file is one of an earlier version, which knew no names.
    name: Option<String>,
}

/// All that the file says.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Contents {
    /// The process that wrote it has ended with nothing left unanswered at any copy.
    #[serde(default)]
    pub(super) clean: bool,
    /// The kernel's life in which it was written.
    #[serde(default)]
    pub(super) boot_id: Option<String>,
    pub(super) copies: Vec<Record>,
}

/// One copy as it stands in the file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    pool: String,
    #[serde(default)]
    name: Option<String>,
    address: String,
    pid: Option<u64>,
    uptime_seconds: Option<u64>,
    #[serde(default)]
    from: Option<IpAddr>,
    /// Earlier versions called it `owes`; the first of them wrote the reason here, or null for nothing.
    #[serde(alias = "owes")]
    missed: Option<String>,
    #[serde(default)]
    why: Option<String>,
}

impl From<Row> for Record {
    fn from(row: Row) -> Self {
        let met = row.pid.zip(row.uptime_seconds).map(|(pid, uptime)| Incarnation {
            pid,
            uptime: Duration::from_secs(uptime),
        });
        let missed = row.missed.filter(|missed| missed != NOTHING);
        Self {
            server: Server {
                pool: row.pool,
                address: row.address,
                name: row.name,
            },
            met,
            from: row.from,
            missed: missed.map(|missed| row.why.unwrap_or(missed)),
        }
    }
}

impl From<Record> for Row {
    fn from(record: Record) -> Self {
        let missed = if record.missed.is_some() {
            EVERYTHING
        } else {
            NOTHING
        };
        Self {
            pool: record.server.pool,
            name: record.server.name,
            address: record.server.address,
            pid: record.met.map(|met| met.pid),
            uptime_seconds: record.met.map(|met| met.uptime.as_secs()),
            from: record.from,
            missed: Some(missed.to_owned()),
            why: record.missed,
        }
    }
}

impl Record {
    /// The row of the file for this copy.
    pub fn new(
        server: &ServerIdentity,
        met: Option<Incarnation>,
        from: Option<IpAddr>,
        missed: Option<String>,
    ) -> Self {
        Self {
            server: Server {
                pool: server.pool.to_string(),
                address: server.address.to_string(),
                name: Some(server.name.to_string()),
            },
            met,
            from,
            missed,
        }
    }
}

/// The state that the process before this one has left.
#[derive(Debug)]
pub struct PreviousRun {
    copies: BTreeMap<Server, Record>,
    /// The process ended cleanly: every request to a copy was answered.
    pub clean: bool,
    /// Its kernel no longer runs: this host was rebooted since, or it was another host.
    pub rebooted: bool,
    /// There was none: no process has ever used this file.
    pub is_first: bool,
}

impl PreviousRun {
    /// `boot_id` is that of the running kernel.
    pub(super) fn new(contents: Contents, boot_id: Option<&str>, is_first: bool) -> Self {
        let rebooted = contents
            .boot_id
            .as_deref()
            .zip(boot_id)
            .is_some_and(|(then, now)| then != now);
        let keyed = |record: Record| (record.server.clone(), record);
        Self {
            copies: contents.copies.into_iter().map(keyed).collect(),
            clean: contents.clean,
            rebooted,
            is_first,
        }
    }

    /// The row of this copy.
    pub fn of(&self, server: &ServerIdentity) -> Option<&Record> {
        let named = |name| Server {
            pool: server.pool.to_string(),
            address: server.address.to_string(),
            name,
        };
        let by_name = self.copies.get(&named(Some(server.name.to_string())));
        by_name.or_else(|| self.copies.get(&named(None)))
    }

    /// The records of pools that have had no members yet: no source of servers has named any.
    pub fn of_pools(&self, has_begun: impl Fn(&str) -> bool) -> impl Iterator<Item = &Record> {
        self.copies
            .values()
            .filter(move |record| !has_begun(&record.server.pool))
    }

    pub(super) fn records(&self) -> impl Iterator<Item = &Record> {
        self.copies.values()
    }
}

/// The boot ID of the running kernel; `None` if it is not readable.
pub(super) fn boot_id() -> Option<String> {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(id.trim().to_owned())
}

/// The file's text.
pub(super) fn read(text: &[u8]) -> io::Result<Contents> {
    Ok(serde_json::from_slice(text)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = r#"{"copies": [
        {"pool": "cache", "address": "a:1", "pid": 7, "uptime_seconds": 9, "owes": null},
        {"pool": "cache", "address": "b:1", "pid": null, "uptime_seconds": null, "owes": "timeout"}]}"#;

    fn server(name: &str, address: &str) -> ServerIdentity {
        ServerIdentity {
            pool: "cache".into(),
            name: name.into(),
            address: address.into(),
        }
    }

    #[test]
    fn file_of_an_earlier_version_is_read_and_was_not_ended_cleanly() {
        let contents = read(OLD.as_bytes()).unwrap();
        assert!(!contents.clean && contents.boot_id.is_none());
        let met = Some(Incarnation {
            pid: 7,
            uptime: Duration::from_secs(9),
        });
        let missed: Vec<_> = contents
            .copies
            .iter()
            .map(|copy| copy.missed.as_deref())
            .collect();
        assert_eq!(
            (contents.copies[0].met, missed),
            (met, vec![None, Some("timeout")])
        );
        let known = PreviousRun::new(contents, Some("now"), false);
        assert!(!known.rebooted, "nobody knows");
        assert!(known.of(&server("any", "a:1")).is_some(), "it says no names");
    }

    #[test]
    fn rows_of_an_earlier_version_say_why_writes_were_missed() {
        let rows = br#"{"copies": [
            {"pool": "cache", "address": "a:1", "pid": 7, "uptime_seconds": 9, "from": null, "owes": "nothing", "why": null},
            {"pool": "cache", "address": "b:1", "pid": 7, "uptime_seconds": 9, "owes": "everything", "why": "timeout"}]}"#;
        let missed: Vec<_> = read(rows)
            .unwrap()
            .copies
            .into_iter()
            .map(|copy| copy.missed)
            .collect();
        assert_eq!(missed, [None, Some("timeout".to_owned())]);
    }

    #[test]
    fn what_is_written_is_read_again() {
        let met = Some(Incarnation {
            pid: 7,
            uptime: Duration::from_secs(9),
        });
        let (one, two) = (server("one", "a:1"), server("two", "b:1"));
        let contents = Contents {
            clean: true,
            boot_id: Some("then".to_owned()),
            copies: vec![
                Record::new(&one, met, None, None),
                Record::new(&two, None, None, Some("timeout".to_owned())),
            ],
        };
        let text = serde_json::to_string(&contents).unwrap();
        assert!(
            text.contains(r#""missed":"nothing""#)
                && text.contains(r#""missed":"everything","why":"timeout""#)
        );
        let again = read(text.as_bytes()).unwrap();
        assert_eq!(again.copies, contents.copies);
        let known = PreviousRun::new(again, Some("now"), false);
        assert!(known.clean && known.rebooted);
        assert_eq!(known.of(&one).map(|record| record.met), Some(met));
        assert!(known.of(&server("two", "a:1")).is_none(), "another server");
        assert!(!PreviousRun::new(contents, Some("then"), false).rebooted);
    }

    #[test]
    fn text_that_is_not_understood_is_refused() {
        assert!(read(b"").is_err());
        assert!(read(br#"{"copies": [], "dirty": true}"#).is_err());
    }
}
