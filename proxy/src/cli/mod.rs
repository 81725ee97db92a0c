//! The command line: its commands, and the answers that need no data plane.

mod admin;
mod args;
mod awaited;
mod daemon;
mod events;
mod fleet;
mod log;
mod mysql;
mod near;
mod near_table;
mod plain;
mod table;
mod tap;
mod top;
mod watch;

use std::{ffi::OsString, path::Path};

use clap::{CommandFactory, Parser, error::ErrorKind};

use args::{Cli, Command, Config};
pub use args::{Explain, LocationArgs, LogFormat, LogLevel, Run};
pub use daemon::{detach, leave_terminal};
pub use log::{LevelSwitch, LogFile, McrouterLog, NutcrackerLog, log, mcrouter_level, nutcracker_level};

use crate::{
    config::{self, describe},
    control,
    frontdoor::{mcrouter, nutcracker},
};

/// A command of the program.
#[derive(Debug)]
pub enum Task {
    /// Serves.
    Run(Run),
    /// Serves as mcrouter does.
    Mcrouter(Box<mcrouter::Run>),
    /// Serves as twemproxy does.
    Nutcracker(Box<nutcracker::Run>),
    /// Explains the route of a key.
    Explain(Explain),
    /// Prints this and ends.
    Say(Answer),
}

/// The program's output before it ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// For standard output.
    pub out: String,
    /// For standard error.
    pub err: String,
    /// The exit code.
    pub code: u8,
}

impl Answer {
    fn good(out: String) -> Self {
        Self {
            out,
            ..Self::default()
        }
    }

    fn bad(code: u8, err: impl Into<String>) -> Self {
        let mut err = err.into();
        if !err.ends_with('\n') {
            err.push('\n');
        }
        Self {
            out: String::new(),
            err,
            code,
        }
    }
}

/// Parses the arguments, the program's name first. A program that is called `mcrouter` behaves as mcrouter,
/// and one that is called `nutcracker` as twemproxy.
pub fn task(arguments: impl IntoIterator<Item = OsString>) -> Task {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let name = arguments.first().map(Path::new).and_then(Path::file_name);
    let door = name.and_then(|name| match name.to_str()? {
        "mcrouter" => Some(as_mcrouter as fn(Vec<String>) -> Task),
        "nutcracker" => Some(as_nutcracker),
        _ => None,
    });
    if let Some(door) = door {
        let texts = arguments
            .iter()
            .skip(1)
            .map(|argument| argument.to_string_lossy());
        return door(texts.map(String::from).collect());
    }
    // What is asked of a running proxy fails with one code, wherever the mistake is found.
    let asks = ["near", "mysql", "top", "events", "tap"];
    let code = match arguments
        .get(1)
        .is_some_and(|command| asks.iter().any(|asks| command == asks))
    {
        true => 1,
        false => 2,
    };
    match Cli::try_parse_from(arguments) {
        Ok(cli) => of(cli.command),
        Err(error) => Task::Say(match error.kind() {
            ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Answer::good(error.to_string()),
            _ => Answer::bad(code, error.to_string()),
        }),
    }
}

/// Whether these arguments ask for a log in JSON, even if others of them are bad.
pub fn logs_json(arguments: impl IntoIterator<Item = OsString>) -> bool {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let separate = arguments
        .windows(2)
        .any(|pair| pair[0] == "--log-format" && pair[1] == "json");
    separate || arguments.iter().any(|argument| argument == "--log-format=json")
}

fn of(command: Command) -> Task {
    Task::Say(match command {
        Command::Run(run) => return Task::Run(run),
        Command::Explain(explain) => return Task::Explain(explain),
        Command::Mcrouter { arguments } => return as_mcrouter(arguments),
        Command::Nutcracker { arguments } => return as_nutcracker(arguments),
        Command::Check(check) => self::check(&check.file),
        Command::Fleet(command) => fleet::fleet(command),
        Command::Near(command) => near::near(command),
        Command::Mysql(command) => mysql::mysql(command),
        Command::Top(command) => top::top(command),
        Command::Events(command) => events::events(command),
        Command::Tap(command) => tap::tap(command),
        Command::Config(Config::Schema) => Answer::good(describe::json_schema_text()),
        Command::Config(Config::Options) => Answer::good(describe::options()),
        Command::Config(Config::Routes) => Answer::good(describe::routes()),
        Command::Completions { shell } => {
            let mut out = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "proxima", &mut out);
            Answer::good(String::from_utf8_lossy(&out).into_owned())
        }
        Command::Man { command } => manual(command.as_deref()),
    })
}

fn as_mcrouter(arguments: Vec<String>) -> Task {
    match mcrouter::start(arguments) {
        Ok(mcrouter::Start::Run(run)) => Task::Mcrouter(run),
        Ok(mcrouter::Start::Print(text)) => Task::Say(Answer::good(text)),
        Err(refused) => Task::Say(Answer::bad(refused.exit_code(), refused.to_string())),
    }
}

fn as_nutcracker(arguments: Vec<String>) -> Task {
    match nutcracker::start(arguments) {
        Ok(nutcracker::Start::Run(run)) => Task::Nutcracker(run),
        Ok(nutcracker::Start::Print(err)) => Task::Say(Answer {
            err,
            ..Answer::default()
        }),
        Err(refused) => Task::Say(Answer::bad(1, refused.to_string())),
    }
}

/// How fresh reads of MySQL are at each listener, and why.
fn words(config: &config::schema::Config) -> Vec<String> {
    let mut words = Vec::new();
    for listener in &config.listeners {
        let address = &listener.address;
        if let Some((word, why)) = config.consistency_at(listener) {
            words.push(format!("reads at {address} are `{}`: {why}", word.name()));
        }
        let told = config.route_words(&listener.route).told().into_iter();
        words.extend(told.map(|(of, word)| {
            format!(
                "reads at {address} of {of} are `{}`: their route says so",
                word.name()
            )
        }));
    }
    words
}

/// Checks the configuration in `file`. Warnings do not fail the check.
fn check(file: &Path) -> Answer {
    match config::load(file) {
        Ok(loaded) => {
            let place = file.display();
            match control::check(&loaded) {
                Ok(warnings) => {
                    let warnings = warnings.into_iter().map(|warning| format!("{place}: {warning}"));
                    let words = words(&loaded.config).into_iter();
                    let words = words.map(|words| format!("{place}: {words}\n"));
                    Answer {
                        out: format!("{place}: good, version {}\n", loaded.version_hash)
                            + &words.collect::<String>(),
                        err: (loaded.warnings.into_iter().chain(warnings))
                            .map(|warning| format!("{warning} (warning)\n"))
                            .collect(),
                        code: 0,
                    }
                }
                Err(refused) => {
                    let refused = refused.iter().map(|why| format!("{place}: {why}\n"));
                    Answer::bad(1, refused.collect::<String>())
                }
            }
        }
        Err(error) => Answer::bad(1, error.to_string()),
    }
}

fn manual(command: Option<&str>) -> Answer {
    let mut program = Cli::command();
    program.build();
    let page = match command {
        None => Some(&program),
        Some(name) => program.find_subcommand(name),
    };
    let Some(page) = page else {
        return Answer::bad(
            2,
            "proxima: there is no such command; `proxima --help` lists them",
        );
    };
    let mut out = Vec::new();
    match clap_mangen::Man::new(page.clone()).render(&mut out) {
        Ok(()) => Answer::good(String::from_utf8_lossy(&out).into_owned()),
        Err(error) => Answer::bad(2, format!("proxima: {error}")),
    }
}
