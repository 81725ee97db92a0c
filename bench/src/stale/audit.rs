//! An audit: what every key has at the end, when nobody writes any more, beside what was acknowledged.

use std::{net::SocketAddr, thread, time::Instant};

use serde::Serialize;

use super::{
    AFTER_FAILURE, Run,
    answer::{Applied, Failure},
    ledger::Account,
    link::Link,
    options::Store,
    value,
};

/// What was found, each key where it is worst.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Audit {
    /// Acknowledged writes that are not there.
    pub(super) lost_acknowledged_writes: u64,
    /// Applications of writes beyond one. `None`: nothing counts them.
    pub(super) writes_applied_twice: Option<u64>,
    /// Keys that could not be read at some address.
    pub(super) unread_keys: u64,
    /// The first of the losses and of the writes applied twice, in words.
    pub(super) first_difference: Option<String>,
}

/// What was found of one key at one address.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Finding {
    lost: u64,
    twice: Option<u64>,
    words: String,
}

impl Audit {
    /// Looks at every key at every address.
    pub(super) fn of(run: &Run<'_>) -> Self {
        let addresses = run.options.addresses();
        let looks: Vec<_> = addresses.iter().map(|address| look(run, *address)).collect();
        let is_counted = matches!(run.options.store(), Store::Rows);
        let mut audit = Self {
            writes_applied_twice: is_counted.then_some(0),
            ..Self::default()
        };
        for key in 0..run.keys.len() {
            audit.add(looks.iter().map(|look| look[key].as_ref()));
        }
        audit
    }

    /// Adds what was found of a key at each address; `None`: it could not be read there.
    fn add<'a>(&mut self, found: impl Iterator<Item = Option<&'a Finding>>) {
        let (mut lost, mut twice, mut is_unread) = (0, 0, false);
        for finding in found {
            let Some(finding) = finding else {
                is_unread = true;
                continue;
            };
            let more = finding.twice.unwrap_or_default();
            if finding.lost + more > 0 {
                self.first_difference.get_or_insert_with(|| finding.words.clone());
            }
            lost = lost.max(finding.lost);
            twice = twice.max(more);
        }
        self.lost_acknowledged_writes += lost;
        self.writes_applied_twice = self.writes_applied_twice.map(|sum| sum + twice);
        self.unread_keys += u64::from(is_unread);
    }

    /// Whether something is lost or was done twice.
    pub(super) fn differs(&self) -> bool {
        self.lost_acknowledged_writes > 0 || self.writes_applied_twice > Some(0)
    }
}

impl Finding {
    /// Compares what a read has brought with what is known of the key.
    fn new(account: &Account, version: u64, applied: Option<Applied>, place: &str) -> Self {
        let is_old = version < account.newest;
        let missing = applied.map_or(0, |applied| account.acknowledged.saturating_sub(applied.writes));
        let more = |applied: Applied| applied.writes.saturating_sub(account.sent).max(applied.again);
        let counted = applied.map_or(String::new(), |Applied { writes, again }| {
            format!(", counts {writes} writes, {again} of which found their own version there,")
        });
        Self {
            // An older version in the place of the newest one has replaced it, or the newest never came.
            lost: missing.max(u64::from(is_old)),
            twice: applied.map(more),
            words: format!(
                "{place} has version {version}{counted} and should have version {} or a newer one: {} of {} \
                 versions were acknowledged",
                account.newest, account.acknowledged, account.sent
            ),
        }
    }
}

/// Reads all keys at an address, until each has what was acknowledged or the time is over.
fn look(run: &Run<'_>, address: SocketAddr) -> Vec<Option<Finding>> {
    let mut link = Link::new(address, run.options);
    let mut found = vec![None; run.keys.len()];
    let mut left: Vec<u32> = (0..run.options.keys).collect();
    let end = Instant::now() + run.options.timeout;
    loop {
        // A round that begins when the time is over is the last one: each key gets a look behind the end.
        let is_last = Instant::now() >= end;
        let mut is_silent = false;
        left.retain(|&key| {
            // An address that does not answer is not asked for all keys when the time is over.
            if is_silent && Instant::now() >= end {
                return true;
            }
            match read(run, &mut link, address, key) {
                Ok(finding) => {
                    let is_missing = finding.lost > 0;
                    found[key as usize] = Some(finding);
                    is_missing
                }
                Err(failure @ (Failure::Wrong(_) | Failure::Foreign(_))) => {
                    run.tally.lock().read_failed(address, failure);
                    false
                }
                Err(failure) => {
                    is_silent |= matches!(failure, Failure::Lost(_));
                    true
                }
            }
        });
        if left.is_empty() || is_last {
            return found;
        }
        thread::sleep(AFTER_FAILURE);
    }
}

