//! The `proxima` command.
#![allow(clippy::disallowed_types, reason = "the log file is shared by all threads")]

use std::{fs::File, io::Write, path::PathBuf, process::ExitCode, sync::Mutex};

use proxima::{
    cli::{self, Answer, Explain, LogFormat, Run, Task},
    config::Loaded,
    control::{self, Options},
    dialect::Dialects,
    frontdoor::{BuiltIn, ConfigSource, YamlFile, mcrouter, nutcracker},
};
use tracing::Level;
use tracing_subscriber::{EnvFilter, field::MakeExt, fmt::format::debug_fn};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    match cli::task(std::env::args_os()) {
        Task::Run(run) => serve(run),
        Task::Mcrouter(run) => serve_as_mcrouter(*run),
        Task::Nutcracker(run) => serve_as_nutcracker(*run),
        Task::Explain(asked) => match explain(&asked) {
            Ok(text) => say(&Answer {
                out: text,
                ..Answer::default()
            }),
            Err(error) => say(&Answer {
                err: format!("proxima: {error}\n"),
                code: 1,
                ..Answer::default()
            }),
        },
        Task::Say(answer) if answer.code != 0 && cli::logs_json(std::env::args_os()) => {
            log(LogFormat::Json, Level::INFO, None);
            tracing::error!("{}", answer.err.trim_end());
            ExitCode::from(answer.code)
        }
        Task::Say(answer) => say(&answer),
    }
}

fn say(answer: &Answer) -> ExitCode {
    // A closed pipe (`proxima man | head`) is no failure.
    let _ = std::io::stdout().write_all(answer.out.as_bytes());
    let _ = std::io::stderr().write_all(answer.err.as_bytes());
    ExitCode::from(answer.code)
}

fn serve(run: Run) -> ExitCode {
    log(run.log_format, run.log_level.into(), None);
    let options = Options {
        io: run.io,
        node_addresses: run.here.node_addresses(),
        zone: run.here.zone.clone(),
        dialects: Dialects::PLAIN,
        // Standard output is often collected together with the log.
        introduce: run.config.is_none() && run.log_format == LogFormat::Text,
    };
    let overrides = run.overrides();
    let source: Box<dyn ConfigSource> = match run.config {
        Some(path) => Box::new(YamlFile { path, overrides }),
        None => Box::new(BuiltIn::new(overrides)),
    };
    end(control::run(source, &options), run.log_format, FAILED)
}

fn serve_as_mcrouter(run: mcrouter::Run) -> ExitCode {
    let level = match run.verbosity {
        0 => Level::WARN,
        1 => Level::INFO,
        2 | 3 => Level::DEBUG,
        _ => Level::TRACE,
    };
    log(LogFormat::Text, level, run.log_file.clone());
    for warning in &run.warnings {
        tracing::warn!("{warning}");
    }
    for missing in &run.not_served {
        tracing::warn!("not served: {missing}");
    }
    let dialects = if run.flush_enabled {
        Dialects::MCROUTER_FLUSH
    } else {
        Dialects::MCROUTER
    };
    let options = Options {
        io: run.io,
        dialects,
        ..Options::default()
    };
    end(control::run(Box::new(run), &options), LogFormat::Text, FAILED)
}

fn serve_as_nutcracker(run: nutcracker::Run) -> ExitCode {
    let level = match run.verbosity {
        ..=3 => Level::ERROR,
        4 => Level::WARN,
        5 | 6 => Level::INFO,
        7 | 8 => Level::DEBUG,
        _ => Level::TRACE,
    };
    log(LogFormat::Text, level, run.log_file.clone());
    let options = Options {
        io: run.io,
        ..Options::default()
    };
    // twemproxy has one code for whatever has failed.
    end(control::run(Box::new(run), &options), LogFormat::Text, 1)
}

/// The exit code of a start that has failed.
const FAILED: u8 = 2;

fn end(result: Result<(), control::StartError>, format: LogFormat, failed: u8) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            match format {
                LogFormat::Json => tracing::error!("{error}"),
                // The person who has started the program sees this, wherever the log goes.
                LogFormat::Text => eprintln!("proxima: {error}"),
            }
            ExitCode::from(failed)
        }
    }
}

fn explain(asked: &Explain) -> Result<String, Box<dyn std::error::Error>> {
    let loaded: Loaded = match &asked.config {
        Some(path) => proxima::config::load(path),
        None => proxima::config::built_in(false),
    }?;
    Ok(control::explain(
        &loaded,
        &asked.here.node_addresses(),
        asked.here.zone.clone(),
        asked.from,
        asked.command.name(),
        &asked.key,
    )?)
}

fn log(format: LogFormat, level: Level, file: Option<PathBuf>) {
    // The resolver logs every bad answer, and Raft every step. The control thread logs when answers begin to be
    // bad, when that ends, and what becomes of the fleet.
    let names = if level < Level::DEBUG {
        "off"
    } else {
        level.as_str()
    };
    let filter = EnvFilter::new(format!(
        "{level},hickory_resolver={names},hickory_net={names},hickory_proto={names},openraft={names}"
    ));
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_target(false);
    // Fields of text lines: a value with blanks is quoted, so that a line can be parsed.
    let fields = debug_fn(|writer, field, value| match field.name() {
        "message" => write!(writer, "{value:?}"),
        name => write!(writer, "{name}={}", quoted(format!("{value:?}"))),
    })
    .delimited(" ");
    let file = file.and_then(
        |path| match File::options().create(true).append(true).open(&path) {
            Ok(file) => Some(file),
            Err(error) => {
                eprintln!(
                    "proxima: cannot log to {}: {error}; logging to standard error",
                    path.display()
                );
                None
            }
        },
    );
    match (format, file) {
        (LogFormat::Json, _) => builder.json().with_writer(std::io::stderr).init(),
        (LogFormat::Text, Some(file)) => builder
            .fmt_fields(fields)
            .with_ansi(false)
            .with_writer(Mutex::new(file))
            .init(),
        (LogFormat::Text, None) => {
            let colours = std::io::IsTerminal::is_terminal(&std::io::stderr());
            builder
                .fmt_fields(fields)
                .with_ansi(colours)
                .with_writer(std::io::stderr)
                .init();
        }
    }
    std::panic::set_hook(Box::new(|panic| {
        let at = panic.location().map(ToString::to_string);
        let why = panic.payload_as_str().unwrap_or("?");
        let thread = std::thread::current();
        tracing::error!(at, thread = thread.name(), "panicked: {why}");
    }));
}

/// The value of a field, quoted unless it is one plain word. Texts that were given as such are quoted
/// already.
fn quoted(value: String) -> String {
    let is_quoted = value.len() >= 2 && value.starts_with('"') && value.ends_with('"');
    let is_plain = |c: char| !(c.is_whitespace() || c.is_control() || matches!(c, '"' | '='));
    match is_quoted || !value.is_empty() && value.chars().all(is_plain) {
        true => value,
        false => format!("{value:?}"),
    }
}
