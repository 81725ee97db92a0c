//! Makes a configuration of a command line, and again whenever its file changes.

use std::{
    fmt::Display,
    hash::{BuildHasher as _, RandomState},
    path::PathBuf,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use super::{
    base::base,
    door::Door,
    dump::Dump,
    error::{OptionError, StartError},
    flags::{self, Flags, Validates},
    help::help,
    load::{Input, Reader},
    runtime,
    settings::Settings,
};
use crate::{
    config::{ConfigError, Loaded, load_peer},
    frontdoor::{self, ConfigSource, EjectedCounts, HealthChange},
    reactor::Io,
};

/// The output of `--version`.
const VERSION: &str = "1.0.0 mcrouter\n";

/// Time after a change before a file is read, unless `--reconfiguration-delay-ms` is given: enough for a
/// writer to finish.
const SETTLE: Duration = Duration::from_millis(100);

/// The result of a command line. A text is for standard output.
pub type Start = frontdoor::Start<Run>;

/// The server that a command line of mcrouter's asks for.
#[derive(Debug)]
pub struct Run {
    /// The first configuration.
    pub loaded: Loaded,
    /// Warnings about the command line.
    pub warnings: Vec<String>,
    /// Features of mcrouter that were asked for and do not exist here, to be logged at the start.
    pub not_served: Vec<String>,
    /// Time from a change of the files until they are read again. `None`: they are not followed.
    pub reload_after: Option<Duration>,
    /// The door's description of itself, for clients that ask for it.
    pub door: Door,
    /// The log file. `None`: standard error.
    pub log_file: Option<PathBuf>,
    /// The amount of logging: 0 to 4, by default 1.
    pub verbosity: u64,
    /// The I/O back end.
    pub io: Io,
    /// A random time of up to this is added to [`Run::reload_after`].
    jitter: Duration,
    reader: Reader,
    /// Whether the process starts by the dump of an earlier configuration if this one is bad.
    starts_by_dump: bool,
    has_loaded: AtomicBool,
}

/// Parses the arguments behind the program's name, and reads the configuration that they name.
///
/// # Errors
/// Options are refused, ports are impossible, or the configuration is missing or refused.
pub fn start(arguments: impl IntoIterator<Item = String>) -> Result<Start, StartError> {
    let arguments: Vec<String> = arguments.into_iter().collect();
    let said = arguments.join(" ");
    let mut flags = flags::read(arguments)?;
    if flags.asks_help {
        return Ok(Start::Print(help()));
    }
    if flags.asks_version {
        return Ok(Start::Print(VERSION.to_owned()));
    }
    let input = input(&flags)?;
    let settings = Settings::of(&flags)?;
    let base = base(&flags)?;
    let io = flags.text("io").parse().map_err(OptionError::Io)?;
    let peer_file = flags.path("fleet");
    if peer_file.is_some() && (settings.keep_writing.is_some() || base.state.is_some()) {
        return Err(OptionError::FleetAndKeepWriting.into());
    }
    if base.state.is_some() && settings.keep_writing.is_none() {
        let idle = "option `--keep-writing-state` has no effect without `--keep-writing`";
        flags.warnings.push(idle.to_owned());
    }
    let refused = match flags.validates {
        Validates::Exit => StartError::Invalid,
        Validates::No | Validates::Run => StartError::Config,
    };
    let peer = peer_file
        .map(|path| Ok((load_peer(&path)?, path)))
        .transpose()
        .map_err(refused)?;
    let reader = Reader {
        input,
        settings,
        base,
        peer,
        dump: Dump::of(&flags),
        variables: runtime::path(&flags.text("runtime-vars-file")),
    };
    let door = Door::of(&mut flags, said, &reader.input, &reader.settings.constants);
    let starts_by_dump = flags.validates == Validates::No;
    let loaded = match reader.read() {
        Err(bad) if starts_by_dump => reader.read_dump(bad),
        read => read,
    };
    let loaded = loaded.map_err(refused)?;
    if flags.validates == Validates::Exit {
        return Ok(Start::Print(String::new()));
    }
    let delay = flags.number("reconfiguration-delay-ms");
    let delay = if flags.is_given("reconfiguration-delay-ms") {
        Duration::from_millis(delay)
    } else {
        SETTLE
    };
    Ok(Start::Run(Box::new(Run {
        loaded,
        not_served: not_served(&flags),
        reload_after: (!flags.flag("disable-reload-configs")).then_some(delay),
        door,
        log_file: flags.path("log-path"),
        verbosity: flags.number("verbosity"),
        io,
        jitter: Duration::from_millis(flags.number("reconfiguration-jitter-ms")),
        warnings: flags.warnings,
        reader,
        starts_by_dump,
        has_loaded: AtomicBool::new(false),
    })))
}

impl ConfigSource for Run {
    fn load(&self) -> Result<Loaded, ConfigError> {
        let is_first = !self.has_loaded.load(Ordering::Relaxed);
        let loaded = match self.reader.read_and_keep(is_first) {
            // Later, the configuration that runs stays.
            Err(bad) if is_first && self.starts_by_dump => self.reader.read_dump(bad),
            read => read,
        }?;
        self.has_loaded.store(true, Ordering::Relaxed);
        Ok(loaded)
    }

    fn expanded(&self) -> Option<Result<String, ConfigError>> {
        Some(self.reader.expanded())
    }

    fn name(&self) -> String {
        let files = &self.loaded.files_watched;
        let files: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
        match files.is_empty() {
            true => "mcrouter's --config-str".to_owned(),
            false => format!("mcrouter's {}", files.join(", ")),
        }
    }

    fn delay(&self) -> Duration {
        let jitter = u64::try_from(self.jitter.as_micros()).unwrap_or(u64::MAX);
        let random = RandomState::new().hash_one(()) % jitter.saturating_add(1);
        self.reload_after.unwrap_or_default() + Duration::from_micros(random)
    }

    fn forgets_ejections(&self) -> bool {
        true
    }

    fn say(&self, address: &dyn Display, change: HealthChange, all: EjectedCounts) {
        let all = format!("Total hard TKOs: {}; soft TKOs: {}", all.lost, all.late);
        match change {
            HealthChange::Ejected { was_late: true } => tracing::debug!("{address} marked soft TKO. {all}"),
            HealthChange::Ejected { was_late: false } => tracing::debug!("{address} marked hard TKO. {all}"),
            HealthChange::Returned => tracing::debug!("{address} unmarked TKO. {all}"),
            HealthChange::Forgotten => tracing::debug!("{address} was TKO, removed from config. {all}"),
        }
    }

    fn follows(&self) -> bool {
        self.reload_after.is_some()
    }
}

fn input(flags: &Flags) -> Result<Input, OptionError> {
    let file = |path: &str| Input::File(PathBuf::from(path));
    let (config, path, text) = (
        flags.text("config"),
        flags.text("config-file"),
        flags.text("config-str"),
    );
    match config.strip_prefix("file:") {
        Some(path) => Ok(file(path)),
        None if !config.is_empty() => Ok(Input::Text(config)),
        None if !path.is_empty() => Ok(file(path.strip_prefix("file:").unwrap_or(&path))),
        None if !text.is_empty() => Ok(Input::Text(text)),
        None => Err(OptionError::NoConfig),
    }
}

fn not_served(flags: &Flags) -> Vec<String> {
    let refuses = "as in mcrouter, a lost node makes the writes of an AllSyncRoute fail, and one that returns is read with \
                   what it held; with --keep-writing neither happens";
    flags
        .missing()
        .chain(
            (flags.text("keep-writing") == "false" && flags.text("fleet").is_empty())
                .then(|| refuses.to_owned()),
        )
        .collect()
}
