//! Makes a configuration of a command line, and again whenever its file changes.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use super::{
    base::BaseConfig,
    error::{OptionError, StartError},
    file,
    flags::{self, Flags},
    help,
    shown::shown,
};
use crate::{
    config::{
        ConfigError, Loaded, check, file as files, listen_socket, parse_yaml, reading::Reading, version_hash,
    },
    frontdoor::{self, ConfigSource},
    reactor::Io,
};

/// The file that is read if the command line names none, and the one where a distribution has it.
const CONFIG: [&str; 2] = ["conf/nutcracker.yml", "/etc/nutcracker/nutcracker.yml"];

/// The result of a command line. A text is for standard error, where twemproxy prints all.
pub type Start = frontdoor::Start<Run>;

/// The server that a command line of twemproxy's asks for.
#[derive(Debug)]
pub struct Run {
    /// The first configuration.
    pub loaded: Loaded,
    /// The log file. `None`: standard error.
    pub log_file: Option<PathBuf>,
    /// The amount of logging: 0 to 11, by default 5.
    pub verbosity: i32,
    /// Whether to start a daemon, and end.
    pub daemonize: bool,
    /// Whether this is the daemon.
    pub detached: bool,
    /// The file for the number of the process. `None` without such a file.
    pub pid_file: Option<PathBuf>,
    /// The address of the statistics port.
    pub stats_address: SocketAddr,
    /// How often statistics are gathered.
    pub stats_interval: Duration,
    /// The I/O back end.
    pub io: Io,
    path: PathBuf,
    base: BaseConfig,
}

/// Parses the arguments behind the program's name, and reads the configuration that they name.
///
/// # Errors
/// Options are refused, or the configuration is missing or refused.
pub fn start(arguments: impl IntoIterator<Item = String>) -> Result<Start, StartError> {
    let flags = flags::read(arguments)?;
    if flags.asks_version {
        let usage = if flags.asks_help {
            help::usage()
        } else {
            String::new()
        };
        let stats = if flags.asks_stats {
            help::statistics()
        } else {
            String::new()
        };
        return Ok(Start::Print(format!("{}{usage}{stats}", help::VERSION)));
    }
    let stats_address = listen_socket(&flags.statistics())
        .ok_or_else(|| OptionError::StatsAddress(flags.stats_addr.clone()))?;
    let name = flags.config_file.clone().unwrap_or_else(default_file);
    let path = PathBuf::from(&name);
    let base = BaseConfig::by(&flags);
    let loaded = load_from(&path, &base).map_err(|error| StartError::Config {
        times: if flags.only_tests && path.exists() { 2 } else { 1 },
        error,
        file: name.clone(),
    })?;
    if flags.only_tests {
        let good = format!("nutcracker: configuration file '{name}' syntax is ok\n");
        let warnings = loaded
            .warnings
            .iter()
            .map(|warning| format!("{warning} (warning)\n"));
        return Ok(Start::Print(std::iter::once(good).chain(warnings).collect()));
    }
    Ok(Start::Run(Box::new(Run {
        loaded,
        log_file: flags.log_file.map(PathBuf::from),
        verbosity: flags.verbosity,
        daemonize: flags.daemonize && !flags.detached,
        detached: flags.detached,
        pid_file: flags.pid_file.map(PathBuf::from),
        stats_address,
        stats_interval: Duration::from_millis(u64::from(flags.stats_interval.unsigned_abs())),
        io: flags.io,
        path,
        base,
    })))
}

impl ConfigSource for Run {
    fn load(&self) -> Result<Loaded, ConfigError> {
        load_from(&self.path, &self.base)
    }

    fn name(&self) -> String {
        format!("twemproxy's {}", self.path.display())
    }
}

fn default_file() -> String {
    let found = CONFIG.into_iter().find(|path| Path::new(path).exists());
    found.unwrap_or(CONFIG[0]).to_owned()
}

fn load_from(path: &Path, base: &BaseConfig) -> Result<Loaded, ConfigError> {
    let text = files::read(path).map_err(|diagnostic| ConfigError::one(path, diagnostic))?;
    checked(&text, path, base)
}

/// Checks a file of twemproxy's that was read from `path`.
///
/// # Errors
/// The file is refused.
pub fn parse(text: &str, path: &Path) -> Result<Loaded, ConfigError> {
    checked(text, path, &BaseConfig::by(&Flags::default()))
}

fn checked(text: &str, path: &Path, base: &BaseConfig) -> Result<Loaded, ConfigError> {
    let mut cx = Reading::default();
    let root = parse_yaml(text).map_err(|diagnostic| ConfigError::one(path, diagnostic))?;
    let read = file::read(&root, base, &mut cx);
    let mut mistakes = std::mem::take(&mut cx.mistakes);
    match read {
        Ok(config) => {
            mistakes.extend(check::check(&config, &cx.index));
            if mistakes.is_empty() {
                return Ok(Loaded {
                    config,
                    warnings: cx.warnings_of(path),
                    version_hash: version_hash([text]),
                    text: shown(&root),
                    files_watched: vec![path.to_owned()],
                    digests: Vec::new(),
                });
            }
        }
        Err(mistake) => mistakes.push(mistake),
    }
    mistakes.sort_by_key(|diagnostic| diagnostic.at);
    Err(ConfigError::all(path, mistakes))
}
