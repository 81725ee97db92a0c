//! From a command line to what runs, and again whenever the file changes.

use std::{
    fmt::Write as _,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener},
    path::{Path, PathBuf},
    time::Duration,
};

use super::{
    flags::{self, Flags, Validate},
    options::{OPTIONS, Status, Takes},
    settings::{Settings, Timeouts},
    tree,
};
use crate::config::{
    Complaint, ConfigError, Loaded, check,
    form::check_address,
    load,
    reading::Reading,
    schema::{Config, Eject, Embedded, Limits, Listener, Route},
};

/// What `--version` says.
const VERSION: &str = "1.0.0 mcrouter\n";

/// What stands for the file where the configuration is an argument.
const ARGUMENT: &str = "<command line>";

/// How long a file is left alone after a change unless `--reconfiguration-delay-ms` says: enough for a writer to finish.
const SETTLE: Duration = Duration::from_millis(100);

/// "For ever", for sums with a clock.
const NEVER: Duration = Duration::from_secs(1_000 * 86_400);

/// Parts of mcrouter that are not there whatever the options say.
const NOT_THERE: [&str; 5] = [
    "the asynchronous log of failed deletes",
    "leases",
    "`get __mcrouter__.…`",
    "files of statistics, traffic taps and configuration dumps",
    "the preprocessor's macros",
];

/// What a command line comes to.
#[derive(Debug)]
pub enum Start {
    /// Print this on standard output and exit with 0.
    Print(String),
    /// Serve.
    Run(Box<Front>),
}

/// Why the program ends at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exit {
    /// 2: may work later. 3: will never work.
    pub code: u8,
    /// For standard error.
    pub message: String,
}

/// mcrouter's front door, open.
#[derive(Debug)]
pub struct Front {
    /// The first configuration.
    pub loaded: Loaded,
    /// Whether only to say if it is good; [`Validate::Exit`] never comes here.
    pub validate: Validate,
    /// About the command line.
    pub warnings: Vec<String>,
    /// What mcrouter would do and this does not, to be said at start.
    pub not_served: Vec<String>,
    /// How long after a change the files are read again; none = they are not followed.
    pub reload_after: Option<Duration>,
    /// `flush_all` is allowed; otherwise `SERVER_ERROR Command disabled`.
    pub flush_enabled: bool,
    /// Where to log; none = standard error.
    pub log_file: Option<PathBuf>,
    /// How much to log: 0 to 4, 1 without an option.
    pub verbosity: u64,
    source: Source,
    settings: Settings,
    frame: Config,
}

/// Where the configuration is.
#[derive(Clone, Debug)]
enum Source {
    File(PathBuf),
    Text(String),
}

/// Opens the door: reads the arguments behind the program's name, and the configuration that they name.
///
/// # Errors
/// Options that are refused, ports that cannot be, a configuration that is missing or refused.
pub fn start(arguments: impl IntoIterator<Item = String>) -> Result<Start, Exit> {
    let flags = flags::read(arguments).map_err(never)?;
    if flags.asks_help {
        return Ok(Start::Print(help()));
    }
    if flags.asks_version {
        return Ok(Start::Print(VERSION.to_owned()));
    }
    let source = source(&flags).map_err(never)?;
    let settings = settings(&flags).map_err(never)?;
    let frame = frame(&flags).map_err(never)?;
    let loaded = load_from(&source, &settings, &frame).map_err(|error| {
        let code = if flags.validate == Validate::Exit { 3 } else { 2 };
        Exit {
            code,
            message: error.to_string(),
        }
    })?;
    if flags.validate == Validate::Exit {
        return Ok(Start::Print(String::new()));
    }
    let delay = flags.number("reconfiguration-delay-ms");
    let delay = if flags.is_given("reconfiguration-delay-ms") {
        Duration::from_millis(delay)
    } else {
        SETTLE
    };
    Ok(Start::Run(Box::new(Front {
        loaded,
        validate: flags.validate,
        not_served: not_served(&flags),
        reload_after: (!flags.flag("disable-reload-configs")).then_some(delay),
        flush_enabled: flags.flag("enable-flush-cmd"),
        log_file: Some(flags.text("log-path"))
            .filter(|path| !path.is_empty())
            .map(PathBuf::from),
        verbosity: flags.number("verbosity"),
        warnings: flags.warnings,
        source,
        settings,
        frame,
    })))
}

impl Front {
    /// Reads the configuration again, under the same options.
    ///
    /// # Errors
    /// It is missing or refused; the running one stays.
    pub fn load(&self) -> Result<Loaded, ConfigError> {
        load_from(&self.source, &self.settings, &self.frame)
    }
}