fn read(run: &Run<'_>, link: &mut Link<'_>, address: SocketAddr, key: u32) -> Result<Finding, Failure> {
    let account = run.ledger.account(key);
    let name = &run.keys[key as usize];
    let place = format!("{address}: {name}");
    let Some(found) = link.get(name)? else {
        let nothing = matches!(run.options.store(), Store::Rows).then(Applied::default);
        return Ok(Finding::new(&account, 0, nothing, &place));
    };
    let version = value::version(name, run.options.value_size as usize, &found.value);
    match version.filter(|version| *version <= account.sent) {
        Some(version) => Ok(Finding::new(&account, version, found.applied, &place)),
        None => Err(Failure::Wrong(format!(
            "{name} has a value that was never written"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seven versions were sent. The third and the newest were not acknowledged.
    const ACCOUNT: Account = Account {
        newest: 6,
        acknowledged: 5,
        sent: 7,
    };

    /// What is lost and what was applied twice, where a row has this version and these counts.
    fn found(version: u64, writes: u64, again: u64) -> (u64, Option<u64>) {
        let finding = Finding::new(&ACCOUNT, version, Some(Applied { writes, again }), "k");
        (finding.lost, finding.twice)
    }

    #[test]
    fn a_write_without_an_acknowledgement_may_be_applied_once_or_not() {
        for (version, writes) in [(6, 5), (6, 6), (7, 6), (7, 7)] {
            assert_eq!(found(version, writes, 0), (0, Some(0)), "{version}, {writes}");
        }
    }

    #[test]
    fn fewer_writes_than_acknowledged_and_an_older_version_are_losses() {
        assert_eq!(found(6, 4, 0), (1, Some(0)));
        assert_eq!(found(6, 1, 0), (4, Some(0)));
        // The third came late and has replaced the sixth.
        assert_eq!(found(3, 6, 0), (1, Some(0)));
        // There is no row.
        assert_eq!(found(0, 0, 0), (5, Some(0)));
    }

    #[test]
    fn more_writes_than_sent_and_one_that_has_found_itself_are_applied_twice() {
        assert_eq!(found(7, 8, 0), (0, Some(1)));
        // Of the two without an acknowledgement none was applied, and another one twice.
        assert_eq!(found(6, 6, 1), (0, Some(1)));
        assert_eq!(found(7, 9, 2), (0, Some(2)));
    }

    #[test]
    fn what_counts_nothing_tells_only_whether_the_newest_is_there() {
        let finding = |version| Finding::new(&ACCOUNT, version, None, "k");
        assert_eq!((finding(6).lost, finding(6).twice), (0, None));
        assert_eq!((finding(2).lost, finding(2).twice), (1, None));
    }

    #[test]
    fn a_key_counts_where_it_is_worst_and_an_unread_one_apart() {
        let at = |version, writes| Finding::new(&ACCOUNT, version, Some(Applied { writes, again: 0 }), "k");
        let (good, lost, twice) = (at(6, 5), at(6, 3), at(7, 8));
        let mut audit = Audit {
            writes_applied_twice: Some(0),
            ..Audit::default()
        };
        audit.add([Some(&good), None].into_iter());
        assert!(!audit.differs());
        audit.add([Some(&good), Some(&lost), Some(&lost)].into_iter());
        audit.add([Some(&twice), Some(&lost)].into_iter());
        assert!(audit.differs());
        let first = lost.words;
        assert_eq!(
            audit,
            Audit {
                lost_acknowledged_writes: 4,
                writes_applied_twice: Some(1),
                unread_keys: 1,
                first_difference: Some(first),
            }
        );
    }
}
