//! Makes a configuration of a command line, and again whenever its file changes.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use super::{
    base::{base, path},
    error::{OptionError, Refused},
    flags::{self, Flags},
    fleet::join,
    help::help,
    keep_writing::keep_writing,
    settings::Settings,
    tree,
};
use crate::{
    config::{
        ConfigError, Diagnostic, Loaded, PeerFile, Place, check, file, load_peer,
        reading::Reading,
        schema::{Config, Listener},
        version_hash,
    },
    frontdoor::{self, ConfigSource},
    reactor::Io,
};

/// The output of `--version`.
const VERSION: &str = "1.0.0 mcrouter\n";

/// The name in messages for a configuration that is an argument.
const ARGUMENT: &str = "<command line>";

/// Time after a change before a file is read, unless `--reconfiguration-delay-ms` is given: enough for a
/// writer to finish.
const SETTLE: Duration = Duration::from_millis(100);

/// Parts of mcrouter that do not exist here, whatever the options say.
const NOT_THERE: [&str; 5] = [
    "leases",
    "`get __mcrouter__.…`",
    "files of statistics, traffic taps and configuration dumps",
    "the preprocessor's macros",
    "keys for several routes (`/*/*/key`, `/region/*/key`, `/region/fallback/key`): they get an error",
];

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
    /// Whether `flush_all` is allowed. Otherwise it gets `SERVER_ERROR Command disabled`.
    pub flush_enabled: bool,
    /// The log file. `None`: standard error.
    pub log_file: Option<PathBuf>,
    /// The amount of logging: 0 to 4, by default 1.
    pub verbosity: u64,
    /// The I/O back end.
    pub io: Io,
    source: Input,
    settings: Settings,
    base: Config,
    /// The file that makes this proxy a peer of a fleet, as it was read at the start.
    peer: Option<(PeerFile, PathBuf)>,
}

/// The place of the configuration.
#[derive(Clone, Debug)]
enum Input {
    File(PathBuf),
    Text(String),
}

/// Parses the arguments behind the program's name, and reads the configuration that they name.
///
/// # Errors
/// Options are refused, ports are impossible, or the configuration is missing or refused.
pub fn start(arguments: impl IntoIterator<Item = String>) -> Result<Start, Refused> {
    let mut flags = flags::read(arguments)?;
    if flags.asks_help {
        return Ok(Start::Print(help()));
    }
    if flags.asks_version {
        return Ok(Start::Print(VERSION.to_owned()));
    }
    let source = input(&flags)?;
    let settings = Settings::of(&flags)?;
    let base = base(&flags)?;
    let io = flags.text("io").parse().map_err(OptionError::Io)?;
    let peer_file = path(&flags, "fleet");
    if peer_file.is_some() && (settings.keep_writing.is_some() || base.state.is_some()) {
        return Err(OptionError::FleetAndKeepWriting.into());
    }
    if base.state.is_some() && settings.keep_writing.is_none() {
        let idle = "option `--keep-writing-state` has no effect without `--keep-writing`";
        flags.warnings.push(idle.to_owned());
    }
    let refused = match flags.only_validates {
        true => Refused::Invalid,
        false => Refused::Config,
    };
    let peer = peer_file
        .map(|path| Ok((load_peer(&path)?, path)))
        .transpose()
        .map_err(refused)?;
    let loaded = load_from(&source, &settings, &base, peer.as_ref()).map_err(refused)?;
    if flags.only_validates {
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
        flush_enabled: flags.flag("enable-flush-cmd"),
        log_file: path(&flags, "log-path"),
        verbosity: flags.number("verbosity"),
        io,
        warnings: flags.warnings,
        source,
        settings,
        base,
        peer,
    })))
}

impl ConfigSource for Run {
    fn load(&self) -> Result<Loaded, ConfigError> {
        load_from(&self.source, &self.settings, &self.base, self.peer.as_ref())
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
        self.reload_after.unwrap_or_default()
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

fn load_from(
    source: &Input,
    settings: &Settings,
    base: &Config,
    peer: Option<&(PeerFile, PathBuf)>,
) -> Result<Loaded, ConfigError> {
    let (path, text) = match source {
        Input::Text(text) => (Path::new(ARGUMENT), text.clone()),
        Input::File(path) => match file::read(path) {
            Ok(text) => (path.as_path(), text),
            Err(diagnostic) => {
                // The message is the one that mcrouter's users look for.
                let problem = format!("Can not read config: {}", diagnostic.problem);
                return Err(ConfigError::one(
                    path,
                    Diagnostic {
                        problem,
                        ..diagnostic
                    },
                ));
            }
        },
    };
    let mut cx = Reading::default();
    let tree =
        tree::read(&text, settings, &mut cx).map_err(|diagnostic| ConfigError::one(path, diagnostic))?;
    let listeners = base.listeners.iter().map(|listener| Listener {
        route: tree.root.clone(),
        ..listener.clone()
    });
    let mut config = Config {
        listeners: listeners.collect(),
        pools: tree.pools,
        routes: tree.routes,
        ..base.clone()
    };
    let diagnostics = check::check(&config, &cx.index);
    if !diagnostics.is_empty() {
        return Err(ConfigError::all(path, diagnostics));
    }
    if let Some(how) = settings.keep_writing {
        let warnings =
            keep_writing(&mut config, how).map_err(|diagnostic| ConfigError::one(path, diagnostic))?;
        for warning in warnings {
            cx.warn(Place { line: 1, column: 1 }, warning);
        }
    }
    if let Some((peer, file)) = peer {
        for warning in join(&mut config, peer, file)? {
            cx.warn(Place { line: 1, column: 1 }, warning);
        }
    }
    let own = matches!(source, Input::File(_)).then(|| path.to_owned());
    Ok(Loaded {
        config,
        warnings: cx.warnings_of(path),
        version_hash: version_hash(
            [text.as_str()]
                .into_iter()
                .chain(tree.files.values().map(String::as_str)),
        ),
        text,
        files_watched: own.into_iter().chain(tree.files.into_keys()).collect(),
    })
}

fn not_served(flags: &Flags) -> Vec<String> {
    let refuses = "as in mcrouter, a lost node makes the writes of an AllSyncRoute fail, and one that returns is read with \
                   what it held; with --keep-writing neither happens";
    NOT_THERE
        .iter()
        .map(|part| (*part).to_owned())
        .chain(flags.missing())
        .chain(
            (flags.text("keep-writing") == "false" && flags.text("fleet").is_empty())
                .then(|| refuses.to_owned()),
        )
        .collect()
}
