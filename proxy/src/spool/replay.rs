//! The thread that sends deletes again, file by file, to the servers that are back.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File},
    io::{self, BufRead, BufReader, BufWriter, Read, Write},
    path::{Path, PathBuf},
    sync::mpsc::SyncSender,
    time::{Duration, Instant},
};

use super::{
    changes::ReplayedDeletes,
    files,
    line::{self, ServerName},
    server::Server,
    shared::{Count, Shared},
    writer::Message,
};
use crate::config::schema::SpoolOptions;

/// Time between two looks whether servers are back.
const PAUSE: Duration = Duration::from_secs(1);
/// The longest time between two attempts to reach the same server.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// Lines that are read at a time.
const CHUNK: usize = 1_000;
/// The longest line, in bytes.
const LONGEST_LINE: u64 = 64 * 1024;

/// Sends until the spool ends.
pub(super) fn run(options: &SpoolOptions, shared: &Shared, writer: &SyncSender<Message>) {
    remember(options, shared);
    let mut replay = Replay {
        shared,
        down: BTreeMap::new(),
        open: BTreeMap::new(),
        sent: BTreeMap::new(),
        changes: ReplayedDeletes::default(),
    };
    while shared.wait_for_deletes() {
        replay.connect();
        if replay.open.is_empty() {
            shared.pause(PAUSE);
            continue;
        }
        replay.complete_current(writer);
        replay.send_all();
        replay.report();
        shared.pause(PAUSE);
    }
}

/// Finds the files that an earlier process has left.
fn remember(options: &SpoolOptions, shared: &Shared) {
    let found = files::left(options).unwrap_or_else(|error| {
        tracing::error!(folder = %options.dir.display(), %error, "failed deletes of earlier cannot be read");
        Vec::new()
    });
    for file in found {
        match servers_of(&file) {
            Ok(servers) if servers.is_empty() => {
                tracing::warn!(file = %file.display(), "no line of this file is a failed delete");
            }
            Ok(servers) => _ = shared.files().complete.insert(file, servers),
            Err(error) => {
                tracing::error!(file = %file.display(), %error, "failed deletes of earlier cannot be read");
            }
        }
    }
}

fn servers_of(file: &Path) -> io::Result<BTreeSet<ServerName>> {
    let (mut lines, mut servers) = (Lines::of(file)?, BTreeSet::new());
    while let Some(line) = lines.next()? {
        servers.extend(line::read(line).map(|(server, _)| server));
    }
    Ok(servers)
}

struct Replay<'a> {
    shared: &'a Shared,
    /// The servers that could not be reached, when they are tried again, and the pause before that.
    down: BTreeMap<ServerName, (Instant, Duration)>,
    open: BTreeMap<ServerName, Server>,
    /// Deletes sent since the last report.
    sent: BTreeMap<ServerName, usize>,
    changes: ReplayedDeletes,
}

