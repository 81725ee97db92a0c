//! The thread that writes the state file. A disk that hangs holds up what must be noted before it may happen, and nothing
//! else: no time-out, no admin port, no signal.

use std::{
    io,
    path::{Path, PathBuf},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc},
    thread,
    time::Duration,
};

use tokio::sync::mpsc::UnboundedSender;

use super::{
    notes::{Known, Note},
    state_file::{Left, StateFile},
};

/// The start waits so long for the disk.
const START: Duration = Duration::from_secs(10);

/// What is to be written. Each has a number of its own, and what was written last stands for all before it.
struct Job {
    number: u64,
    copies: Vec<Note>,
    clean: bool,
}

/// What has become of all jobs up to this number.
#[derive(Clone, Copy, Debug)]
pub(in crate::control) struct Written {
    pub(super) number: u64,
    pub(super) left: Left,
}

/// Where the newest job lies until the thread takes it.
#[derive(Default)]
struct Desk {
    newest: Mutex<Option<Job>>,
    has_come: Condvar,
}

impl Desk {
    fn newest(&self) -> MutexGuard<'_, Option<Job>> {
        self.newest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> Job {
        let mut newest = self.newest();
        loop {
            if let Some(job) = newest.take() {
                return job;
            }
            newest = self.has_come.wait(newest).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// The thread, as the control thread sees it.
pub(super) struct Writer {
    desk: Arc<Desk>,
    path: PathBuf,
    /// Of the last job that was put, and of the last that is done.
    pub(super) newest: u64,
    pub(super) done: u64,
}

impl Writer {
    /// Opens the state file. What becomes of each job is said to `written`.
    ///
    /// # Errors
    /// As [`StateFile::open`]; or its disk does not answer.
    pub(super) fn open(path: &Path, written: UnboundedSender<Written>) -> io::Result<(Self, Known)> {
        let (opened, result) = mpsc::channel();
        let desk = Arc::new(Desk::default());
        let (jobs, place) = (Arc::clone(&desk), path.to_owned());
        thread::Builder::new()
            .name("state-file".to_owned())
            .spawn(move || {
                let mut file = match StateFile::open(&place) {
                    Ok((file, known)) => {
                        // Who has waited too long for it does not use it: it is closed with this thread.
                        if opened.send(Ok(known)).is_err() {
                            return;
                        }
                        file
                    }
                    Err(error) => return drop(opened.send(Err(error))),
                };
                loop {
                    let job = jobs.take();
                    let left = file.keep(job.copies, job.clean);
                    let number = job.number;
                    if written.send(Written { number, left }).is_err() {
                        return;
                    }
                }
            })?;
        let late = |_| {
            let text = format!(
                "{} is on a disk that does not answer within {START:?}",
                path.display()
            );
            Err(io::Error::new(io::ErrorKind::TimedOut, text))
        };
        let known = result.recv_timeout(START).unwrap_or_else(late)?;
        let writer = Self {
            desk,
            path: path.to_owned(),
            newest: 0,
            done: 0,
        };
        Ok((writer, known))
    }

    /// Puts a job in the place of one that has not been begun; returns its number.
    pub(super) fn put(&mut self, copies: Vec<Note>, clean: bool) -> u64 {
        self.newest += 1;
        let number = self.newest;
        *self.desk.newest() = Some(Job {
            number,
            copies,
            clean,
        });
        self.desk.has_come.notify_one();
        number
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}
