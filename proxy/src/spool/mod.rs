//! Deletes that a server has not taken, kept in files until it is back: mcrouter's asynchronous log. A cache
//! that misses a delete would go on serving an outdated value.
//!
//! ```text
//!  worker ─ take ─▶ writer (a thread) ─▶ files ─▶ replay (a thread) ─▶ servers that are back
//! ```
//!
//! A delete that was taken is answered as a miss. It waits in memory, bounded, until it is in a file. While
//! the disk takes nothing, no further deletes are taken: their clients get the error, as without a spool. A
//! delete is sent again at least once, and for each server in the order of the failures. A reader of
//! mcrouter's files reads these as well.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "threads of their own, for which no request waits"
)]

mod changes;
mod files;
mod line;
mod replay;
mod server;
mod shared;
mod writer;

use std::{
    sync::{
        Arc,
        mpsc::{self, SyncSender},
    },
    thread::{self, JoinHandle},
};

pub use self::{
    line::FailedDelete,
    shared::{Count, Counts},
};
use self::{line::ServerName, shared::Shared, writer::Message};
use crate::{config::schema::SpoolOptions, near::Near, tls::Connector};

/// Deletes that wait for the disk at most.
const QUEUE: usize = 64 * 1024;

/// The spool of this process. It is closed with its last handle: what was taken is written first.
#[derive(Debug)]
pub struct Spool {
    queue: Option<SyncSender<Message>>,
    shared: Arc<Shared>,
    writer: Option<JoinHandle<()>>,
}

impl Spool {
    /// Starts the threads of a spool. Nothing is written, and no folder made, before the first delete.
    ///
    /// # Errors
    /// The system gives no more threads.
    pub fn open(options: SpoolOptions) -> std::io::Result<Self> {
        let (queue, messages) = mpsc::sync_channel(QUEUE);
        let shared = Arc::new(Shared::default());
        let (options, for_writer) = (Arc::new(options), Arc::clone(&shared));
        let own = Arc::clone(&options);
        let writer = thread::Builder::new()
            .name("spool".into())
            .spawn(move || writer::run(&own, &for_writer, &messages))?;
        let (for_replay, rotate) = (Arc::clone(&shared), queue.clone());
        thread::Builder::new()
            .name("spool-replay".into())
            .spawn(move || replay::run(&options, &for_replay, &rotate))?;
        Ok(Self {
            queue: Some(queue),
            shared,
            writer: Some(writer),
        })
    }

    /// From now on these servers, by their addresses, are reached by TLS when deletes are sent again, and no
    /// others are.
    pub fn secure<'a>(&self, servers: impl Iterator<Item = (&'a str, Arc<Connector>)>) {
        let servers = servers.filter_map(|(address, tls)| Some((ServerName::parse(address)?, tls)));
        *self.shared.secure() = servers.collect();
    }

    /// From now on the deletes that are sent again are changes in this near cache. `None`: there is no near
    /// cache.
    pub fn follow_near(&self, near: Option<&Arc<Near>>) {
        *self.shared.near() = near.cloned();
    }

    /// Takes a delete that a server has not taken. `false` if it cannot be kept: its client has to get the
    /// error.
    pub fn take(&self, delete: FailedDelete) -> bool {
        let can_take = !self.shared.is_failing() && delete.can_be_written();
        let queue = self.queue.as_ref().filter(|_| can_take);
        let is_taken = queue.is_some_and(|queue| queue.try_send(Message::Delete(delete)).is_ok());
        let count = if is_taken { Count::Kept } else { Count::Refused };
        self.shared.counts.add(count, 1);
        is_taken
    }

    /// How many deletes were kept, refused, sent again, and dropped.
    pub fn counts(&self) -> &Counts {
        &self.shared.counts
    }
}

impl Drop for Spool {
    fn drop(&mut self) {
        // A process that ends does not wait for a disk that hangs: the writer itself gives up.
        self.shared.end();
        if let Some(queue) = self.queue.take() {
            // The writer of a full queue sees that the spool has ended by itself.
            let _ = queue.try_send(Message::End);
        }
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
    }
}
