//! The log: its format, its level and its file, which signals may change while the process runs.
#![allow(
    clippy::disallowed_types,
    reason = "the log file is shared by all threads, and no request is logged"
)]

use std::{
    fs::File,
    io::{self, Write},
    os::fd::AsRawFd as _,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use tracing::Level;
use tracing_subscriber::{
    EnvFilter, Layer as _, Registry, field::MakeExt, fmt::format::debug_fn, layer::SubscriberExt, reload,
    util::SubscriberInitExt,
};

use super::LogFormat;
use crate::{
    control::LogControl,
    event_log::{EventLayer, EventLog, kind, write_field},
    reactor::log_segfaults,
};

/// A log file that can be opened anew, after another program has moved it away.
#[derive(Debug)]
pub struct LogFile {
    path: PathBuf,
    file: Mutex<File>,
}

impl LogFile {
    /// Opens the file, to append to it.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn open(path: &Path) -> io::Result<Arc<Self>> {
        Ok(Arc::new(Self {
            path: path.to_owned(),
            file: Mutex::new(append(path)?),
        }))
    }

    fn reopen(&self) -> io::Result<()> {
        let fresh = append(&self.path)?;
        *self.file.lock().unwrap_or_else(PoisonError::into_inner) = fresh;
        Ok(())
    }
}

fn append(path: &Path) -> io::Result<File> {
    File::options().create(true).append(true).open(path)
}

impl Write for &LogFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The switch for the level of a running log.
#[derive(Clone, Debug)]
pub struct LevelSwitch(reload::Handle<EnvFilter, Registry>);

impl LevelSwitch {
    fn set(&self, level: Level) {
        // It fails only when nothing is logged any more.
        let _ = self.0.reload(filter(level));
    }
}

/// Begins to log, to this file or to standard error. Changes of state are kept in `events`, whatever the level.
pub fn log(
    format: LogFormat,
    level: Level,
    file: Option<Arc<LogFile>>,
    events: &Arc<EventLog>,
) -> LevelSwitch {
    let (filter, handle) = reload::Layer::new(filter(level));
    let layer = tracing_subscriber::fmt::layer().with_target(false);
    let fields = debug_fn(|writer, field, value| write_field(writer, field.name(), value)).delimited(" ");
    let layer = match (format, file) {
        (LogFormat::Json, _) => layer.json().with_writer(io::stderr).boxed(),
        (LogFormat::Text, Some(file)) => {
            let layer = layer.fmt_fields(fields).with_ansi(false);
            layer.with_writer(file).boxed()
        }
        (LogFormat::Text, None) => {
            let colours = io::IsTerminal::is_terminal(&io::stderr());
            let layer = layer.fmt_fields(fields).with_ansi(colours);
            layer.with_writer(io::stderr).boxed()
        }
    };
    tracing_subscriber::registry()
        .with(layer.with_filter(filter))
        .with(EventLayer::new(events))
        .init();
    std::panic::set_hook(Box::new(|panic| {
        let at = panic.location().map(ToString::to_string);
        let why = panic.payload_as_str().unwrap_or("?");
        let thread = std::thread::current();
        tracing::error!(target: kind::DEFECT, at, thread = thread.name(), "panicked: {why}");
    }));
    LevelSwitch(handle)
}

/// The target of the names of signals, which twemproxy logs at every level.
const SIGNALS: &str = "proxima_signals";

/// The resolver logs every bad answer, and Raft every step. The control thread logs when answers begin to be
/// bad, when that ends, and what becomes of the fleet.
fn filter(level: Level) -> EnvFilter {
    let names = if level < Level::DEBUG {
        "off"
    } else {
        level.as_str()
    };
    EnvFilter::new(format!(
        "{level},{SIGNALS}=info,\
         hickory_resolver={names},hickory_net={names},hickory_proto={names},openraft={names}"
    ))
}

/// A log with numbered levels, which change while the process runs.
struct Levels {
    file: Option<Arc<LogFile>>,
    verbosity: Mutex<i32>,
    /// The highest level.
    most: i32,
    switch: LevelSwitch,
    /// The level of ours that is nearest to one of these.
    ours: fn(i32) -> Level,
}

