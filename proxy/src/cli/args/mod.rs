//! The commands and their options. What is said here is the help, the manual page and the completions. Those that
//! look at a running proxy from second to second are in `watching`.

mod watching;

use std::{ffi::OsString, net::IpAddr, path::PathBuf, time::Duration};

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use proxima_wire::memcache::Command as Memcache;

pub(super) use self::watching::{Events, Tap, Top};
use super::awaited::Awaited;
use crate::{
    config::{Overrides, listen_address, parse_duration},
    reactor::Io,
};

/// Reads from the nearest copy, and never a stale one: a proxy for caches and databases.
#[derive(Debug, Parser)]
#[command(name = "proxima", version, arg_required_else_help = true, after_help = EXAMPLES, max_term_width = 100)]
pub(super) struct Cli {
    #[command(subcommand)]
    pub(super) command: Command,
}

const EXAMPLES: &str = "\
Examples:
  A cache of its own, for memcached's clients on 127.0.0.1:11211 and Redis' on 127.0.0.1:6379:
    proxima run
  What a file says; a changed file takes effect at once:
    proxima run --config proxima.yaml
  Is the file good? If not: where, what, and what would be right:
    proxima check proxima.yaml
  Where does this key go, and why?
    proxima explain user:1 --config proxima.yaml
  What does a running proxy do, and is all well? As a screen, and what has happened to it:
    proxima top
    proxima events -f
  What does the near cache keep, and for how long?
    proxima near list
  Which MySQL server takes writes, and which is out, and why?
    proxima mysql show
  Which MySQL clients keep a connection to a server, and why?
    proxima mysql sessions
  mcrouter's options and file; the same when called as `mcrouter`:
    proxima mcrouter --port=11211 --config=file:mcrouter.json
  twemproxy's options and file; the same when called as `nutcracker`:
    proxima nutcracker -c nutcracker.yml";

