//! The file in which a voter keeps its vote, its log and its snapshot. Records are appended and written
//! through to the disk before anybody is answered. A record is a line: its checksum, and its text in JSON.
//! What a power loss has left of the last line is cut off at the next start; damage anywhere else refuses the
//! file.

use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions},
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use openraft::{Entry, LogId, SnapshotMeta, Vote};
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;
use xxhash_rust::xxh3::xxh3_64;

use crate::fleet::Roster;
use crate::{control::fleet::types::Types, event_log::kind};

/// A snapshot of the roster.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct StoredSnapshot {
    pub(super) meta: SnapshotMeta<u64, openraft::BasicNode>,
    pub(super) roster: Roster,
}

/// One record.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Record {
    Vote(Vote<u64>),
    Append(Vec<Entry<Types>>),
    /// Entries from this index on are gone.
    Truncate(u64),
    /// Entries up to this one are in a snapshot.
    Purge(LogId<u64>),
    Snapshot(Box<StoredSnapshot>),
}

/// What the file says.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    pub(super) vote: Option<Vote<u64>>,
    pub(super) log: BTreeMap<u64, Entry<Types>>,
    pub(super) purged: Option<LogId<u64>>,
    pub(super) snapshot: Option<StoredSnapshot>,
}

impl State {
    fn apply(&mut self, record: Record) {
        match record {
            Record::Vote(vote) => self.vote = Some(vote),
            Record::Append(entries) => {
                self.log
                    .extend(entries.into_iter().map(|entry| (entry.log_id.index, entry)));
            }
            Record::Truncate(from) => drop(self.log.split_off(&from)),
            Record::Purge(upto) => {
                self.log = self.log.split_off(&(upto.index + 1));
                self.purged = Some(upto);
            }
            Record::Snapshot(kept) => self.snapshot = Some(*kept),
        }
    }

    /// The records that say the same in the fewest words.
    fn records(&self) -> Vec<Record> {
        let mut records = Vec::new();
        records.extend(self.vote.map(Record::Vote));
        records.extend(self.snapshot.clone().map(Box::new).map(Record::Snapshot));
        records.extend(self.purged.map(Record::Purge));
        if !self.log.is_empty() {
            records.push(Record::Append(self.log.values().cloned().collect()));
        }
        records
    }
}

/// A file longer than this is written anew, in bytes.
const LONG: u64 = 4 << 20;
/// A longer file was not written by this program, in bytes.
const MOST: u64 = 64 << 20;

/// A write that takes this long takes as long as a voter waits for a leader before it wants to be one: views
/// may have to wait for the disk.
const SLOW: Duration = Duration::from_millis(150);
/// Interval between two lines in the log about a slow disk.
const QUIET: Duration = Duration::from_secs(10);

/// The file, which a thread of its own writes: a slow disk does not hold up the leases.
#[derive(Clone)]
pub(super) struct Journal {
    writes: mpsc::Sender<(Record, oneshot::Sender<io::Result<()>>)>,
}

impl Journal {
    /// Opens the file, and returns what it says.
    ///
    /// # Errors
    /// The file cannot be read or written, or it is damaged before its end.
    pub(super) fn open(path: &Path) -> io::Result<(Self, State)> {
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)?;
        let mut text = Vec::new();
        Read::by_ref(&mut file).take(MOST + 1).read_to_end(&mut text)?;
        if text.len() as u64 > MOST {
            let text = format!("{} is longer than any journal", path.display());
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        let (state, good) = replay(&text, path)?;
        if good < text.len() {
            tracing::warn!(path = %path.display(), "the last record of the journal was cut off by an unclean end");
            file.set_len(good as u64)?;
            file.sync_data()?;
        }
        file.seek(SeekFrom::End(0))?;
        let (writes, inbox) = mpsc::channel::<(Record, oneshot::Sender<io::Result<()>>)>();
        let mut writer = Writer {
            path: path.to_owned(),
            file,
            size: good as u64,
            state: state.clone(),
        };
        thread::Builder::new()
            .name("fleet-journal".to_owned())
            .spawn(move || {
                let mut told: Option<Instant> = None;
                while let Ok((record, done)) = inbox.recv() {
                    let begun = Instant::now();
                    let written = writer.write(record);
                    if begun.elapsed() > SLOW && told.is_none_or(|told| told.elapsed() > QUIET) {
                        told = Some(Instant::now());
                        tracing::warn!(target: kind::DISK,
                            path = %writer.path.display(),
                            took_ms = begun.elapsed().as_millis() as u64,
                            "fleet: the disk under its directory is slow; while it is, views change late"
                        );
                    }
                    // Behind half a record another one would be damage in the middle of the file.
                    let has_failed = written.is_err();
                    let _ = done.send(written);
                    if has_failed {
                        break;
                    }
                }
            })?;
        Ok((Self { writes }, state))
    }

