//! The door's description of itself, from the command line, for clients that ask for it.

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
    time::Duration,
};

use super::{
    flags::Flags,
    json,
    load::Input,
    object::{Object, list, text},
    options::{OPTIONS, Opt, Status, ValueKind},
    preprocess::Constants,
};
use crate::config::{Diagnostic, document::shortened, file, reading::Reading};

const DEFAULT_STATS_ROOT: &str = "/var/mcrouter/stats";

/// The parts of the command line that mcrouter's statistics and admin requests show.
#[derive(Clone, Debug)]
pub struct Door {
    /// The name of this proxy among those of the host: its first port, or 0.
    pub router: String,
    /// The name of the service.
    pub service: String,
    /// The path of the configuration. `None` if an argument has the configuration itself.
    pub config_file: Option<PathBuf>,
    /// Every option of mcrouter's by its internal name, with its value.
    pub options: Vec<(String, String)>,
    /// The constants of configurations, as a JSON object.
    pub parameters: String,
    /// The folder for files of statistics, and the interval at which they are written. `None` without such
    /// files.
    pub files: Option<(PathBuf, Duration)>,
    /// The beginnings of the names of pools whose figures are in these files.
    pub pools: Vec<String>,
    /// The arguments of the process.
    pub arguments: String,
}

impl Door {
    /// Takes it from the options. Warnings are added to those about the options.
    pub(super) fn of(flags: &mut Flags, arguments: String, input: &Input, constants: &Constants) -> Self {
        let pools = match pools(&flags.text("pool-stats-config-file")) {
            Ok(pools) => pools,
            Err(warning) => {
                flags.warnings.push(warning);
                Vec::new()
            }
        };
        Self {
            router: flags.router_name(),
            service: flags.text("service-name"),
            config_file: match input {
                Input::File(path) => Some(path.clone()),
                Input::Text(_) => None,
            },
            options: options(flags),
            parameters: parameters(constants),
            files: files(flags),
            pools,
            // It is told in one line.
            arguments: arguments.replace(char::is_control, " "),
        }
    }
}

fn options(flags: &Flags) -> Vec<(String, String)> {
    let known = OPTIONS.iter().filter(|option| option.status != Status::Ours);
    known
        .map(|option| (option.internal_name(), value(option, flags)))
        .collect()
}

fn value(option: &Opt, flags: &Flags) -> String {
    match option.takes {
        ValueKind::Toggle(_) => u8::from(flags.flag(option.name) != option.is_opposite).to_string(),
        // The other option is another name of this one.
        _ if option.name == "num-proxies" && flags.is_given("proxy-threads") => flags.text("proxy-threads"),
        _ => flags.text(option.name),
    }
}

fn parameters(constants: &Constants) -> String {
    let mut text = String::from("{");
    for (i, (name, constant)) in constants.iter().enumerate() {
        let separator = if i == 0 { "" } else { "," };
        let _ = write!(
            text,
            "{separator}\n  {}: {constant}",
            serde_json::Value::from(name.as_str())
        );
    }
    text.push_str("\n}");
    text
}

/// The folder for files of statistics, and their interval. The folder that is used without an option must
/// exist: an operator who wants these files creates it.
fn files(flags: &Flags) -> Option<(PathBuf, Duration)> {
    let root = PathBuf::from(flags.text("stats-root"));
    let interval = Duration::from_millis(flags.number("stats-logging-interval"));
    let is_wanted = match flags.is_given("stats-root") {
        true => !root.as_os_str().is_empty(),
        false => Path::new(DEFAULT_STATS_ROOT).is_dir(),
    };
    (is_wanted && !interval.is_zero()).then_some((root, interval))
}

/// Reads `{"stats_enabled_pools": ["NAME", …]}`. As in mcrouter, a bad file is no reason not to start.
fn pools(path: &str) -> Result<Vec<String>, String> {
    match path {
        "" => Ok(Vec::new()),
        path => read_pools(Path::new(path))
            .map_err(|why| format!("--pool-stats-config-file: {}:{why}", shortened(path))),
    }
}

fn read_pools(path: &Path) -> Result<Vec<String>, Diagnostic> {
    let mut cx = Reading::default();
    let document = json::parse(&file::read(path)?, &mut cx)?;
    let pools = Object::of(&document, &cx)?.take("stats_enabled_pools", &mut cx, list(text))?;
    Ok(pools.unwrap_or_default())
}
