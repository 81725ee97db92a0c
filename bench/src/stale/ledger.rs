//! A record of writes and acknowledgements, key by key, by which every read is judged.
//!
//! A key has one writer, and its writes follow each other, so its versions are ordered. A read that begins
//! after version 7 was acknowledged must bring 7, a newer one, or nothing. A write without an acknowledgement
//! (refused, or never answered) leaves that bound where it is: its version may be seen, now or later, or
//! never. But once a newer version *is* acknowledged, seeing it is stale, as it would be with any other older
//! version.

use std::{
    sync::atomic::{AtomicU32, Ordering::Relaxed},
    time::{Duration, Instant},
};

use parking_lot::Mutex;

use super::history::History;

/// All keys of a run.
pub(super) struct Ledger {
    records: Vec<Mutex<Record>>,
    latest: AtomicU32,
}

struct Record {
    /// The newest version that was sent; its outcome may be open.
    sent: u64,
    acknowledged: History,
    /// The number of versions that were acknowledged, the first one included.
    count: u64,
    /// The time since which no write was acknowledged, if the last one was not.
    failing_since: Option<Instant>,
}

/// What is known of a key at the end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Account {
    /// The newest version that was acknowledged.
    pub(super) newest: u64,
    /// The number of versions that were acknowledged, the first one included.
    pub(super) acknowledged: u64,
    /// The number of versions that were sent, the first one included.
    pub(super) sent: u64,
}

/// A read under way: what was acknowledged when it began.
pub(super) struct Read {
    begun: Instant,
    floor: u64,
    floor_at: Instant,
}

/// The judgement of a version that a read has returned.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Fresh,
    Stale {
        /// From the acknowledgement of the first newer version to the beginning of the read.
        age: Duration,
        /// The version that was acknowledged last when the read began.
        acknowledged: u64,
    },
    /// No writer has ever sent it.
    NeverWritten,
}

impl Ledger {
    /// The version that every key has before the writers begin.
    pub(super) const FIRST: u64 = 1;

    /// `keys` keys whose first version was acknowledged just now.
    pub(super) fn new(keys: u32) -> Self {
        let record = || Record {
            sent: Self::FIRST,
            acknowledged: History::new(Self::FIRST, Instant::now()),
            count: 1,
            failing_since: None,
        };
        Self {
            records: (0..keys).map(|_| Mutex::new(record())).collect(),
            latest: AtomicU32::new(0),
        }
    }

    /// The key whose write was acknowledged last.
    pub(super) fn latest(&self) -> u32 {
        self.latest.load(Relaxed)
    }

    /// The version to write next; from now on a read may bring it.
    pub(super) fn begin_write(&self, key: u32) -> u64 {
        let mut record = self.record(key);
        record.sent += 1;
        record.sent
    }

    /// The write of `version` was acknowledged. Returns for how long none of the key had been, if the one
    /// before failed.
    pub(super) fn acknowledge(&self, key: u32, version: u64) -> Option<Duration> {
        let mut record = self.record(key);
        let now = Instant::now();
        record.acknowledged.push(version, now);
        record.count += 1;
        self.latest.store(key, Relaxed);
        record.failing_since.take().map(|since| now - since)
    }

    /// A write that was begun at `begun` was not acknowledged: its outcome is open.
    pub(super) fn fail(&self, key: u32, begun: Instant) {
        self.record(key).failing_since.get_or_insert(begun);
    }

    /// The longest time for which some key's writes have been failing now.
    pub(super) fn failing_for(&self) -> Option<Duration> {
        let since = self
            .records
            .iter()
            .filter_map(|record| record.lock().failing_since);
        since.min().map(|since| since.elapsed())
    }

    /// What is known of a key.
    pub(super) fn account(&self, key: u32) -> Account {
        let record = self.record(key);
        Account {
            newest: record.acknowledged.last().0,
            acknowledged: record.count,
            // Versions begin with 1, and each is sent once.
            sent: record.sent,
        }
    }

    /// Must be called before the request is sent.
    pub(super) fn begin_read(&self, key: u32) -> Read {
        let (floor, floor_at) = self.record(key).acknowledged.last();
        Read {
            // This is taken after the look at the ledger: what the ledger shows was acknowledged before the
            // read began.
            begun: Instant::now(),
            floor,
            floor_at,
        }
    }