    /// Writes a record. The result comes when it is on the disk.
    pub(super) fn write(&self, record: Record) -> oneshot::Receiver<io::Result<()>> {
        let (done, result) = oneshot::channel();
        // A writer that has ended drops `done`, which the receiver reports.
        let _ = self.writes.send((record, done));
        result
    }

    /// Writes a record, and waits until it is on the disk.
    pub(super) async fn save(&self, record: Record) -> io::Result<()> {
        let ended = |_| io::Error::other("the journal's thread has ended");
        self.write(record).await.map_err(ended)?
    }
}

fn line(record: &Record) -> io::Result<String> {
    let text = serde_json::to_string(record)?;
    Ok(format!("{:016x} {text}\n", xxh3_64(text.as_bytes())))
}

/// What the text says, and how many of its bytes are whole records.
fn replay(text: &[u8], path: &Path) -> io::Result<(State, usize)> {
    let (mut state, mut good) = (State::default(), 0);
    for line in text.split_inclusive(|&byte| byte == b'\n') {
        let record = line.strip_suffix(b"\n").and_then(|line| {
            let (sum, text) = line.split_at_checked(17)?;
            let sum = u64::from_str_radix(str::from_utf8(sum).ok()?.trim_end(), 16).ok()?;
            (sum == xxh3_64(text)).then(|| serde_json::from_slice::<Record>(text).ok())?
        });
        match record {
            Some(record) => state.apply(record),
            None if good + line.len() == text.len() => break,
            None => {
                let text = format!(
                    "{} is damaged at byte {good}: move the directory away, and this peer joins as a new one",
                    path.display()
                );
                return Err(io::Error::new(io::ErrorKind::InvalidData, text));
            }
        }
        good += line.len();
    }
    Ok((state, good))
}

struct Writer {
    path: PathBuf,
    file: File,
    size: u64,
    state: State,
}

impl Writer {
    fn write(&mut self, record: Record) -> io::Result<()> {
        let text = line(&record)?;
        self.file.write_all(text.as_bytes())?;
        self.file.sync_data()?;
        self.size += text.len() as u64;
        self.state.apply(record);
        if self.size > LONG {
            self.write_anew()?;
        }
        Ok(())
    }

    /// Writes a file that says the same in fewer words, and puts it in the place of the old one at once.
    fn write_anew(&mut self) -> io::Result<()> {
        let next = self.path.with_extension("new");
        let mut file = File::create(&next)?;
        let lines: Vec<String> = self.state.records().iter().map(line).collect::<io::Result<_>>()?;
        let text = lines.concat();
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&next, &self.path)?;
        if let Some(folder) = self.path.parent() {
            File::open(folder)?.sync_all()?;
        }
        self.file = OpenOptions::new().append(true).open(&self.path)?;
        self.size = text.len() as u64;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use openraft::{CommittedLeaderId, EntryPayload};

    use super::*;

    fn entry(index: u64) -> Entry<Types> {
        Entry {
            log_id: LogId::new(CommittedLeaderId::new(1, 1), index),
            payload: EntryPayload::Blank,
        }
    }

    async fn write(path: &Path, records: Vec<Record>) {
        let (journal, _) = Journal::open(path).unwrap();
        for record in records {
            journal.save(record).await.unwrap();
        }
    }

    #[tokio::test]
    async fn journal_cut_at_any_byte_says_what_was_written_before() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let records = vec![
            Record::Vote(Vote::new(3, 7)),
            Record::Append(vec![entry(1), entry(2)]),
            Record::Truncate(2),
            Record::Append(vec![entry(2), entry(3)]),
        ];
        write(&path, records).await;
        let text = fs::read(&path).unwrap();
        let ends: Vec<usize> = text
            .iter()
            .enumerate()
            .filter(|(_, byte)| **byte == b'\n')
            .map(|(at, _)| at + 1)
            .collect();
        for cut in 0..=text.len() {
            let (state, good) = replay(&text[..cut], &path).unwrap();
            let whole = ends.iter().filter(|end| **end <= cut).count();
            assert_eq!(good, if whole == 0 { 0 } else { ends[whole - 1] });
            assert_eq!(state.vote.is_some(), whole >= 1);
            assert_eq!(state.log.len(), [0, 0, 2, 1, 3][whole]);
        }
    }

    #[tokio::test]
    async fn journal_damaged_before_its_end_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        write(&path, vec![Record::Vote(Vote::new(3, 7)), Record::Truncate(1)]).await;
        let mut text = fs::read(&path).unwrap();
        text[20] ^= 1;
        fs::write(&path, text).unwrap();
        assert!(Journal::open(&path).is_err());
    }

    #[test]
    fn full_disk_is_an_error_and_not_a_lie() {
        let mut writer = Writer {
            path: "/dev/full".into(),
            file: OpenOptions::new().write(true).open("/dev/full").unwrap(),
            size: 0,
            state: State::default(),
        };
        assert!(writer.write(Record::Truncate(1)).is_err());
        assert_eq!(writer.size, 0);
    }

    #[test]
    fn file_without_end_is_refused() {
        assert!(Journal::open(Path::new("/dev/full")).is_err());
    }
}