fn never(message: String) -> Exit {
    Exit { code: 3, message }
}

fn source(flags: &Flags) -> Result<Source, String> {
    let file = |path: &str| Source::File(PathBuf::from(path));
    let (config, path, text) = (
        flags.text("config"),
        flags.text("config-file"),
        flags.text("config-str"),
    );
    match config.strip_prefix("file:") {
        Some(path) => Ok(file(path)),
        None if !config.is_empty() => Ok(Source::Text(config)),
        None if !path.is_empty() => Ok(file(path.strip_prefix("file:").unwrap_or(&path))),
        None if !text.is_empty() => Ok(Source::Text(text)),
        None => Err("no configuration: give --config=file:PATH".to_owned()),
    }
}

fn settings(flags: &Flags) -> Result<Settings, String> {
    let millis = |name: &str| Duration::from_millis(flags.number(name)).min(NEVER);
    let default_route = flags.text("route-prefix");
    let (region, cluster) = match default_route.split('/').collect::<Vec<_>>()[..] {
        ["", region, cluster, ""] if !region.is_empty() && !cluster.is_empty() => {
            (region.to_owned(), cluster.to_owned())
        }
        _ => {
            return Err(format!(
                "option `--route-prefix` takes `/region/cluster/`, not `{default_route}`"
            ));
        }
    };
    let server = millis("server-timeout");
    if server.is_zero() {
        return Err("option `--server-timeout` takes a number above 0".to_owned());
    }
    let initial = if flags.is_given("retry-timeout") {
        "retry-timeout"
    } else {
        "probe-timeout-initial"
    };
    let failures = u32::try_from(flags.number("timeouts-until-tko")).unwrap_or(u32::MAX);
    let eject = Eject {
        failures: if flags.flag("disable-tko-tracking") {
            0
        } else {
            failures
        },
        probe_initial: millis(initial).max(Duration::from_millis(1)),
        probe_max: millis("probe-timeout-max")
            .max(millis(initial))
            .max(Duration::from_millis(1)),
        fail_open_above: 1.0,
    };
    let timeouts = Timeouts {
        server,
        region,
        cluster,
        cross_region: millis("cross-region-timeout-ms"),
        cross_cluster: millis("cross-cluster-timeout-ms"),
        within_cluster: millis("within-cluster-timeout-ms"),
    };
    Ok(Settings {
        timeouts,
        eject,
        default_route,
        only_gets: flags.flag("allow-only-gets"),
        log_requests: flags.flag("enable-logging-route"),
    })
}

/// The configuration without its pools and routes: what the command line alone says.
fn frame(flags: &Flags) -> Result<Config, String> {
    let threads = flags.text("proxy-threads");
    let workers = match threads.as_str() {
        "auto" => None,
        "" => Some(flags.text("num-proxies")),
        _ => Some(threads),
    };
    let count = |text: String| text.parse().ok().filter(|count| (1..=1024).contains(count));
    let workers = match workers.map(count) {
        None => None,
        Some(Some(count)) => Some(count),
        Some(None) => return Err("the number of proxy threads is from 1 to 1024".to_owned()),
    };
    let bound = |name: &str| match flags.number(name) {
        0 => usize::MAX,
        bound => usize::try_from(bound).unwrap_or(usize::MAX),
    };
    let write_timeout = match flags.number("client-timeout") {
        0 => NEVER,
        millis => Duration::from_millis(millis).min(NEVER),
    };
    // 1 asks for as many as there may be files, which is no bound that clients would notice earlier than the kernel.
    let clients = if flags.number("max-conns") == 1 {
        usize::MAX
    } else {
        bound("max-conns")
    };
    let requests_in_flight = bound("max-client-outstanding-reqs");
    let limits = Limits {
        clients,
        requests_in_flight,
        write_timeout,
        ..Limits::DEFAULT
    };
    Ok(Config {
        workers,
        listeners: listeners(flags)?,
        admin: None,
        limits,
        embedded: Embedded::DEFAULT,
        ..Config::default()
    })
}

