//! When the state file is written, and which steps of copies wait for that.

use std::{io, mem, path::Path, sync::Arc, time::Duration};

use tokio::{
    sync::mpsc::{UnboundedReceiver, unbounded_channel},
    time::{sleep, timeout},
};

use super::Copies;
use crate::{
    control::{Proxy, Rooms, membership::Membership},
    copies::state_file::{PreviousRun, Record, RestartState, WriteReport, Writer},
    event_log::kind,
    members::ServerIdentity,
    protocol::Incarnation,
};

/// Until a state file that could not be written is tried again.
const RETRY: Duration = Duration::from_secs(1);
/// How long a copy that is about to be read again waits for the state file to say so.
const REPAIRED_TIMEOUT: Duration = Duration::from_millis(200);
/// A write of the state file that takes longer is told.
const LATE: Duration = Duration::from_secs(2);
/// How long the end waits for workers, and for its own record: without it the next start takes this end for a
/// crash.
const END_TIMEOUT: Duration = Duration::from_secs(2);
/// Between two looks at whether all workers have ended.
const LOOK_AT_END: Duration = Duration::from_millis(5);
/// Between two looks at whether the state file is written.
const LOOK_AT_FILE: Duration = Duration::from_millis(1);

/// What has become of writes of the state file; to be heard by [`Proxy::hear_of_state_file`].
pub(in crate::control) type StateFileWrites = UnboundedReceiver<WriteReport>;

/// The state file, if there is one, and what waits for it.
pub(super) struct Saving {
    file: Option<FileInUse>,
    /// Steps of copies, by proposal, and the numbers of the writes that they wait for.
    waiting: Vec<(ServerIdentity, u64, u64)>,
    /// A failed write will be tried again.
    retries: bool,
    /// Times that the state file could not be written.
    pub(super) failures: u64,
}

/// A state file: what it said at the start, and the thread that writes it.
struct FileInUse {
    known: PreviousRun,
    writer: Writer,
    /// The last records that were put, unless they could not be written.
    last: Option<Vec<Record>>,
    /// The end's own records were put: nothing is written behind them.
    closed: bool,
}

/// The progress of a write of the state file.
#[derive(Clone, Copy, Debug)]
pub(super) enum Write {
    /// There is none, or it says all of this already.
    Done,
    /// It will be written with the write of this number.
    UnderWay(u64),
    /// The same, and no other write was under way.
    Begun(u64),
}

impl Saving {
    /// Opens the state file, if there is to be one.
    pub(super) fn open(path: Option<&Path>) -> io::Result<(Self, StateFileWrites)> {
        let (written, writes) = unbounded_channel();
        let open = |path| {
            let (writer, known) = Writer::open(path, written)?;
            io::Result::Ok(FileInUse {
                known,
                writer,
                last: None,
                closed: false,
            })
        };
        let saving = Self {
            file: path.map(open).transpose()?,
            waiting: Vec::new(),
            retries: false,
            failures: 0,
        };
        Ok((saving, writes))
    }

    /// What the state file said at the start; `None`: there is no state file.
    pub(super) fn known(&self) -> Option<&PreviousRun> {
        self.file.as_ref().map(|file| &file.known)
    }

    /// Has these records written, unless that is done or under way.
    pub(super) fn write(&mut self, records: Vec<Record>) -> Write {
        let Some(file) = &mut self.file else {
            return Write::Done;
        };
        if file.closed {
            return Write::UnderWay(u64::MAX);
        }
        let is_idle = file.writer.done == file.writer.newest;
        if file.last.as_ref() != Some(&records) {
            file.last = Some(records.clone());
            let number = file.writer.put(records, false);
            return if is_idle {
                Write::Begun(number)
            } else {
                Write::UnderWay(number)
            };
        }
        if is_idle {
            Write::Done
        } else {
            Write::UnderWay(file.writer.newest)
        }
    }

    /// The step of this proposal waits for the write of this number.
    pub(super) fn wait(&mut self, server: ServerIdentity, epoch: u64, number: u64) {
        self.waiting.push((server, epoch, number));
    }

    /// All writes up to this number are done: takes out the steps that waited for them.
    fn done(&mut self, number: u64) -> Vec<(ServerIdentity, u64)> {
        let done = self.waiting.extract_if(.., |&mut (_, _, of)| of <= number);
        done.map(|(server, epoch, _)| (server, epoch)).collect()
    }

    /// Has the end's own records written, behind which nothing is. Returns the number of that write; `None`:
    /// there is no state file.
    fn close(&mut self, records: Vec<Record>, clean: bool) -> Option<u64> {
        let file = self.file.as_mut()?;
        file.closed = true;
        Some(file.writer.put(records, clean))
    }

