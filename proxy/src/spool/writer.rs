//! The thread that writes failed deletes into files.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    io::{self, Write},
    mem,
    path::{Path, PathBuf},
    sync::mpsc::{Receiver, RecvTimeoutError},
    thread,
    time::{Duration, Instant, SystemTime},
};

use super::{
    files,
    line::{FailedDelete, ServerName},
    shared::{Count, Shared},
};
use crate::{config::schema::SpoolOptions, event_log::kind};

/// A message to the writer.
#[derive(Debug)]
pub(super) enum Message {
    /// Keep this.
    Delete(FailedDelete),
    /// Check whether the open file is to be completed.
    Rotate,
    /// Write what is left, and end.
    End,
}

/// A file is complete after this time, as mcrouter's.
const AGE: Duration = Duration::from_secs(15 * 60);
/// Deletes of one write at most.
const BATCH: usize = 1_000;
/// Time between two attempts to write to a disk that refuses it.
const RETRY: Duration = Duration::from_secs(1);
/// Time between two checks whether the file is to be completed meanwhile.
const LOOK: Duration = Duration::from_millis(20);
/// Time between two lines of the log about such a disk.
const COMPLAINT: Duration = Duration::from_secs(60);

/// Writes until the spool ends.
pub(super) fn run(options: &SpoolOptions, shared: &Shared, messages: &Receiver<Message>) {
    let mut writer = Writer {
        options,
        shared,
        current: None,
        lines: Vec::new(),
        count: 0,
        servers: BTreeSet::new(),
        is_full: false,
        complained: None,
    };
    loop {
        let left = writer
            .current
            .as_ref()
            .map(|current| AGE.saturating_sub(current.since.elapsed()));
        let message = match left {
            None => messages.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(left) => messages.recv_timeout(left),
        };
        match message {
            Ok(message) => writer.take(message),
            Err(RecvTimeoutError::Timeout) => writer.is_full = true,
            Err(RecvTimeoutError::Disconnected) => return,
        }
        for message in messages.try_iter().take(BATCH) {
            writer.take(message);
        }
        while !writer.write() && !shared.has_ended() {
            writer.await_room();
        }
        if shared.has_ended() {
            messages.try_iter().for_each(|message| writer.take(message));
            writer.write();
            return;
        }
    }
}

struct Writer<'a> {
    options: &'a SpoolOptions,
    shared: &'a Shared,
    current: Option<Current>,
    /// Lines that are not in the file yet, their number, and their servers.
    lines: Vec<u8>,
    count: u64,
    servers: BTreeSet<ServerName>,
    /// The file is to be completed once the lines are in it.
    is_full: bool,
    complained: Option<Instant>,
}

/// The file that is being written.
struct Current {
    file: File,
    path: PathBuf,
    /// Bytes of whole lines in it.
    length: u64,
    since: Instant,
}

impl Writer<'_> {
    fn take(&mut self, message: Message) {
        match message {
            Message::Delete(delete) => {
                let start = self.lines.len();
                match delete.write(self.options, SystemTime::now(), &mut self.lines) {
                    Some(server) => {
                        self.servers.insert(server);
                        self.count += 1;
                    }
                    None => {
                        self.lines.truncate(start);
                        self.shared.counts.add(Count::Dropped, 1);
                    }
                }
            }
            Message::Rotate | Message::End => {}
        }
    }

    /// Puts the lines into the file. Returns `false` if the disk does not take them; they are kept.
    fn write(&mut self) -> bool {
        if !self.lines.is_empty()
            && let Err(error) = self.append()
        {
            self.shared.set_failing(true);
            self.complain(&error);
            return false;
        }
        self.shared.set_failing(false);
        if self.shared.take_rotation() | mem::take(&mut self.is_full) {
            self.complete();
        }
        self.shared.wake();
        true
    }

    /// Waits until the disk is to be tried again. The lines in the file can be sent meanwhile; the waiting
    /// lines go to the next file.
    fn await_room(&mut self) {
        let since = Instant::now();
        while since.elapsed() < RETRY && !self.shared.has_ended() {
            if self.shared.take_rotation() {
                self.complete();
                self.shared.wake();
            }
            thread::sleep(LOOK);
        }
    }

    /// Completes the file that is being written.
    fn complete(&mut self) {
        let Some(current) = self.current.take() else {
            return;
        };
        let mut files = self.shared.files();
        let servers = mem::take(&mut files.current);
        files.complete.insert(current.path, servers);
    }

    fn append(&mut self) -> io::Result<()> {
        let current = match &mut self.current {
            Some(current) => current,
            none => none.insert(Current::new(self.options)?),
        };
        if let Err(error) = current.file.write_all(&self.lines) {
            // A part of a line must not stand before the next one.
            current.file.set_len(current.length)?;
            return Err(error);
        }
        current.length += self.lines.len() as u64;
        self.lines.clear();
        self.count = 0;
        self.complained = None;
        self.shared.files().current.append(&mut self.servers);
        Ok(())
    }

    fn complain(&mut self, error: &io::Error) {
        if self.complained.is_some_and(|then| then.elapsed() < COMPLAINT) {
            return;
        }
        self.complained = Some(Instant::now());
        tracing::error!(target: kind::DISK,
            folder = %self.options.dir.display(),
            waiting = self.count,
            %error,
            "failed deletes cannot be written; they wait in memory, and clients get the errors of further ones"
        );
    }
}

impl Current {
    fn new(options: &SpoolOptions) -> io::Result<Self> {
        let path = files::path(options, SystemTime::now(), any_number());
        fs::create_dir_all(path.parent().unwrap_or(Path::new("/")))?;
        let file = File::options().append(true).create_new(true).open(&path)?;
        Ok(Self {
            file,
            path,
            length: 0,
            since: Instant::now(),
        })
    }
}

/// A number that no other file of this second has, most likely.
fn any_number() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(std::process::id())
}