/// What to do.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    Run(Run),
    Check(Check),
    Explain(Explain),
    #[command(subcommand)]
    Fleet(Fleet),
    #[command(subcommand)]
    Near(Near),
    #[command(subcommand)]
    Mysql(Mysql),
    Top(Top),
    Events(Events),
    Tap(Tap),
    /// Print what may stand in a configuration
    #[command(subcommand)]
    Config(Config),
    /// Print completions for a shell
    #[command(after_help = "Example:\n  proxima completions bash > /etc/bash_completion.d/proxima")]
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Print the manual page, of the program or of one command
    #[command(after_help = "Example:\n  proxima man run | man -l -")]
    Man {
        /// The command
        command: Option<String>,
    },
    /// Serve with mcrouter's options and configuration file
    #[command(disable_help_flag = true)]
    Mcrouter {
        /// mcrouter's options; `--help` lists those that are served
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Serve with twemproxy's options and configuration file
    #[command(disable_help_flag = true)]
    Nutcracker {
        /// twemproxy's options; `-h` lists them
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
}

/// Serve until told to stop
///
/// Without a configuration the store inside the process is served: to clients of memcached on
/// 127.0.0.1:11211, and to those of Redis on 127.0.0.1:6379 unless another program has that port. With
/// --listen it is served to clients of memcached at the address that is given, and to no others.
///
/// SIGHUP, or a change of the configuration file or of a file of servers, makes it read them again: a good
/// configuration takes effect at once without a client noticing, a bad one is logged and the running one
/// stays. SIGTERM lets clients finish and ends.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples:
  proxima run
  proxima run --listen 0.0.0.0:11211 --workers 4
  proxima run --config proxima.yaml --node-address 10.0.0.3 --log-format json")]
pub struct Run {
    /// The configuration file; docs/options.md says what may stand in it
    #[arg(long, short, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The I/O back end; `auto` takes io_uring where it is allowed
    #[arg(long, value_name = "auto|io_uring|epoll", default_value = "auto")]
    pub io: Io,
    /// Worker threads, in place of the configuration's; by default one for each processor
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub workers: Option<u16>,
    /// Where clients connect, in place of the address of the configuration's only listener
    #[arg(long, value_name = "ADDRESS", value_parser = listen_address)]
    pub listen: Option<String>,
    /// Where operators look, in place of the configuration's
    #[arg(long, value_name = "ADDRESS", value_parser = listen_address)]
    pub admin: Option<String>,
    #[command(flatten)]
    #[allow(missing_docs, reason = "a comment would be help for an option")]
    pub here: LocationArgs,
    /// How to write the log
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub log_format: LogFormat,
    /// How much to log
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    pub log_level: LogLevel,
}

impl Run {
    /// Options that replace values of the configuration.
    pub fn overrides(&self) -> Overrides {
        Overrides {
            listen: self.listen.clone(),
            admin: self.admin.clone(),
            workers: self.workers.map(usize::from),
        }
    }
}

/// The place of this process, so that one configuration serves every node.
#[derive(Clone, Debug, Default, Args)]
pub struct LocationArgs {
    /// An address of this node, where those of its interfaces do not tell (in a container); may be repeated
    #[arg(long, value_name = "IP", env = "HOST_IP", value_delimiter = ',', value_parser = node_address)]
    node_address: Vec<Option<IpAddr>>,
    /// This node's name in Kubernetes, so that pods on it are the nearest
    #[arg(long, value_name = "NAME", env = "NODE_NAME")]
    pub node: Option<String>,
    /// This node's zone; servers of the same zone are nearer than others
    #[arg(long, value_name = "ZONE")]
    pub zone: Option<String>,
}

impl LocationArgs {
    /// The addresses that were given.
    pub fn node_addresses(&self) -> Vec<IpAddr> {
        self.node_address.iter().copied().flatten().collect()
    }
}

/// An empty value counts as none: a manifest may set the variable from something that does not exist.
fn node_address(text: &str) -> Result<Option<IpAddr>, BadArgument> {
    match text.trim() {
        "" => Ok(None),
        text => text.parse().map(Some).map_err(|_| BadArgument::NoIp),
    }
}

/// The format of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// One line for each event, for people.
    Text,
    /// One JSON object for each event, for machines.
    Json,
}

