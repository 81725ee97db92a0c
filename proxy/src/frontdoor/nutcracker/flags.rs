//! Parses twemproxy's command line to values of its options, as getopt does it.

use std::{path::PathBuf, time::Duration};

use super::{
    error::OptionError,
    listen::{Listen, listen_option, with_port},
    options::{self, DETACHED, Label, Opt, ValueKind},
    tls::TlsFlags,
    value::decimal,
};
use crate::{
    config::{listen_address, listen_socket, parse_duration, schema::Network},
    reactor::Io,
};

/// The least and the greatest size of an mbuf.
const MBUF: std::ops::RangeInclusive<i32> = 512..=16_777_216;

/// A parsed command line. Its defaults are twemproxy's.
#[derive(Clone, Debug)]
pub(super) struct Flags {
    pub(super) asks_help: bool,
    pub(super) asks_version: bool,
    pub(super) asks_stats: bool,
    /// Whether only to check the configuration and exit.
    pub(super) only_tests: bool,
    pub(super) daemonize: bool,
    /// Whether this is the daemon that such an option has started.
    pub(super) detached: bool,
    pub(super) verbosity: i32,
    pub(super) stats_port: u16,
    pub(super) stats_addr: String,
    /// Milliseconds.
    pub(super) stats_interval: i32,
    /// The log file. `None`: standard error.
    pub(super) log_file: Option<String>,
    pub(super) pid_file: Option<String>,
    pub(super) config_file: Option<String>,
    /// The address of the admin port. `None` without an admin port.
    pub(super) admin: Option<String>,
    /// The addresses of health listeners, and the pool of each. `None`: all pools.
    pub(super) health: Vec<(Option<String>, String)>,
    /// How many servers must be up, of a pool or of each.
    pub(super) health_min: Vec<(Option<String>, u32)>,
    /// The networks that may ask for health. Empty: everybody may.
    pub(super) health_allow: Vec<Network>,
    /// The file that leads clients away while it is there.
    pub(super) drain_file: Option<PathBuf>,
    pub(super) drain_delay: Duration,
    /// Further listeners of pools, which word their own replies as Proxima does.
    pub(super) also_listen: Vec<(String, Listen)>,
    pub(super) io: Io,
    pub(super) workers: Option<usize>,
    /// Whether listeners take all commands that Proxima serves.
    pub(super) all_commands: bool,
    /// TLS with clients and servers.
    pub(super) tls: TlsFlags,
}

impl Default for Flags {
    fn default() -> Self {
        Self {
            asks_help: false,
            asks_version: false,
            asks_stats: false,
            only_tests: false,
            daemonize: false,
            detached: false,
            verbosity: 5,
            stats_port: 22222,
            stats_addr: "0.0.0.0".to_owned(),
            stats_interval: 30_000,
            log_file: None,
            pid_file: None,
            config_file: None,
            admin: None,
            health: Vec::new(),
            health_min: Vec::new(),
            health_allow: Vec::new(),
            drain_file: None,
            drain_delay: Duration::ZERO,
            also_listen: Vec::new(),
            io: Io::Auto,
            workers: None,
            all_commands: false,
            tls: TlsFlags::default(),
        }
    }
}

/// Parses the arguments behind the program's name. Arguments that are no options are ignored, as twemproxy
/// does.
///
/// # Errors
/// An option is refused.
pub(super) fn read(arguments: impl IntoIterator<Item = String>) -> Result<Flags, OptionError> {
    let mut flags = Flags::default();
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        if argument == "--" {
            break;
        }
        if let Some(long) = argument.strip_prefix("--") {
            let (name, attached) = match long.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (long, None),
            };
            let option = options::by_long(name).ok_or(OptionError::Unknown('\0'))?;
            flags.take(option, attached, &mut arguments)?;
            continue;
        }
        let Some(cluster) = argument.strip_prefix('-').filter(|rest| !rest.is_empty()) else {
            continue;
        };
        let mut rest = cluster.chars();
        while let Some(short) = rest.next() {
            let option = options::by_short(short).ok_or(OptionError::Unknown(short))?;
            if option.takes == ValueKind::Nothing {
                flags.take(option, None, &mut arguments)?;
                continue;
            }
            let attached = Some(rest.as_str()).filter(|rest| !rest.is_empty());
            flags.take(option, attached.map(str::to_owned), &mut arguments)?;
            break;
        }
    }
    let without_health = match () {
        () if !flags.health.is_empty() => None,
        () if !flags.health_min.is_empty() => Some("health-min"),
        () if !flags.health_allow.is_empty() => Some("health-allow"),
        () => None,
    };
    without_health.map_or(Ok(flags), |option| Err(OptionError::WithoutHealth(option)))
}