/// The addresses to listen on; their route is the root of the tree.
fn listeners(flags: &Flags) -> Result<Vec<Listener>, String> {
    let listener = |address| Listener {
        address,
        route: Route::Null,
    };
    let (ports, socket) = (flags.text("port"), flags.text("unix-domain-sock"));
    if !socket.is_empty() {
        let address = format!("unix:{socket}");
        return match check_address(&address, true) {
            _ if !ports.is_empty() => Err("--unix-domain-sock and --port cannot both be given".to_owned()),
            Ok(()) => Ok(vec![listener(address)]),
            Err(why) => Err(format!("option `--unix-domain-sock`: {why}")),
        };
    }
    let ports = ports.split(',').map(str::trim).filter(|port| !port.is_empty());
    let ports: Vec<u16> = ports
        .map(|port| port.parse().map_err(|_| "invalid ports".to_owned()))
        .collect::<Result<_, _>>()?;
    if ports.is_empty() {
        return Err("invalid ports".to_owned());
    }
    let given = flags.text("listen-addresses");
    let hosts: Vec<IpAddr> = match given.as_str() {
        "" => vec![any()],
        _ => given.split(',').map(host).collect::<Result<_, _>>()?,
    };
    let addresses = hosts
        .iter()
        .flat_map(|host| ports.iter().map(|port| SocketAddr::new(*host, *port).to_string()));
    Ok(addresses.map(listener).collect())
}

fn host(text: &str) -> Result<IpAddr, String> {
    let bare = text.trim().trim_start_matches('[').trim_end_matches(']');
    bare.parse()
        .map_err(|_| format!("option `--listen-addresses`: `{bare}` is no address"))
}

/// All addresses of both families, or of the one that this machine has.
fn any() -> IpAddr {
    match TcpListener::bind((Ipv6Addr::UNSPECIFIED, 0)) {
        Ok(_) => Ipv6Addr::UNSPECIFIED.into(),
        Err(_) => Ipv4Addr::UNSPECIFIED.into(),
    }
}

fn load_from(source: &Source, settings: &Settings, frame: &Config) -> Result<Loaded, ConfigError> {
    let (path, text) = match source {
        Source::Text(text) => (Path::new(ARGUMENT), text.clone()),
        Source::File(path) => match load::read(path) {
            Ok(text) => (path.as_path(), text),
            Err(complaint) => {
                // The words that mcrouter's users look for.
                let problem = format!("Can not read config: {}", complaint.problem);
                return Err(ConfigError::one(path, Complaint { problem, ..complaint }));
            }
        },
    };
    let mut cx = Reading::default();
    let tree = tree::read(&text, settings, &mut cx).map_err(|complaint| ConfigError::one(path, complaint))?;
    let listeners = frame.listeners.iter().map(|listener| Listener {
        route: tree.root.clone(),
        ..listener.clone()
    });
    let config = Config {
        listeners: listeners.collect(),
        pools: tree.pools,
        routes: tree.routes,
        ..frame.clone()
    };
    let complaints = check::check(&config, &cx.index);
    if !complaints.is_empty() {
        return Err(ConfigError {
            file: path.to_owned(),
            complaints,
        });
    }
    let own = matches!(source, Source::File(_)).then(|| path.to_owned());
    Ok(Loaded {
        config,
        warnings: cx
            .warnings
            .iter()
            .map(|warning| format!("{}:{warning}", path.display()))
            .collect(),
        version_hash: load::version_hash(
            [text.as_str()]
                .into_iter()
                .chain(tree.files.values().map(String::as_str)),
        ),
        files_watched: own.into_iter().chain(tree.files.into_keys()).collect(),
    })
}

fn not_served(flags: &Flags) -> Vec<String> {
    let always = NOT_THERE
        .iter()
        .filter(|part| !(part.contains("asynchronous") && flags.flag("asynclog-disable")));
    always
        .map(|part| (*part).to_owned())
        .chain(flags.missing())
        .collect()
}

fn help() -> String {
    let mut text = String::from(
        "Usage: mcrouter [options] [file:FLAVOR]\n\n\
         Proxima, called as mcrouter: takes mcrouter's options and configuration file.\n\n\
         Example: mcrouter --listen-addresses=127.0.0.1 --port=11211 --config=file:mcrouter.json\n\n\
         \x20 -h, --help\n  -V, --version\n      --validate-config[=exit|run]\n",
    );
    for option in OPTIONS.iter().filter(|option| option.status == Status::Served) {
        let short = if option.short == '\0' {
            "    ".to_owned()
        } else {
            format!("-{}, ", option.short)
        };
        let value = match option.takes {
            Takes::Toggle(_) => "[=true|false]".to_owned(),
            Takes::Number(number) => format!("=N (default {number})"),
            Takes::Text("") => "=VALUE".to_owned(),
            Takes::Text(text) => format!("=VALUE (default {text})"),
        };
        let _ = writeln!(text, "  {short}--{}{value}", option.name);
    }
    text.push_str("\nmcrouter's other options are accepted; those without effect are said at start, those that would\nchange what clients get are refused.\n");
    text
}
