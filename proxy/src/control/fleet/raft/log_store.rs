//! The log, as Raft reads and writes it.

use std::{
    collections::BTreeMap,
    fmt::Debug,
    io,
    ops::RangeBounds,
    sync::{Arc, Mutex, PoisonError},
};

use openraft::{
    Entry, LogId, LogState, OptionalSend, RaftLogReader, StorageError, StorageIOError, Vote,
    storage::{LogFlushed, RaftLogStorage},
};

use super::{
    Types,
    journal::{Journal, Record, State},
};

/// The log.
#[derive(Clone)]
pub(super) struct LogStore {
    journal: Journal,
    state: Arc<Mutex<Log>>,
}

#[derive(Default)]
struct Log {
    vote: Option<Vote<u64>>,
    entries: BTreeMap<u64, Entry<Types>>,
    purged: Option<LogId<u64>>,
}

impl LogStore {
    pub(super) fn new(journal: Journal, kept: State) -> Self {
        let log = Log {
            vote: kept.vote,
            entries: kept.log,
            purged: kept.purged,
        };
        Self {
            journal,
            state: Arc::new(Mutex::new(log)),
        }
    }

    fn log(&self) -> std::sync::MutexGuard<'_, Log> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn save(&self, record: Record) -> Result<(), StorageError<u64>> {
        let saved = self.journal.save(record).await;
        saved.map_err(|error| StorageIOError::write(&error).into())
    }
}

impl RaftLogReader<Types> for LogStore {
    async fn try_get_log_entries<RB: RangeBounds<u64> + Clone + Debug + OptionalSend>(
        &mut self,
        range: RB,
    ) -> Result<Vec<Entry<Types>>, StorageError<u64>> {
        Ok(self
            .log()
            .entries
            .range(range)
            .map(|(_, entry)| entry.clone())
            .collect())
    }
}

impl RaftLogStorage<Types> for LogStore {
    type LogReader = Self;

    async fn get_log_state(&mut self) -> Result<LogState<Types>, StorageError<u64>> {
        let log = self.log();
        let last = log.entries.values().next_back().map(|entry| entry.log_id);
        Ok(LogState {
            last_purged_log_id: log.purged,
            last_log_id: last.or(log.purged),
        })
    }

    async fn get_log_reader(&mut self) -> Self {
        self.clone()
    }

    async fn save_vote(&mut self, vote: &Vote<u64>) -> Result<(), StorageError<u64>> {
        self.save(Record::Vote(*vote)).await?;
        self.log().vote = Some(*vote);
        Ok(())
    }

    async fn read_vote(&mut self) -> Result<Option<Vote<u64>>, StorageError<u64>> {
        Ok(self.log().vote)
    }

    async fn append<I>(&mut self, entries: I, callback: LogFlushed<Types>) -> Result<(), StorageError<u64>>
    where
        I: IntoIterator<Item = Entry<Types>> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let entries: Vec<Entry<Types>> = entries.into_iter().collect();
        let written = self.journal.write(Record::Append(entries.clone()));
        let numbered = entries.into_iter().map(|entry| (entry.log_id.index, entry));
        self.log().entries.extend(numbered);
        tokio::spawn(async move {
            let ended = |_| io::Error::other("the journal's thread has ended");
            callback.log_io_completed(written.await.map_err(ended).and_then(|result| result));
        });
        Ok(())
    }

    async fn truncate(&mut self, log_id: LogId<u64>) -> Result<(), StorageError<u64>> {
        self.save(Record::Truncate(log_id.index)).await?;
        drop(self.log().entries.split_off(&log_id.index));
        Ok(())
    }

    async fn purge(&mut self, log_id: LogId<u64>) -> Result<(), StorageError<u64>> {
        self.save(Record::Purge(log_id)).await?;
        let mut log = self.log();
        log.entries = log.entries.split_off(&(log_id.index + 1));
        log.purged = Some(log_id);
        Ok(())
    }
}
