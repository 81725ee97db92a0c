//! The roster, as committed entries make it.

use std::io::{self, Cursor};

use openraft::{
    BasicNode, Entry, EntryPayload, LogId, OptionalSend, RaftSnapshotBuilder, Snapshot, SnapshotMeta,
    StorageError, StorageIOError, StoredMembership, storage::RaftStateMachine,
};
use tokio::sync::watch;

use super::{
    Types,
    journal::{Journal, Record, StoredSnapshot},
};
use crate::fleet::Roster;

/// The roster.
pub(super) struct StateMachine {
    journal: Journal,
    applied: Option<LogId<u64>>,
    membership: StoredMembership<u64, BasicNode>,
    roster: watch::Sender<Roster>,
    snapshot: Option<StoredSnapshot>,
}

impl StateMachine {
    /// The roster of this snapshot, which later entries change.
    pub(super) fn new(
        journal: Journal,
        snapshot: Option<StoredSnapshot>,
    ) -> io::Result<(Self, watch::Receiver<Roster>)> {
        let roster = snapshot
            .as_ref()
            .map(|kept| kept.roster.clone())
            .unwrap_or_default();
        let (roster, committed) = watch::channel(roster);
        let machine = Self {
            journal,
            applied: snapshot.as_ref().and_then(|kept| kept.meta.last_log_id),
            membership: snapshot
                .as_ref()
                .map(|kept| kept.meta.last_membership.clone())
                .unwrap_or_default(),
            roster,
            snapshot,
        };
        Ok((machine, committed))
    }
}

#[allow(clippy::result_large_err, reason = "the error is Raft's")]
fn bytes(kept: &StoredSnapshot) -> Result<Snapshot<Types>, StorageError<u64>> {
    let bytes =
        serde_json::to_vec(&kept.roster).map_err(|error| StorageIOError::write_snapshot(None, &error))?;
    Ok(Snapshot {
        meta: kept.meta.clone(),
        snapshot: Box::new(Cursor::new(bytes)),
    })
}

/// Makes a snapshot of one moment.
pub(super) struct Builder {
    journal: Journal,
    kept: StoredSnapshot,
}

impl RaftSnapshotBuilder<Types> for Builder {
    async fn build_snapshot(&mut self) -> Result<Snapshot<Types>, StorageError<u64>> {
        let record = Record::Snapshot(Box::new(self.kept.clone()));
        let saved = self.journal.save(record).await;
        saved.map_err(|error| StorageIOError::write_snapshot(None, &error))?;
        bytes(&self.kept)
    }
}

impl RaftStateMachine<Types> for StateMachine {
    type SnapshotBuilder = Builder;

    async fn applied_state(
        &mut self,
    ) -> Result<(Option<LogId<u64>>, StoredMembership<u64, BasicNode>), StorageError<u64>> {
        Ok((self.applied, self.membership.clone()))
    }

    async fn apply<I>(&mut self, entries: I) -> Result<Vec<bool>, StorageError<u64>>
    where
        I: IntoIterator<Item = Entry<Types>> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let mut results = Vec::new();
        for entry in entries {
            self.applied = Some(entry.log_id);
            results.push(match entry.payload {
                EntryPayload::Blank => false,
                EntryPayload::Normal(change) => self.roster.send_if_modified(|roster| roster.apply(&change)),
                EntryPayload::Membership(membership) => {
                    self.membership = StoredMembership::new(Some(entry.log_id), membership);
                    false
                }
            });
        }
        Ok(results)
    }

    async fn get_snapshot_builder(&mut self) -> Builder {
        let kept = StoredSnapshot {
            meta: SnapshotMeta {
                last_log_id: self.applied,
                last_membership: self.membership.clone(),
                snapshot_id: self.applied.map_or(String::new(), |id| id.to_string()),
            },
            roster: self.roster.borrow().clone(),
        };
        self.snapshot = Some(kept.clone());
        Builder {
            journal: self.journal.clone(),
            kept,
        }
    }

    async fn begin_receiving_snapshot(&mut self) -> Result<Box<Cursor<Vec<u8>>>, StorageError<u64>> {
        Ok(Box::default())
    }

    async fn install_snapshot(
        &mut self,
        meta: &SnapshotMeta<u64, BasicNode>,
        snapshot: Box<Cursor<Vec<u8>>>,
    ) -> Result<(), StorageError<u64>> {
        let unreadable = |error| StorageIOError::read_snapshot(Some(meta.signature()), &error);
        let roster: Roster = serde_json::from_slice(snapshot.get_ref()).map_err(unreadable)?;
        let kept = StoredSnapshot {
            meta: meta.clone(),
            roster: roster.clone(),
        };
        let saved = self.journal.save(Record::Snapshot(Box::new(kept.clone()))).await;
        saved.map_err(|error| StorageIOError::write_snapshot(Some(meta.signature()), &error))?;
        self.applied = meta.last_log_id;
        self.membership = meta.last_membership.clone();
        self.roster.send_replace(roster);
        self.snapshot = Some(kept);
        Ok(())
    }

    async fn get_current_snapshot(&mut self) -> Result<Option<Snapshot<Types>>, StorageError<u64>> {
        self.snapshot.as_ref().map(bytes).transpose()
    }
}
