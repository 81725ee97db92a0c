//! Parses mcrouter's command line to values of its options.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use super::{
    error::OptionError,
    json,
    object::Object,
    options::{self, Opt, Status, ValueKind},
};
use crate::config::{document::shortened, file, reading::Reading};

/// A parsed command line.
#[derive(Clone, Debug)]
pub(super) struct Flags {
    /// The handling of a bad configuration.
    pub(super) validates: Validates,
    pub(super) asks_help: bool,
    pub(super) asks_version: bool,
    /// Warnings about the command line.
    pub(super) warnings: Vec<String>,
    values: BTreeMap<&'static str, String>,
}

/// The modes of `--validate-config`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Validates {
    /// Serve by the dump of an earlier configuration, if there is one.
    No,
    /// Check the configuration, and exit.
    Exit,
    /// Serve, but not by the dump of an earlier configuration.
    Run,
}

/// Options that are no settings.
const SPECIAL: [&str; 3] = ["help", "version", "validate-config"];

/// Parses the arguments behind the program's name.
///
/// # Errors
/// An option is refused, or a value has the wrong type.
pub(super) fn read(arguments: impl IntoIterator<Item = String>) -> Result<Flags, OptionError> {
    let mut flags = Flags {
        validates: Validates::No,
        asks_help: false,
        asks_version: false,
        warnings: Vec::new(),
        values: BTreeMap::new(),
    };
    let mut flavor = BTreeMap::new();
    let mut arguments = arguments.into_iter().peekable();
    let mut are_options = true;
    while let Some(argument) = arguments.next() {
        if are_options && argument == "--" {
            are_options = false;
            continue;
        }
        let word = if are_options {
            FlagArgument::of(&argument)
        } else {
            FlagArgument::Other
        };
        let (name, attached, option) = match word {
            FlagArgument::Long(name, value) => {
                let name = options::by_long(name, &SPECIAL).unwrap_or(name);
                (name.to_owned(), value.map(str::to_owned), options::by_name(name))
            }
            FlagArgument::Short(short, value) => (
                short.to_string(),
                value.map(str::to_owned),
                options::by_short(short),
            ),
            FlagArgument::Other => {
                match argument.strip_prefix("file:") {
                    Some(path) => flavor = read_flavor(Path::new(path), &mut flags.warnings)?,
                    None => flags
                        .warnings
                        .push(format!("`{}` is ignored", shortened(&argument))),
                }
                continue;
            }
        };
        if flags.special(&name, attached.as_deref())? {
            continue;
        }
        let Some(option) = option else {
            flags
                .warnings
                .push(format!("unknown option `{}` is ignored", shortened(&argument)));
            // The next argument may be its value. An argument that is not known to be one is ignored as well.
            continue;
        };
        let value = match (option.takes, attached) {
            (_, Some(value)) => value,
            (ValueKind::Toggle(default), None) => (!default).to_string(),
            (ValueKind::Acks, None) => "true".to_owned(),
            (_, None) => arguments.next().ok_or(OptionError::NoValue(option.name))?,
        };
        flags.values.insert(option.name, checked(option, &value)?);
    }
    for (name, value) in flavor {
        flags.values.entry(name).or_insert(value);
    }
    flags.judge()?;
    Ok(flags)
}

impl Flags {
    /// The value of an option, or its default.
    pub(super) fn text(&self, name: &str) -> String {
        match (
            self.values.get(name),
            options::by_name(name).map(|option| option.takes),
        ) {
            (Some(value), _) => value.clone(),
            (None, Some(ValueKind::Text(text))) => text.to_owned(),
            (None, Some(ValueKind::Number(number))) => number.to_string(),
            (None, Some(ValueKind::Toggle(flag))) => flag.to_string(),
            (None, Some(ValueKind::Acks)) => "false".to_owned(),
            (None, None) => String::new(),
        }
    }

    /// The path that an option names. `None` if the option is empty.
    pub(super) fn path(&self, name: &str) -> Option<PathBuf> {
        Some(self.text(name))
            .filter(|path| !path.is_empty())
            .map(PathBuf::from)
    }

    /// The value of a number. Negative ones count as 0.
    pub(super) fn number(&self, name: &str) -> u64 {
        self.text(name)
            .parse::<i64>()
            .ok()
            .and_then(|number| u64::try_from(number).ok())
            .unwrap_or(0)
    }

    /// The value of a toggle.
    pub(super) fn flag(&self, name: &str) -> bool {
        self.text(name) == "true"
    }

    /// The name of this proxy among those of the host: its first port, or 0.
    pub(super) fn router_name(&self) -> String {
        let ports = self.text("port");
        let first = ports.split(',').map(str::trim).find(|port| !port.is_empty());
        first.unwrap_or("0").to_owned()
    }