impl Flags {
    /// The address of the statistics port.
    pub(super) fn statistics(&self) -> String {
        with_port(&self.stats_addr, i32::from(self.stats_port))
    }

    /// Takes one option, with the value that is attached to it or follows.
    fn take(
        &mut self,
        option: &'static Opt,
        attached: Option<String>,
        following: &mut impl Iterator<Item = String>,
    ) -> Result<(), OptionError> {
        let label = Label::of(option);
        let value = match option.takes {
            ValueKind::Nothing if attached.is_some() => {
                return Err(OptionError::Unknown(option.short.unwrap_or('\0')));
            }
            ValueKind::Nothing => String::new(),
            _ => match attached.or_else(|| following.next()) {
                Some(value) => value,
                None => return Err(OptionError::NoValue(label, option.takes.asked())),
            },
        };
        let number = || decimal(&value).ok_or(OptionError::NoValue(label, option.takes.asked()));
        let none = |what| OptionError::Value {
            option: label,
            what,
            value: value.clone(),
        };
        match option.name {
            "help" => {
                self.asks_help = true;
                self.asks_version = true;
            }
            "version" => self.asks_version = true,
            "describe-stats" => {
                self.asks_stats = true;
                self.asks_version = true;
            }
            "daemonize" => self.daemonize = true,
            DETACHED => self.detached = true,
            "pid-file" => self.pid_file = Some(value),
            "test-conf" => self.only_tests = true,
            "verbose" => self.verbosity = number()?,
            "output" => self.log_file = Some(value),
            "conf-file" => self.config_file = Some(value),
            "stats-port" => {
                let port = number()?;
                let valid = u16::try_from(port).ok().filter(|&port| port > 0);
                self.stats_port = valid.ok_or(OptionError::Port(port))?;
            }
            "stats-addr" => self.stats_addr = value,
            "stats-interval" => self.stats_interval = number()?,
            "mbuf-size" => match number().ok().filter(|&size| size > 0) {
                None => return Err(OptionError::NoSize),
                Some(size) if !MBUF.contains(&size) => return Err(OptionError::MbufSize),
                Some(_) => {}
            },
            "admin" => {
                let address = tcp_address(&value);
                self.admin = Some(address.ok_or_else(|| none("an address to listen on (host:port)"))?);
            }
            "health" => {
                let (pool, address) = of_pool(&value);
                let address = tcp_address(address)
                    .ok_or_else(|| none("an address to listen on (host:port, or POOL=host:port)"))?;
                self.health.push((pool, address));
            }
            "health-min" => {
                let (pool, least) = of_pool(&value);
                let least = least.parse().ok().filter(|least| *least > 0);
                let least = least.ok_or_else(|| none("a number of servers from 1 (N, or POOL=N)"))?;
                self.health_min.push((pool, least));
            }
            "health-allow" => {
                let network = Network::parse(&value);
                self.health_allow
                    .push(network.ok_or_else(|| none("an IP address, or a network as 10.0.0.0/16"))?);
            }
            "drain-file" if value.is_empty() => {
                return Err(OptionError::NoValue(label, option.takes.asked()));
            }
            "drain-file" => self.drain_file = Some(value.into()),
            "drain-delay" => {
                let delay = parse_duration(&value);
                self.drain_delay = delay.ok_or_else(|| none("a time with its unit (5s, 250ms)"))?;
            }
            "also-listen" => {
                // A path may have `=` in it, and an address has none.
                let (pool, address) = match value.find("=/") {
                    Some(at) => (Some(value[..at].to_owned()), &value[at + 1..]),
                    None => of_pool(&value),
                };
                let base = pool.zip(listen_option(address));
                self.also_listen
                    .push(base.ok_or_else(|| none("a pool and an address (POOL=host:port, or POOL=/path)"))?);
            }
            "all-commands" => self.all_commands = true,
            "io" => self.io = value.parse().map_err(OptionError::Io)?,
            "workers" => {
                let workers = usize::try_from(number()?).ok();
                let workers = workers.filter(|workers| (1..=1024).contains(workers));
                self.workers = Some(workers.ok_or(OptionError::Workers)?);
            }
            name => {
                let (pool, base) = of_pool(&value);
                if !self.tls.take(name, pool, base) {
                    return Err(none("a value (VALUE, or POOL=VALUE)"));
                }
            }
        }
        Ok(())
    }
}

/// Parses an address to listen on by TCP. `None` if it is invalid.
fn tcp_address(text: &str) -> Option<String> {
    listen_address(text)
        .ok()
        .filter(|address| listen_socket(address).is_some())
}

/// A value, and the pool that stands before it.
fn of_pool(text: &str) -> (Option<String>, &str) {
    match text.rsplit_once('=') {
        Some((pool, value)) => (Some(pool.to_owned()), value),
        None => (None, text),
    }
}
