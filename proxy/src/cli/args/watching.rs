//! The commands that look at a running proxy from second to second.

use clap::{Args, ValueEnum};

use super::{AdminPort, BadArgument, time};

/// Look at a running proxy, second by second
///
/// Shows whether it serves and why not, its rates and latencies, its servers, pools and listeners, the keys
/// that are asked for most often, and what has happened. A proxy that ends is asked again until it is back.
/// The proxy is only read. 80 x 24 characters are enough; `?` lists the keys, and `q` ends it.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples:
  Look at the proxy of this host:
    proxima top
  At another one, whose admin port has TLS:
    proxima top --admin https://10.0.0.1:9150 --ca ca.pem
  One state as text, for a ticket:
    proxima top --once
  One state as JSON: which servers are not up?
    proxima top --once --json | jq '.members[] | select(.state != \"up\")'
  A line of JSON each second:
    proxima top --json")]
pub(in crate::cli) struct Top {
    /// Print one state as text, and end
    #[arg(long)]
    pub(in crate::cli) once: bool,
    /// Print states as JSON, a line each (docs/admin-api.md); only one with --once
    #[arg(long)]
    pub(in crate::cli) json: bool,
    /// Show no colours
    #[arg(long, env = "NO_COLOR", hide_env_values = true, value_parser = is_given)]
    no_color: bool,
    /// The kind of terminal; `dumb`, and what begins with `vt`, has no colours
    #[arg(long, value_name = "NAME", env = "TERM", hide_env_values = true)]
    term: Option<String>,
    #[command(flatten)]
    pub(in crate::cli) at: AdminPort,
}

impl Top {
    /// Whether the user wants colours, and the terminal has them.
    pub(in crate::cli) fn has_colours(&self) -> bool {
        let term = self.term.as_deref().unwrap_or_default();
        !self.no_color && !term.is_empty() && term != "dumb" && !term.starts_with("vt")
    }
}

/// Whether an option or variable has a value; clap's default is `false`.
#[allow(clippy::unnecessary_wraps, reason = "a parser of clap may fail")]
fn is_given(text: &str) -> Result<bool, BadArgument> {
    Ok(!matches!(text, "" | "false"))
}

/// Print what has happened to a running proxy
///
/// A line for each change of a state: servers that were ejected or came back, configurations that took
/// effect or were refused, copies, roles, the fleet. The proxy keeps the last 1,000. A line begins with the
/// time (UTC) and the event's number, which --after takes.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples:
  proxima events
  proxima events --kind ejected
  Go on with what comes, also when the proxy is restarted:
    proxima events -f
  What has come since the event 41?
    proxima events --after 41 --json")]
pub(in crate::cli) struct Events {
    /// Go on with what comes
    #[arg(long, short)]
    pub(in crate::cli) follow: bool,
    /// Only events of this kind, as `ejected` or `configuration`
    #[arg(long, value_name = "KIND")]
    pub(in crate::cli) kind: Option<String>,
    /// Only events behind the one with this number
    #[arg(long, value_name = "SEQ", default_value_t = 0, hide_default_value = true)]
    pub(in crate::cli) after: u64,
    /// Print them as JSON, a line each (docs/admin-api.md)
    #[arg(long)]
    pub(in crate::cli) json: bool,
    #[command(flatten)]
    pub(in crate::cli) at: AdminPort,
}

/// Print requests of a running proxy while it answers them
///
/// A line for each request of a sample: time (UTC), listener, client, command, key, pool/server, outcome,
/// and how long it took. Never values. No request waits for it: where more come than are told, a line says
/// how many.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples:
  proxima tap
  Who writes keys that begin so?
    proxima tap --prefix user: --class write
  What takes longer than 10 ms? Print the next thousand.
    proxima tap --slow 10ms --limit 1000")]
pub(in crate::cli) struct Tap {
    /// Only requests of this listener, by its address or number
    #[arg(long, value_name = "ADDRESS")]
    pub(in crate::cli) listener: Option<String>,
    /// Only requests to this pool
    #[arg(long, value_name = "POOL")]
    pub(in crate::cli) route: Option<String>,
    /// Only keys that begin so
    #[arg(long, value_name = "BEGINNING")]
    pub(in crate::cli) prefix: Option<String>,
    /// Only requests that do this
    #[arg(long)]
    pub(in crate::cli) class: Option<Class>,
    /// Only requests that took at least this long
    #[arg(long, value_name = "TIME", value_parser = time_text)]
    pub(in crate::cli) slow: Option<String>,
    /// Print so many and end
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..))]
    pub(in crate::cli) limit: u64,
    /// Print them as JSON, a line each (docs/admin-api.md)
    #[arg(long)]
    pub(in crate::cli) json: bool,
    #[command(flatten)]
    pub(in crate::cli) at: AdminPort,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum Class {
    Read,
    Write,
    Delete,
}

impl Class {
    pub(in crate::cli) const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Delete => "delete",
        }
    }
}

/// A time above 0, as the proxy reads it.
fn time_text(text: &str) -> Result<String, String> {
    time(text).map(|_| text.to_owned())
}
