//! The thread that writes the state file. A disk that hangs delays only what must be on disk first.
//! Time-outs, the admin port and signals go on.

use std::{
    io,
    path::{Path, PathBuf},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc},
    thread,
    time::Duration,
};

use tokio::sync::mpsc::UnboundedSender;

use super::{PreviousRun, Record, RestartState, StateFile};

/// How long the start waits for the disk.
const START_TIMEOUT: Duration = Duration::from_secs(10);

/// Contents to be written. Each job has a number of its own, and the job that was written last stands for all
/// before it.
struct Job {
    number: u64,
    copies: Vec<Record>,
    clean: bool,
}

/// The result of all jobs up to one.
#[derive(Clone, Copy, Debug)]
pub struct WriteReport {
    /// The number of that job.
    pub number: u64,
    /// The state that a restart would find.
    pub left: RestartState,
}

/// The mailbox of the newest job, until the thread takes it.
#[derive(Default)]
struct LatestJob {
    newest: Mutex<Option<Job>>,
    has_come: Condvar,
}

impl LatestJob {
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
pub struct Writer {
    latest: Arc<LatestJob>,
    path: PathBuf,
    /// The number of the last job that was put.
    pub newest: u64,
    /// The number of the last job that is done, as far as the control thread has heard.
    pub done: u64,
}

impl Writer {
    /// Opens the state file. `written` receives the result of each job.
    ///
    /// # Errors
    /// The file cannot be locked, read, understood or written, or its disk does not answer; the text says
    /// what to do.
    pub fn open(path: &Path, written: UnboundedSender<WriteReport>) -> io::Result<(Self, PreviousRun)> {
        let (opened, result) = mpsc::channel();
        let latest = Arc::new(LatestJob::default());
        let (jobs, place) = (Arc::clone(&latest), path.to_owned());
        thread::Builder::new()
            .name("state-file".to_owned())
            .spawn(move || {
                let mut file = match StateFile::open(&place) {
                    Ok((file, known)) => {
                        // A start that has waited too long does not use it: it is closed with this thread.
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
                    if written.send(WriteReport { number, left }).is_err() {
                        return;
                    }
                }
            })?;
        let late = |_| {
            let text = format!(
                "{} is on a disk that does not answer within {START_TIMEOUT:?}",
                path.display()
            );
            Err(io::Error::new(io::ErrorKind::TimedOut, text))
        };
        let known = result.recv_timeout(START_TIMEOUT).unwrap_or_else(late)?;
        let writer = Self {
            latest,
            path: path.to_owned(),
            newest: 0,
            done: 0,
        };
        Ok((writer, known))
    }

    /// Puts a job in the place of one that has not been begun; returns its number.
    pub fn put(&mut self, copies: Vec<Record>, clean: bool) -> u64 {
        self.newest += 1;
        let number = self.newest;
        *self.latest.newest() = Some(Job {
            number,
            copies,
            clean,
        });
        self.latest.has_come.notify_one();
        number
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}
