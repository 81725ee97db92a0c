//! The `proxima` command.

use std::{io::Write, process::ExitCode, sync::Arc};

use proxima::{
    admin::Statistics,
    cli::{self, Answer, Explain, LogFile, LogFormat, McrouterLog, NutcrackerLog, Run, Task, log},
    config::Loaded,
    control::{self, Options},
    frontdoor::{BuiltIn, ConfigSource, YamlFile, mcrouter, nutcracker},
    members::OwnLocation,
    protocol::Protocols,
    route::Example,
};
use tracing::Level;

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
            log(LogFormat::Json, Level::INFO, None, &Arc::default());
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
    let events = Arc::default();
    log(run.log_format, run.log_level.into(), None, &events);
    let options = Options {
        events,
        io: run.io,
        node_addresses: run.here.node_addresses(),
        node: run.here.node.clone(),
        zone: run.here.zone.clone(),
        protocols: Protocols::PLAIN,
        // Standard output is often collected together with the log.
        introduce: run.config.is_none() && run.log_format == LogFormat::Text,
        log: None,
        statistics: None,
        door: None,
        pid_file: None,
    };
    let overrides = run.overrides();
    let source: Box<dyn ConfigSource> = match run.config {
        Some(path) => Box::new(YamlFile { path, overrides }),
        None => Box::new(BuiltIn::new(overrides)),
    };
    end(control::run(source, &options), run.log_format, FAILED)
}

fn serve_as_mcrouter(run: mcrouter::Run) -> ExitCode {
    let verbosity = i32::try_from(run.verbosity).unwrap_or(i32::MAX);
    let file = run
        .log_file
        .as_deref()
        .and_then(|path| match LogFile::open(path) {
            Ok(file) => Some(file),
            Err(error) => {
                eprintln!(
                    "proxima: cannot log to {}: {error}; logging to standard error",
                    path.display()
                );
                None
            }
        });
    let events = Arc::default();
    let level = cli::mcrouter_level(verbosity);
    let switch = log(LogFormat::Text, level, file.clone(), &events);
    for warning in &run.warnings {
        tracing::warn!("{warning}");
    }
    for missing in &run.not_served {
        tracing::warn!("not served: {missing}");
    }
    let options = Options {
        events,
        io: run.io,
        protocols: Protocols::MEMCACHED,
        log: Some(Arc::new(McrouterLog::new(file, verbosity, switch))),
        door: Some(Arc::new(run.door.clone())),
        ..Options::default()
    };
    end(control::run(Box::new(run), &options), LogFormat::Text, FAILED)
}

fn serve_as_nutcracker(run: nutcracker::Run) -> ExitCode {
    let file = match run.log_file.as_deref().map(|path| (path, LogFile::open(path))) {
        None => None,
        Some((_, Ok(file))) => Some(file),
        Some((path, Err(error))) => {
            let why = proxima::reactor::reason(&error);
            return refuse(&format!("opening log file '{}' failed: {why}", path.display()));
        }
    };
    if run.daemonize {
        return match cli::detach(std::env::args_os()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => refuse(&format!("nutcracker: cannot run as a daemon: {error}")),
        };
    }
    if run.detached {
        cli::leave_terminal();
    }
    let events = Arc::default();
    let level = cli::nutcracker_level(run.verbosity);
    let switch = log(LogFormat::Text, level, file.clone(), &events);
    let options = Options {
        events,
        io: run.io,
        statistics: Some(Statistics {
            address: run.stats_address,
            interval: run.stats_interval,
        }),
        pid_file: run.pid_file.clone(),
        log: Some(Arc::new(NutcrackerLog::new(file, run.verbosity, switch))),
        ..Options::default()
    };
    let result = control::run(Box::new(run), &options);
    if let Err(error) = &result {
        // Nobody sees the standard error of a daemon.
        tracing::error!("{error}");
    }
    // twemproxy has one code for whatever has failed.
    end(result, LogFormat::Text, 1)
}

fn refuse(why: &str) -> ExitCode {
    eprintln!("{why}");
    ExitCode::FAILURE
}

/// The exit code of a start that has failed.
const FAILED: u8 = 2;

fn end(result: Result<(), control::StartError>, format: LogFormat, failed: u8) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            match format {
                LogFormat::Json => tracing::error!("{error}"),
                // The user who has started the program sees this, wherever the log goes.
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
        OwnLocation::new(&asked.here.node_addresses(), asked.here.zone.clone())
            .on_node(asked.here.node.clone()),
        asked.from,
        match &asked.sql {
            Some(sql) => Example::Text {
                text: sql.as_bytes(),
                user: asked.user.as_deref().unwrap_or_default().as_bytes(),
                schema: asked.schema.as_deref().unwrap_or_default().as_bytes(),
            },
            None => Example::Key {
                command: asked.command.name(),
                key: asked.key.as_deref().unwrap_or_default().as_bytes(),
            },
        },
    )?)
}