impl Levels {
    fn verbosity(&self) -> i32 {
        *self.verbosity.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, verbosity: i32) {
        let mut current = self.verbosity.lock().unwrap_or_else(PoisonError::into_inner);
        *current = verbosity.clamp(0, self.most);
        self.switch.set((self.ours)(*current));
    }

    fn reopen(&self) {
        let Some(file) = &self.file else { return };
        let path = file.path.display();
        match file.reopen() {
            Ok(()) => tracing::info!(%path, "the log file is opened anew"),
            Err(error) => tracing::error!(%path, %error, "cannot open the log file anew"),
        }
    }
}

/// The log of mcrouter's door: it has five levels, and clients change them.
pub struct McrouterLog(Levels);

impl McrouterLog {
    /// The log in this file at this verbosity.
    pub fn new(file: Option<Arc<LogFile>>, verbosity: i32, switch: LevelSwitch) -> Self {
        Self(Levels {
            file,
            verbosity: Mutex::new(verbosity),
            most: 4,
            switch,
            ours: mcrouter_level,
        })
    }
}

/// The level of ours that is nearest to one of mcrouter's.
pub fn mcrouter_level(verbosity: i32) -> Level {
    match verbosity {
        ..=0 => Level::WARN,
        1 => Level::INFO,
        2 | 3 => Level::DEBUG,
        _ => Level::TRACE,
    }
}

impl LogControl for McrouterLog {
    fn reopen(&self) {
        self.0.reopen();
    }

    fn change_level(&self, by: i32) {
        self.0.set(self.0.verbosity().saturating_add(by));
    }

    fn verbosity(&self) -> i32 {
        self.0.verbosity()
    }

    fn set_verbosity(&self, verbosity: i32) {
        self.0.set(verbosity);
    }
}

/// The log of twemproxy's door: it has twelve levels, and signals change them.
pub struct NutcrackerLog(Levels);

impl NutcrackerLog {
    /// The log in this file at this verbosity.
    pub fn new(file: Option<Arc<LogFile>>, verbosity: i32, switch: LevelSwitch) -> Self {
        let log = Self(Levels {
            file,
            verbosity: Mutex::new(verbosity),
            most: 11,
            switch,
            ours: nutcracker_level,
        });
        log.take_segfaults();
        log
    }

    /// Has the name of SIGSEGV written to the log as it is now.
    fn take_segfaults(&self) {
        let descriptor = self.0.file.as_ref().map_or(libc::STDERR_FILENO, |log| {
            log.file
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .as_raw_fd()
        });
        if let Err(error) = log_segfaults(descriptor) {
            tracing::warn!(%error, "SIGSEGV will not be logged");
        }
    }
}

/// The level of ours that is nearest to one of twemproxy's.
pub fn nutcracker_level(verbosity: i32) -> Level {
    match verbosity {
        ..=3 => Level::ERROR,
        4 => Level::WARN,
        5 | 6 => Level::INFO,
        7 | 8 => Level::DEBUG,
        _ => Level::TRACE,
    }
}

impl LogControl for NutcrackerLog {
    fn reopen(&self) {
        let received = || self.received("1 (SIGHUP)", "reopening log file");
        received();
        self.0.reopen();
        if self.0.file.is_some() {
            received();
        }
        self.take_segfaults();
    }

    fn received(&self, signal: &str, action: &str) {
        tracing::info!(target: SIGNALS, "signal {signal} received, {action}");
    }

    fn change_level(&self, by: i32) {
        let (signal, word) = match by {
            0.. => ("21 (SIGTTIN)", "up"),
            _ => ("22 (SIGTTOU)", "down"),
        };
        let verbosity = self.verbosity().saturating_add(by).clamp(0, self.0.most);
        // It is said at the louder of the two levels.
        if by > 0 {
            self.set_verbosity(verbosity);
        }
        self.received(signal, &format!("{word} logging level"));
        tracing::info!(target: SIGNALS, "{word} log level to {verbosity}");
        if by < 0 {
            self.set_verbosity(verbosity);
        }
    }

    fn verbosity(&self) -> i32 {
        self.0.verbosity()
    }

    fn set_verbosity(&self, verbosity: i32) {
        self.0.set(verbosity);
    }
}