    /// Whether the option was given.
    pub(super) fn is_given(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    /// Options whose effect is missing here, each with its value.
    pub(super) fn missing(&self) -> impl Iterator<Item = String> {
        options::OPTIONS
            .iter()
            .filter(|option| option.status == Status::Missing)
            .filter_map(|option| {
                let value = self
                    .values
                    .get(option.name)
                    .filter(|value| asks_for_something(option, value))?;
                Some(format!("--{}={}", option.name, shortened(value)))
            })
    }

    /// Handles options that are no settings.
    fn special(&mut self, name: &str, value: Option<&str>) -> Result<bool, OptionError> {
        match (name, value) {
            ("help" | "h", None) => self.asks_help = true,
            ("version" | "V", None) => self.asks_version = true,
            ("validate-config", None | Some("exit")) => self.validates = Validates::Exit,
            ("validate-config", Some("run")) => self.validates = Validates::Run,
            ("validate-config", Some(other)) => {
                return Err(OptionError::BadValue {
                    option: "validate-config",
                    takes: "`exit` or `run`",
                    found: shortened(other),
                });
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Refuses options that may not be ignored, and warns of those that are.
    fn judge(&mut self) -> Result<(), OptionError> {
        for option in options::OPTIONS {
            let Some(value) = self
                .values
                .get(option.name)
                .filter(|value| asks_for_something(option, value))
            else {
                continue;
            };
            match option.status {
                Status::Refused(why) => {
                    return Err(OptionError::NotServed {
                        option: option.name,
                        why,
                    });
                }
                Status::Idle => {
                    self.warnings.push(format!(
                        "option `--{}={}` has no effect here",
                        option.name,
                        shortened(value)
                    ));
                }
                Status::Served | Status::Ours | Status::Missing => {}
            }
        }
        Ok(())
    }
}

/// A parsed argument.
enum FlagArgument<'a> {
    Long(&'a str, Option<&'a str>),
    Short(char, Option<&'a str>),
    Other,
}

impl<'a> FlagArgument<'a> {
    fn of(argument: &'a str) -> Self {
        if let Some(long) = argument.strip_prefix("--").filter(|long| !long.is_empty()) {
            return match long.split_once('=') {
                Some((name, value)) => Self::Long(name, Some(value)),
                None => Self::Long(long, None),
            };
        }
        let Some(rest) = argument.strip_prefix('-').filter(|rest| !rest.is_empty()) else {
            return Self::Other;
        };
        let mut rest = rest.chars();
        match rest.next() {
            Some(short) => Self::Short(short, Some(rest.as_str()).filter(|value| !value.is_empty())),
            None => Self::Other,
        }
    }
}

/// The value in its stored form: toggles become `true` or `false`.
fn checked(option: &Opt, value: &str) -> Result<String, OptionError> {
    let wrong = |takes| {
        Err(OptionError::BadValue {
            option: option.name,
            takes,
            found: shortened(value),
        })
    };
    match option.takes {
        ValueKind::Text(_) => Ok(value.to_owned()),
        ValueKind::Number(_) => match value.trim_ascii().parse::<i64>() {
            Ok(number) if number >= -1 => Ok(number.to_string()),
            _ => wrong("a number"),
        },
        ValueKind::Toggle(_) => {
            truth(value).map_or_else(|| wrong("`true` or `false`"), |is| Ok(is.to_string()))
        }
        ValueKind::Acks => match value.parse::<u32>() {
            Ok(1..) => Ok(value.to_owned()),
            _ if matches!(value, "true" | "false") => Ok(value.to_owned()),
            _ => wrong("nothing or a number of copies from 1"),
        },
    }
}

/// A truth value as mcrouter's library reads it: a word in any case, or 0 or 1.
fn truth(value: &str) -> Option<bool> {
    let value = value.trim_ascii().to_ascii_lowercase();
    match value.as_str() {
        "true" | "t" | "yes" | "y" | "on" => Some(true),
        "false" | "f" | "no" | "n" | "off" => Some(false),
        _ => match value.trim_start_matches('0') {
            "1" => Some(true),
            "" if !value.is_empty() => Some(false),
            _ => None,
        },
    }
}

fn asks_for_something(option: &Opt, value: &str) -> bool {
    match option.takes {
        ValueKind::Text(default) => !value.is_empty() && value != default,
        ValueKind::Number(default) => value != default.to_string(),
        ValueKind::Toggle(default) => value != default.to_string(),
        ValueKind::Acks => value != "false",
    }
}

/// Reads `{"options": {"name": "value", …}}`, by mcrouter's internal names.
fn read_flavor(
    path: &Path,
    warnings: &mut Vec<String>,
) -> Result<BTreeMap<&'static str, String>, OptionError> {
    let mut cx = Reading::default();
    let refused = |diagnostic| OptionError::Flavor {
        file: path.display().to_string(),
        diagnostic,
    };
    let text = file::read(path).map_err(refused)?;
    let document = json::parse(&text, &mut cx).map_err(refused)?;
    let top = Object::of(&document, &cx).map_err(refused)?;
    let mut values = BTreeMap::new();
    let Some(node) = top.get("options") else {
        return Ok(values);
    };
    for (name, node) in Object::of(node, &cx).map_err(refused)?.entries() {
        let value = node
            .scalar()
            .ok_or_else(|| refused(cx.expected(node, "a string")))?;
        match options::by_internal(&name.text) {
            Some(option) => {
                let value = checked(option, value)?;
                let is_inverted = option.is_opposite && option.internal_name() == name.text;
                let value = match value.as_str() {
                    "true" if is_inverted => "false".to_owned(),
                    "false" if is_inverted => "true".to_owned(),
                    _ => value,
                };
                values.insert(option.name, value);
            }
            None => warnings.push(format!(
                "{}:{}: unknown option is ignored",
                path.display(),
                name.at
            )),
        }
    }
    Ok(values)
}