impl Replay<'_> {
    /// Connects to the servers that have missed deletes.
    fn connect(&mut self) {
        self.open.clear();
        let wanted: BTreeSet<ServerName> = {
            let files = self.shared.files();
            let complete = files.complete.values().flatten();
            files.current.iter().chain(complete).cloned().collect()
        };
        self.down.retain(|server, _| wanted.contains(server));
        for server in wanted {
            let is_early = |(next, _): &(Instant, Duration)| *next > Instant::now();
            if self.shared.has_ended() || self.down.get(&server).is_some_and(is_early) {
                continue;
            }
            let tls = self.shared.secure().get(&server).cloned();
            match Server::connect(&server, tls.as_deref()) {
                Ok(connection) => {
                    self.down.remove(&server);
                    self.open.insert(server, connection);
                }
                Err(_) => self.is_down(server),
            }
        }
    }

    fn is_down(&mut self, server: ServerName) {
        let before = self.down.get(&server).map_or(Duration::ZERO, |(_, pause)| *pause);
        let pause = (before * 2).clamp(PAUSE, LONGEST_PAUSE);
        self.down.insert(server, (Instant::now() + pause, pause));
    }

    /// Has the open file completed if it has deletes of servers that are back.
    fn complete_current(&self, writer: &SyncSender<Message>) {
        let names_open = || {
            let files = self.shared.files();
            files.current.iter().any(|server| self.open.contains_key(server))
        };
        if names_open() {
            self.shared.request_rotation();
            // A writer whose queue is full looks by itself.
            let _ = writer.try_send(Message::Rotate);
            let deadline = Instant::now() + PAUSE;
            while names_open() && Instant::now() < deadline && !self.shared.has_ended() {
                self.shared.pause(Duration::from_millis(10));
            }
        }
    }

    fn send_all(&mut self) {
        let complete: Vec<PathBuf> = self.shared.files().complete.keys().cloned().collect();
        for file in complete {
            let concerns = self
                .shared
                .files()
                .complete
                .get(&file)
                .is_some_and(|servers| servers.iter().any(|server| self.open.contains_key(server)));
            if concerns && let Err(error) = self.send(&file) {
                tracing::error!(file = %file.display(), %error, "failed deletes cannot be sent again");
            }
        }
    }

    /// Sends a file's deletes to the servers that are back, and replaces the file by the rest. Where there is
    /// no room for the rest, the file stays as it is: its deletes are then sent once more after a restart.
    fn send(&mut self, file: &Path) -> io::Result<()> {
        let mut kept = UnsentLines::of(file);
        let mut lines = Lines::of(file)?;
        loop {
            let chunk = self.read_chunk(&mut lines)?;
            if chunk.is_empty() {
                break;
            }
            if self.shared.has_ended() {
                kept.discard();
                return Ok(());
            }
            self.send_chunk(&chunk, &mut kept);
        }
        if kept.servers.is_empty() {
            self.shared.files().complete.remove(file);
            return files::remove(file);
        }
        let servers = kept.servers.clone();
        let replaced = kept.replace(file);
        self.shared.files().complete.insert(file.to_owned(), servers);
        replaced
    }

    fn read_chunk(&self, lines: &mut Lines) -> io::Result<Vec<Entry>> {
        let mut chunk = Vec::new();
        while chunk.len() < CHUNK
            && let Some(line) = lines.next()?
        {
            match line::read(line) {
                Some((server, key)) => chunk.push(Entry {
                    server,
                    key,
                    line: line.to_owned(),
                }),
                None => self.shared.counts.add(Count::Dropped, 1),
            }
        }
        Ok(chunk)
    }

    fn send_chunk(&mut self, chunk: &[Entry], kept: &mut UnsentLines) {
        self.changes.follow(self.shared.near().as_ref());
        let mut by_server: BTreeMap<&ServerName, Vec<&Entry>> = BTreeMap::new();
        for entry in chunk {
            by_server.entry(&entry.server).or_default().push(entry);
        }
        for (name, entries) in by_server {
            let mut answered = 0;
            if let Some(server) = self.open.get_mut(name) {
                let keys: Vec<&str> = entries.iter().map(|entry| &*entry.key).collect();
                let change = self.changes.begin(keys.iter().copied());
                let progress = server.delete(&keys);
                answered = progress.answered;
                let counts = &self.shared.counts;
                counts.add(Count::Replayed, (answered - progress.refused) as u64);
                counts.add(Count::Dropped, progress.refused as u64);
                *self.sent.entry(name.clone()).or_default() += answered;
                if progress.failure.is_some() {
                    self.changes.linger(change);
                    self.open.remove(name);
                    self.is_down(name.clone());
                }
            }
            for entry in entries.into_iter().skip(answered) {
                kept.keep(entry);
            }
        }
    }

    fn report(&mut self) {
        for (server, deletes) in std::mem::take(&mut self.sent) {
            tracing::info!(server = %server.host, port = server.port, deletes, "failed deletes were sent again");
        }
    }
}

struct Entry {
    server: ServerName,
    key: String,
    line: Vec<u8>,
}

/// The lines of a file that could not be sent, in a file beside it, which is made for the first of them.
struct UnsentLines {
    path: PathBuf,
    file: io::Result<Option<BufWriter<File>>>,
    servers: BTreeSet<ServerName>,
}

impl UnsentLines {
    fn of(file: &Path) -> Self {
        Self {
            path: file.with_added_extension(files::REST),
            file: Ok(None),
            servers: BTreeSet::new(),
        }
    }

    /// Keeps a line. Where the disk does not take it, the other lines are not kept either.
    fn keep(&mut self, entry: &Entry) {
        self.servers.insert(entry.server.clone());
        if let Ok(file) = &mut self.file
            && let Err(error) = append(file, &self.path, &entry.line)
        {
            self.discard();
            self.file = Err(error);
        }
    }

    /// Puts what was kept into the place of `file`.
    fn replace(mut self, file: &Path) -> io::Result<()> {
        let finished = match &mut self.file {
            Ok(Some(kept)) => kept.flush().and_then(|()| kept.get_ref().sync_data()),
            Ok(None) => Ok(()),
            Err(error) => Err(io::Error::new(error.kind(), error.to_string())),
        };
        let replaced = finished.and_then(|()| fs::rename(&self.path, file));
        if replaced.is_err() {
            self.discard();
        }
        replaced
    }

    /// Gives back the room that it takes.
    fn discard(&mut self) {
        self.file = Ok(None);
        // Most often it was not made.
        let _ = fs::remove_file(&self.path);
    }
}

fn append(file: &mut Option<BufWriter<File>>, path: &Path, line: &[u8]) -> io::Result<()> {
    let file = match file {
        Some(file) => file,
        none => none.insert(BufWriter::new(File::create(path)?)),
    };
    file.write_all(line)?;
    file.write_all(b"\n")
}

/// The lines of a file, of bounded length.
struct Lines {
    file: BufReader<File>,
    line: Vec<u8>,
}

impl Lines {
    fn of(file: &Path) -> io::Result<Self> {
        Ok(Self {
            file: BufReader::new(File::open(file)?),
            line: Vec::new(),
        })
    }

    fn next(&mut self) -> io::Result<Option<&[u8]>> {
        self.line.clear();
        self.file
            .by_ref()
            .take(LONGEST_LINE)
            .read_until(b'\n', &mut self.line)?;
        Ok((!self.line.is_empty()).then(|| self.line.trim_ascii_end()))
    }
}