/// How much to log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
#[allow(missing_docs)]
pub enum LogLevel {
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

impl From<LogLevel> for tracing::Level {
    fn from(level: LogLevel) -> Self {
        match level {
            LogLevel::Error => Self::ERROR,
            LogLevel::Warn => Self::WARN,
            LogLevel::Info => Self::INFO,
            LogLevel::Debug => Self::DEBUG,
            LogLevel::Trace => Self::TRACE,
        }
    }
}

/// Say whether a configuration file is good
///
/// Exits with 0 when it is. Otherwise one line for each mistake says file, line, column, the key, what is
/// wrong and what would be right. Names of servers that do not resolve here are warned of: such a server is
/// ejected until its name does.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example:\n  proxima check proxima.yaml && kill -HUP $(pidof proxima)")]
pub(super) struct Check {
    /// The file
    pub(super) file: PathBuf,
}

/// Say where a key or a statement goes, and why
///
/// The tree is walked as it is for a client, with every server taken to be up; a node agent (`nodes`) is
/// asked once. The admin port's `/explain?key=` and `/explain?sql=` say it for the running process, with the
/// servers as they are.
///
/// Of a statement it is said what it does, and what would keep a connection to the server for its session, as
/// far as the text shows it.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples:
  proxima explain user:1 --config proxima.yaml
  proxima explain user:1 --config proxima.yaml --command set --node-address 10.0.0.3
  proxima explain --sql 'SELECT * FROM t FOR UPDATE' --config proxima.yaml")]
pub struct Explain {
    /// The key
    #[arg(required_unless_present = "sql", conflicts_with = "sql")]
    pub key: Option<String>,
    /// A statement in place of a key; only its class is shown, and no part of it
    #[arg(long, value_name = "TEXT", conflicts_with = "command")]
    pub sql: Option<String>,
    /// The user who executes the statement
    #[arg(long, value_name = "NAME", requires = "sql", conflicts_with = "key")]
    pub user: Option<String>,
    /// The schema that this user's session has
    #[arg(long, value_name = "NAME", requires = "sql", conflicts_with = "key")]
    pub schema: Option<String>,
    /// The configuration file; without one what `run` serves without one
    #[arg(long, short, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The command of the request
    #[arg(long, value_name = "COMMAND", default_value = "get", value_parser = command)]
    pub command: Memcache,
    /// The client's address, where a node agent tells who is near it (`nodes`)
    #[arg(long, value_name = "IP")]
    pub from: Option<IpAddr>,
    #[command(flatten)]
    #[allow(missing_docs, reason = "a comment would be help for an option")]
    pub here: LocationArgs,
}

/// Look at a fleet of proxies, and act on it
#[derive(Clone, Debug, Subcommand)]
#[command(after_help = "\
Examples:
  proxima fleet show
  proxima fleet remove node-3 --admin 10.0.0.1:9150
  proxima fleet keys /etc/proxima/fleet node-1 node-2 node-3
  proxima fleet keys --secret cache-keys --token-secret cache-token
  proxima fleet own /var/lib/proxima --user 65532:65532")]
pub(super) enum Fleet {
    /// Print the fleet as a running proxy sees it: view, leader, voters, and every peer
    Show {
        #[command(flatten)]
        at: AdminPort,
        /// Print it as JSON
        #[arg(long)]
        json: bool,
    },
    /// Leave a peer out at once; it may join again after a pause
    Remove {
        /// The name of the peer
        name: String,
        #[command(flatten)]
        at: AdminPort,
    },
    /// Make an authority and certificates for the channels between peers, or a token for operators
    ///
    /// In a folder: writes `ca.pem` and `ca.key`, unless they are there, and a certificate with its key for each
    /// name. Every peer needs `ca.pem`, its own certificate and its own key. `ca.key` stays where you are:
    /// whoever has it can make a peer.
    ///
    /// In a Secret, run in a pod of Kubernetes: makes `ca.crt`, `ca.key`, `tls.crt` and `tls.key`, one certificate for
    /// all peers. An authority that is there stays. A certificate holds for 90 days, and is made anew by the run
    /// that finds less than 30 of them left: run it every week. Give the peers all but `ca.key`. The part `token` of
    /// another Secret is for `token_file` of the admin port; one that is there stays.
    Keys {
        /// The folder
        #[arg(required_unless_present_any = ["secret", "token_secret"])]
        #[arg(conflicts_with_all = ["secret", "token_secret"])]
        dir: Option<PathBuf>,
        /// The names of peers
        #[arg(required_unless_present_any = ["secret", "token_secret"])]
        names: Vec<String>,
        /// The Secret, in the namespace of this pod
        #[arg(long, value_name = "NAME")]
        secret: Option<String>,
        /// The next step of the exchange of the authority, which takes three runs. All peers must have seen the
        /// Secret before the next one, which takes Kubernetes some two minutes
        #[arg(long, requires = "secret")]
        rotate: bool,
        /// The Secret for the token of operators, in the same namespace
        #[arg(long, value_name = "NAME")]
        token_secret: Option<String>,
    },
    /// Make the folder of a peer that of the user who runs the proxy
    ///
    /// Kubernetes makes a folder on the node as one of root. An init container with the capability CHOWN, and no
    /// other, runs this.
    Own {
        /// The folder, and what is in it; no link is followed
        dir: PathBuf,
        /// The user and the group that own it from now on
        #[arg(long, value_name = "UID:GID", value_parser = owner)]
        user: (u32, u32),
    },
    /// Make this peer a new one: for the day on which most voters have lost their directories
    ///
    /// The proxy must not run. Its directory forgets fleet, votes and log; its copies are flushed at the next
    /// start. Do so at every peer: together they begin a new fleet, as at the first start.
    Init {
        /// The configuration file
        #[arg(long, short, value_name = "FILE")]
        config: PathBuf,
        /// Forget a fleet that the directory knows
        #[arg(long)]
        force: bool,
    },
}

fn owner(text: &str) -> Result<(u32, u32), String> {
    let parts = text.split_once(':');
    let numbers = parts.and_then(|(user, group)| Some((user.parse().ok()?, group.parse().ok()?)));
    numbers.ok_or_else(|| "write two numbers, as in 65532:65532".to_owned())
}

/// Look at the near cache, and change it while it runs
///
/// A near cache keeps replies by the rules of the configuration's `near` routes. Here a rule can be watched,
/// changed, switched off and on, and emptied. What is changed holds at once, for what is kept
/// already, too, until the next start; with --keep it is written to the file that the configuration names as
/// `near: {settings: FILE}`.
#[derive(Clone, Debug, Subcommand)]
#[command(after_help = "\
Examples:
  What does each rule keep, and how often is that an answer?
    proxima near list
  Keep replies of the rule `maps` for 10 s, and old ones for 5 s more while they are renewed:
    proxima near set maps ttl 10s stale 5s
  The same beyond the next start:
    proxima near set maps ttl 10s stale 5s --keep
  Give the near cache more memory, or less; what is above it goes at once:
    proxima near set memory 512MiB
  A reply is wrong: drop it, or all keys that begin so, or all of the rule:
    proxima near drop maps map:eu
    proxima near drop maps --prefix map:
    proxima near drop maps --all
  Something is odd: send all requests of the rule to the servers, and later keep again:
    proxima near off maps
    proxima near on maps")]
pub(super) enum Near {
    /// Print the rules: what they keep, by which settings, and how often that is an answer
    List {
        #[command(flatten)]
        at: AdminPort,
        /// Print it as JSON
        #[arg(long)]
        json: bool,
    },
    /// Change settings of a rule, or the memory of all of them
    ///
    /// The settings of a rule are `ttl`, `stale`, `stale_on_error`, `negative`, `largest` and `jitter`, each
    /// with its value as in a configuration. `ttl 0s` switches the rule off.
    #[command(after_help = "\
Examples:
  proxima near set maps ttl 10s
  proxima near set maps ttl 1m stale 10s negative 1s largest 4MiB --keep
  proxima near set memory 512MiB")]
    Set {
        /// The rule, or `memory`
        #[arg(value_name = "RULE")]
        rule: String,
        /// Settings, each with its value; the size alone behind `memory`
        #[arg(required = true, value_name = "SETTING VALUE")]
        values: Vec<String>,
        /// Keep it beyond the next start
        #[arg(long)]
        keep: bool,
        #[command(flatten)]
        at: AdminPort,
    },
    /// Keep replies of a rule again, as before it was switched off
    On {
        /// The rule
        rule: String,
        /// For how long; a rule that was off since the start needs it
        #[arg(long, value_name = "TIME")]
        ttl: Option<String>,
        /// Keep it beyond the next start
        #[arg(long)]
        keep: bool,
        #[command(flatten)]
        at: AdminPort,
    },
    /// Send all requests of a rule to the servers, and free what it has kept
    Off {
        /// The rule
        rule: String,
        /// Keep it beyond the next start
        #[arg(long)]
        keep: bool,
        #[command(flatten)]
        at: AdminPort,
    },
    /// Drop what is kept: of one key, of all keys that begin so, or of a whole rule
    ///
    /// A reply that is being fetched meanwhile is not kept either. A single key is dropped in all rules, as
    /// by a request that changes it.
    #[command(after_help = "\
Examples:
  proxima near drop maps map:eu
  proxima near drop maps --prefix map:
  proxima near drop maps --all")]
    Drop {
        /// The rule
        rule: String,
        /// The key, as the server sees it
        #[arg(required_unless_present_any = ["prefix", "all"], conflicts_with_all = ["prefix", "all"])]
        key: Option<OsString>,
        /// The beginning of the keys
        #[arg(long, value_name = "BEGINNING", conflicts_with = "all")]
        prefix: Option<OsString>,
        /// All keys of the rule
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        at: AdminPort,
    },
    /// Print the keys that were answered most often, with bytes and age
    Top {
        /// Only keys of this rule
        rule: Option<String>,
        /// How many
        #[arg(long, value_name = "N", default_value_t = 20)]
        count: usize,
        /// Print it as JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        at: AdminPort,
    },
    /// Say what a rule does with a key, what is kept of it, and what the next reader gets
    Explain {
        /// The rule
        rule: String,
        /// The key, as the server sees it
        key: OsString,
        #[command(flatten)]
        at: AdminPort,
    },
}

/// Look at the pools of MySQL servers, and say who takes writes
#[derive(Clone, Debug, Subcommand)]
#[command(after_help = "\
Examples:
  proxima mysql show
  proxima mysql show --admin 10.0.0.1:9150 --json
  proxima mysql show db --wait online=pxc-2
  proxima mysql writer db pxc-1
  proxima mysql drain db pxc-2
  proxima mysql sessions
  proxima mysql sessions --user app --state transaction")]
pub(super) enum Mysql {
    /// Print the sessions of clients: which connection to a server each has, for how long, and why
    ///
    /// Those that keep a connection come first, and the one that has it longest before all. Below them stands
    /// how many sessions each worker has in which state.
    #[command(after_help = "\
Examples:
  Which clients keep a connection, and why?
    proxima mysql sessions
  Which ones of this user are in a transaction?
    proxima mysql sessions --user app --state transaction
  How many are there of each kind?
    proxima mysql sessions --sums")]
    Sessions {
        #[command(flatten)]
        at: AdminPort,
        /// Only sessions of this user
        #[arg(long, value_name = "USER")]
        user: Option<String>,
        /// Only sessions in this state, as `free` or `transaction`
        #[arg(long, value_name = "STATE")]
        state: Option<String>,
        /// Only sessions with a connection to a server of this pool
        #[arg(long, value_name = "POOL")]
        pool: Option<String>,
        /// The most sessions that are printed
        #[arg(long, value_name = "N", default_value_t = 50)]
        limit: usize,
        /// Print only how many sessions each worker has in which state
        #[arg(long, conflicts_with_all = ["user", "state", "pool"])]
        sums: bool,
        /// Print it as JSON
        #[arg(long)]
        json: bool,
    },
    /// Move the writes of a pool to another server, and wait until it takes them
    ///
    /// New writes wait meanwhile, running transactions end, and the new writer first waits until it has what
    /// the former one has acknowledged. Reads go on. The order stands until `--end`: the server takes writes
    /// again when it comes back.
    #[command(after_help = "\
Examples:
  The writer is about to be restarted: another server takes writes.
    proxima mysql writer db pxc-1
  Let the proxy choose the next writer itself again.
    proxima mysql writer db --end
  Do not wait for a transaction that never ends.
    proxima mysql writer db pxc-1 --within 2s --force")]
    Writer {
        #[command(flatten)]
        at: AdminPort,
        /// The pool
        pool: String,
        /// The server that is to take writes, by its name or address
        #[arg(required_unless_present = "end")]
        member: Option<String>,
        /// The longest time that writes wait for what is under way; after that the writer stays
        #[arg(long, value_name = "TIME", default_value = "5s", value_parser = time)]
        within: Duration,
        /// Let what is still under way after that time fail, and move all the same
        #[arg(long)]
        force: bool,
        /// Take the order back; the writer stays where it is
        #[arg(long, conflicts_with_all = ["member", "within", "force"])]
        end: bool,
    },
    /// Give a server nothing new, and wait until nothing is left there, so that it can be stopped
    ///
    /// Sessions leave it when their transaction is over. What is left when the time is over is printed, and
    /// the exit code is 1; the server drains all the same, until `undrain`.
    #[command(after_help = "\
Examples:
  proxima mysql drain db pxc-2 && systemctl stop mysql
  proxima mysql drain db pxc-2 --within 10s")]
    Drain {
        #[command(flatten)]
        at: AdminPort,
        /// The pool
        pool: String,
        /// The server, by its name or address
        member: String,
        /// The longest time to wait
        #[arg(long, value_name = "TIME", default_value = "60s", value_parser = time)]
        within: Duration,
    },
    /// Let a server that drains serve again
    Undrain {
        #[command(flatten)]
        at: AdminPort,
        /// The pool
        pool: String,
        /// The server, by its name or address
        member: String,
    },
    /// Print the pools: who takes writes, who serves reads, and why a server is asked for nothing
    ///
    /// Of each server's connections it prints how many sessions have one, how many are idle, and how many
    /// statements are queued for one.
    #[command(after_help = "\
Examples:
  proxima mysql show
  Is the server that was restarted asked again?
    proxima mysql show db --wait online=pxc-2
  Which one takes writes, and does it within ten seconds?
    proxima mysql show db --wait writer=pxc-0 --for 10s
  Is nothing left at a server that drains?
    proxima mysql show db --wait drained=pxc-1")]
    Show {
        #[command(flatten)]
        at: AdminPort,
        /// Only this pool
        pool: Option<String>,
        /// Wait until a server of the pool is online, takes writes, or drains and is empty; the exit code is
        /// 1 if it is not so in time
        #[arg(long, value_name = "online|writer|drained=MEMBER", requires = "pool")]
        wait: Option<Awaited>,
        /// The longest time to wait
        #[arg(long = "for", value_name = "TIME", default_value = "60s", value_parser = time, requires = "wait")]
        within: Duration,
        /// Print it as JSON
        #[arg(long)]
        json: bool,
    },
}

/// A time above 0.
fn time(text: &str) -> Result<Duration, String> {
    let time = parse_duration(text).filter(|time| !time.is_zero());
    time.ok_or_else(|| "expected a time above 0, such as 5s".to_owned())
}

/// The proxy that is asked.
#[derive(Clone, Debug, Args)]
pub(super) struct AdminPort {
    /// The admin port of the proxy; `https://ADDRESS` where it has TLS
    #[arg(long, value_name = "ADDRESS", default_value = ADMIN)]
    pub(super) admin: String,
    /// The authority of the admin port's certificate; the default are those that this system trusts
    #[arg(long = "ca", alias = "admin-ca", value_name = "FILE")]
    pub(super) admin_ca: Option<PathBuf>,
    /// The token for what changes something, where the admin port asks for one: the first line of this file
    #[arg(long, value_name = "FILE")]
    pub(super) token_file: Option<PathBuf>,
}

/// The admin port of the examples.
const ADMIN: &str = "127.0.0.1:9150";

/// Print what may stand in a configuration
#[derive(Clone, Copy, Debug, Subcommand)]
pub(super) enum Config {
    /// As JSON Schema, for editors that check while one types
    Schema,
    /// All options but routes, as Markdown
    Options,
    /// All routes, as Markdown
    Routes,
}

/// Why the value of an option is refused. The operator has to correct it.
#[derive(Debug, thiserror::Error)]
enum BadArgument {
    #[error("expected an IP address")]
    NoIp,
    #[error("`{0}` is no command of memcached")]
    NoCommand(String),
}

fn command(name: &str) -> Result<Memcache, BadArgument> {
    Memcache::by_name(name).ok_or_else(|| BadArgument::NoCommand(name.to_owned()))
}