    /// Are all writes up to this number done?
    fn is_done(&self, number: u64) -> bool {
        self.file.as_ref().is_none_or(|file| file.writer.done >= number)
    }
}

impl Proxy {
    /// Has the state file written, so that what copies missed outlives this process.
    pub(super) fn save(self: &Arc<Self>, rooms: &mut Rooms) -> Write {
        let records = records(rooms);
        let write = rooms.membership.copies.ledger.saving.write(records);
        self.watch_write(write);
        write
    }

    /// Tells of a write that takes long.
    pub(super) fn watch_write(self: &Arc<Self>, write: Write) {
        if let Write::Begun(number) = write {
            self.runtime.spawn(Arc::clone(self).warn_if_late(number));
        }
    }

    /// Hears what becomes of writes of the state file: steps that waited for them go on.
    pub(in crate::control) async fn hear_of_state_file(self: Arc<Self>, mut writes: StateFileWrites) {
        while let Some(WriteReport { number, left }) = writes.recv().await {
            let rooms = &mut *self.rooms();
            let saving = &mut rooms.membership.copies.ledger.saving;
            if let Some(file) = &mut saving.file {
                file.writer.done = number;
                if left != RestartState::Newest {
                    file.last = None;
                }
            }
            if left != RestartState::Newest {
                saving.failures += 1;
                if !mem::replace(&mut saving.retries, true) {
                    self.runtime.spawn(Arc::clone(&self).save_again());
                }
            }
            if left != RestartState::Older {
                for (server, epoch) in saving.done(number) {
                    let acts = rooms.membership.copies.agreement.saved(&server, epoch);
                    self.execute(rooms, acts);
                }
            }
        }
    }

    async fn save_again(self: Arc<Self>) {
        sleep(RETRY).await;
        let rooms = &mut *self.rooms();
        rooms.membership.copies.ledger.saving.retries = false;
        self.save(rooms);
    }

    /// This copy was repaired at a server in this life: has that written before the copy is read again, so
    /// that a restart soon after does not repair it once more. A disk that is slow is not waited for.
    pub(super) async fn save_repaired(self: &Arc<Self>, server: &ServerIdentity, life: Incarnation) {
        let write = {
            let rooms = &mut *self.rooms();
            rooms.membership.copies.ledger.repaired.insert(server.clone());
            rooms.membership.copies.agreement.met(server, life);
            self.save(rooms)
        };
        if let Write::UnderWay(number) | Write::Begun(number) = write {
            let _ = timeout(REPAIRED_TIMEOUT, self.written(number)).await;
        }
    }

    /// Waits until the write of this number is done, or a later one.
    async fn written(&self, number: u64) {
        while !self.rooms().membership.copies.ledger.saving.is_done(number) {
            sleep(LOOK_AT_FILE).await;
        }
    }

    async fn warn_if_late(self: Arc<Self>, number: u64) {
        sleep(LATE).await;
        let saving = &mut self.rooms().membership.copies.ledger.saving;
        if let Some(file) = &saving.file
            && file.writer.done < number
        {
            let path = file.writer.path().display();
            tracing::error!(target: kind::DISK,
                %path,
                "the disk of the state file does not answer: until it does, writes that a copy misses \
                 are refused"
            );
            saving.failures += 1;
        }
    }

    /// The workers have been told to end: once all have, has it written that they did so cleanly, if that is
    /// so.
    pub(in crate::control) async fn save_end(self: &Arc<Self>) {
        let ended = async {
            while self.rooms().membership.copies.ledger.ended < self.workers.len() {
                sleep(LOOK_AT_END).await;
            }
        };
        // A worker that has panicked does not say that it ends.
        let all = timeout(END_TIMEOUT, ended).await.is_ok();
        let number = {
            let rooms = &mut *self.rooms();
            let records = records(rooms);
            let ledger = &mut rooms.membership.copies.ledger;
            let clean = all && !ledger.left_unanswered && ledger.orphans.is_empty();
            ledger.saving.close(records, clean)
        };
        let Some(number) = number else { return };
        if timeout(END_TIMEOUT, self.written(number)).await.is_err() {
            tracing::warn!(
                "the disk of the state file does not answer: the next start takes this end for a crash"
            );
        }
    }
}

/// What the state file is to say.
fn records(rooms: &Rooms) -> Vec<Record> {
    let Membership { members, copies, .. } = &rooms.membership;
    let Copies {
        agreement, ledger, ..
    } = copies;
    ledger.records(agreement, members, rooms.configuration.config())
}
