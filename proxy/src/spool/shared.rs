//! The state that the threads of a spool share.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use super::line::ServerName;
use crate::{near::Near, tls::Connector};

/// The fate of a failed delete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// It was taken.
    Kept,
    /// It could not be taken: its client got the error.
    Refused,
    /// It was sent again, and its server has answered.
    Replayed,
    /// Its line cannot be read, or its server refuses its key.
    Dropped,
}

/// How many deletes met each of these.
#[derive(Debug, Default)]
pub struct Counts([AtomicU64; 4]);

impl Counts {
    /// The name of each, for metrics.
    pub const NAMES: [(Count, &'static str); 4] = [
        (Count::Kept, "kept"),
        (Count::Refused, "refused"),
        (Count::Replayed, "replayed"),
        (Count::Dropped, "dropped"),
    ];

    pub(super) fn add(&self, count: Count, number: u64) {
        self.0[count as usize].fetch_add(number, Relaxed);
    }

    /// The value of this counter.
    pub fn of(&self, count: Count) -> u64 {
        self.0[count as usize].load(Relaxed)
    }
}

#[derive(Debug, Default)]
pub(super) struct Shared {
    pub(super) counts: Counts,
    has_ended: AtomicBool,
    /// The disk takes nothing now.
    is_failing: AtomicBool,
    /// The open file is to be completed, so that it can be sent.
    is_rotation_due: AtomicBool,
    files: Mutex<Files>,
    /// The servers that are reached by TLS.
    secure: Mutex<BTreeMap<ServerName, Arc<Connector>>>,
    /// The near cache whose replies deletes remove. `None` without one.
    near: Mutex<Option<Arc<Near>>>,
    changed: Condvar,
}

/// The files with deletes in them, and the servers that each of them names.
#[derive(Debug, Default)]
pub(super) struct Files {
    /// The servers in the file that is being written.
    pub(super) current: BTreeSet<ServerName>,
    /// The files that are complete, the oldest first: their names begin with their time.
    pub(super) complete: BTreeMap<PathBuf, BTreeSet<ServerName>>,
}

impl Shared {
    /// The servers that are reached by TLS.
    pub(super) fn secure(&self) -> MutexGuard<'_, BTreeMap<ServerName, Arc<Connector>>> {
        self.secure.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The near cache whose replies deletes remove. `None` without one.
    pub(super) fn near(&self) -> MutexGuard<'_, Option<Arc<Near>>> {
        self.near.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn files(&self) -> MutexGuard<'_, Files> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets both threads end.
    pub(super) fn end(&self) {
        self.has_ended.store(true, Relaxed);
        self.wake();
    }

    /// Has the thread that waits for deletes look again.
    pub(super) fn wake(&self) {
        // The lock is taken so that no thread is about to wait without having seen the change.
        let _files = self.files();
        self.changed.notify_all();
    }

    /// Waits until there are deletes in files. Returns `false` if the spool has ended.
    pub(super) fn wait_for_deletes(&self) -> bool {
        let is_idle =
            |files: &mut Files| files.current.is_empty() && files.complete.is_empty() && !self.has_ended();
        let files = self.changed.wait_while(self.files(), is_idle);
        drop(files.unwrap_or_else(PoisonError::into_inner));
        !self.has_ended()
    }

    /// Waits for this time, or until the spool ends.
    pub(super) fn pause(&self, time: Duration) {
        let goes_on = |_: &mut Files| !self.has_ended();
        let waited = self.changed.wait_timeout_while(self.files(), time, goes_on);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    pub(super) fn set_failing(&self, is_failing: bool) {
        self.is_failing.store(is_failing, Relaxed);
    }

    pub(super) fn is_failing(&self) -> bool {
        self.is_failing.load(Relaxed)
    }

    /// Has the open file completed. The writer does so even if the disk is full: sending the file makes room.
    pub(super) fn request_rotation(&self) {
        self.is_rotation_due.store(true, Relaxed);
    }

    /// Returns whether the file is to be completed, and forgets it.
    pub(super) fn take_rotation(&self) -> bool {
        self.is_rotation_due.swap(false, Relaxed)
    }

    pub(super) fn has_ended(&self) -> bool {
        self.has_ended.load(Relaxed)
    }
}