    /// Judges the version that a read has returned.
    pub(super) fn judge(&self, key: u32, read: &Read, version: u64) -> Verdict {
        let record = self.record(key);
        if version > record.sent {
            return Verdict::NeverWritten;
        }
        if version >= read.floor {
            return Verdict::Fresh;
        }
        let newer = record.acknowledged.first_above(version).unwrap_or(read.floor_at);
        Verdict::Stale {
            age: read.begun - newer.min(read.floor_at),
            acknowledged: read.floor,
        }
    }

    fn record(&self, key: u32) -> parking_lot::MutexGuard<'_, Record> {
        self.records[key as usize].lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread::sleep;

    const TICK: Duration = Duration::from_millis(2);

    fn write(ledger: &Ledger) -> u64 {
        let version = ledger.begin_write(0);
        ledger.acknowledge(0, version);
        version
    }

    fn is_stale(ledger: &Ledger, read: &Read, version: u64) -> bool {
        matches!(ledger.judge(0, read, version), Verdict::Stale { .. })
    }

    #[test]
    fn what_was_acknowledged_before_a_read_is_the_oldest_it_may_bring() {
        let ledger = Ledger::new(1);
        let (second, before) = (write(&ledger), ledger.begin_read(0));
        let (third, after) = (write(&ledger), ledger.begin_read(0));
        assert_eq!(ledger.judge(0, &before, second), Verdict::Fresh);
        assert_eq!(ledger.judge(0, &before, third), Verdict::Fresh);
        assert!(is_stale(&ledger, &before, Ledger::FIRST));
        assert!(is_stale(&ledger, &after, second));
        assert_eq!(ledger.judge(0, &after, third + 1), Verdict::NeverWritten);
    }

    #[test]
    fn a_write_under_way_or_without_an_answer_may_be_seen_or_not() {
        let ledger = Ledger::new(1);
        let acknowledged = write(&ledger);
        let open = ledger.begin_write(0);
        let read = ledger.begin_read(0);
        ledger.fail(0, Instant::now());
        let account = Account {
            newest: acknowledged,
            acknowledged: 2,
            sent: open,
        };
        assert_eq!(ledger.account(0), account);
        let later = ledger.begin_read(0);
        for read in [&read, &later] {
            assert_eq!(ledger.judge(0, read, acknowledged), Verdict::Fresh);
            assert_eq!(ledger.judge(0, read, open), Verdict::Fresh);
        }
    }

    #[test]
    fn a_write_without_an_answer_that_appears_after_a_newer_one_is_stale() {
        let ledger = Ledger::new(1);
        let open = ledger.begin_write(0);
        ledger.fail(0, Instant::now());
        let newer = write(&ledger);
        let read = ledger.begin_read(0);
        assert!(is_stale(&ledger, &read, open));
        assert_eq!(ledger.judge(0, &read, newer), Verdict::Fresh);
    }

    #[test]
    fn the_age_counts_from_the_first_newer_acknowledgement_to_the_beginning_of_the_read() {
        let ledger = Ledger::new(1);
        let old = write(&ledger);
        sleep(TICK);
        write(&ledger);
        sleep(TICK);
        write(&ledger);
        sleep(TICK);
        let read = ledger.begin_read(0);
        sleep(10 * TICK);
        let whole = read.begun.elapsed();
        let Verdict::Stale { age, acknowledged } = ledger.judge(0, &read, old) else {
            panic!("not stale");
        };
        assert!(age >= 2 * TICK, "{age:?}");
        assert_eq!(acknowledged, old + 2);
        // The time that the read itself took is not part of it.
        let Verdict::Stale { age: later, .. } = ledger.judge(0, &ledger.begin_read(0), old) else {
            panic!("not stale");
        };
        assert!(later >= age + whole, "{later:?} {age:?} {whole:?}");
    }

    #[test]
    fn a_spell_of_failures_lasts_from_the_first_to_the_next_acknowledgement() {
        let ledger = Ledger::new(2);
        assert_eq!(ledger.failing_for(), None);
        let begun = Instant::now();
        ledger.begin_write(0);
        ledger.fail(0, begun);
        sleep(TICK);
        ledger.begin_write(0);
        ledger.fail(0, Instant::now());
        assert!(ledger.failing_for() >= Some(TICK));
        // Another key is no answer to the request.
        let other = ledger.begin_write(1);
        assert_eq!(ledger.acknowledge(1, other), None);
        let next = ledger.begin_write(0);
        assert!(ledger.acknowledge(0, next) >= Some(TICK));
        assert_eq!(ledger.failing_for(), None);
    }
}
