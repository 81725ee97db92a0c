//! The command line of `proxima-bench lockstep`.

use std::{fs::File, net::SocketAddr, path::PathBuf};

use anyhow::{Context, Result, ensure};
use clap::{ArgGroup, Args, ValueEnum};
use serde::{Deserialize, Serialize};

use crate::{
    contender::{Binary, Contender, Spread},
    form::Form,
    near::Near,
    protocol::Protocol,
    tls::Tls,
    workload::{Keys, Mix},
};

/// A batch of one client must fit what the kernel buffers of one connection, or a blocked write would end the
/// lockstep: bytes.
const LARGEST_BATCH: usize = 160 * 1024;

/// Measure a proxy's processor time per request, batch by batch
///
/// One process is all clients and all servers. It runs on one processor together with the proxy, both under
/// SCHED_BATCH: every client writes its requests, then the process sleeps and the proxy sees exactly that
/// batch; the servers hold their replies until all requests have arrived, then answer all. The figure is the
/// proxy's processor time (user and kernel, all threads) divided by the requests, the 10 % quantile of many
/// short bursts first. Ratios between contenders of one run repeat within a few per cent, also on a machine
/// that others use.
///
/// Either name contenders, which are started with a configuration of their own and measured burst by burst in
/// turn, or attach to a proxy that runs.
#[derive(Args, Debug)]
#[command(
    args_override_self = true,
    group = ArgGroup::new("target").required(true).args(["contender", "pid", "plan"]),
    after_long_help = "Examples:
  proxima-bench lockstep --contender twemproxy,haproxy --clients 100 --pipeline 16
  proxima-bench lockstep --contender proxima-epoll --servers 1000
  proxima-bench lockstep --contender memcached --clients 10          a server: nothing behind it
  proxima-bench lockstep --contender proxima-epoll,haproxy --tls 1.3
  proxima-bench lockstep --contender accept-loop,twemproxy --clients 16 --connections fin
  proxima-bench lockstep --contender proxima-epoll --near hits --mix 0:1
  proxima-bench lockstep --contender proxima-epoll,haproxy --protocol mysql --key-size 15 -d 10 --mix 0:1
  proxima-bench lockstep --pid 4711 --address 127.0.0.1:11211 --backends 7001,7002,7003,7004"
)]
pub(crate) struct Options {
    #[command(flatten)]
    target: TargetOptions,
    #[command(flatten)]
    shape: Shape,
    #[command(flatten)]
    pub(crate) settings: Settings,
    /// Write the figures to this file; '-' is standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

#[derive(Args, Debug)]
#[group(skip)]
struct TargetOptions {
    /// Start these proxies or servers and measure them
    #[arg(long, value_enum, value_name = "NAME,…", value_delimiter = ',')]
    contender: Vec<Contender>,
    /// A contender's binary, where it is not found by itself
    #[arg(long, value_name = "NAME=PATH", requires = "contender")]
    binary: Vec<Binary>,
    /// Attach to this process; it is moved to the processor of the run and stays there
    #[arg(long, requires = "address")]
    pid: Option<u32>,
    /// Where the process that is attached to listens
    #[arg(long, value_name = "IP:PORT", requires = "pid")]
    address: Option<SocketAddr>,
    /// The ports on 127.0.0.1 where the attached proxy looks for its servers; this run listens there. None:
    /// the process is a server itself
    #[arg(long, value_name = "PORT,…", value_delimiter = ',', requires = "pid")]
    backends: Vec<u16>,
    /// Read the cases from this file: a JSON list of targets with a shape each
    #[arg(long, value_name = "FILE")]
    plan: Option<PathBuf>,
}

/// The use of a client's connection after its batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Connections {
    /// It is kept for the next one
    #[default]
    Kept,
    /// The client closes it, and connects for the next one
    Fin,
    /// The client resets it, and connects for the next one
    Rst,
}

/// The shape of the requests: how many at once, and of what size.
#[derive(Args, Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Shape {
    /// Clients that are ready at once
    #[arg(long, short = 'c', default_value_t = 100)]
    pub(crate) clients: usize,
    /// Requests that each of them sends at a time
    #[arg(long, short = 'P', default_value_t = 1)]
    pub(crate) pipeline: usize,
    /// Bytes of a value
    #[arg(long, short = 'd', default_value_t = 400)]
    pub(crate) value_size: usize,
    /// Bytes of a key
    #[arg(long, default_value_t = 40)]
    pub(crate) key_size: usize,
    /// How many different keys
    #[arg(long, default_value_t = 100_000)]
    pub(crate) keys: u32,
    /// Sets to gets
    #[arg(long, value_name = "SETS:GETS", default_value = "1:10")]
    pub(crate) mix: Mix,
    /// The protocol of clients and servers
    #[arg(long, value_enum, default_value_t)]
    pub(crate) protocol: Protocol,
    /// Keys of a request; above 1: MGET and MSET
    #[arg(long, value_name = "COUNT", default_value_t = 1)]
    pub(crate) keys_a_request: usize,
    /// A request is a transaction with --keys-a-request commands on one key: in one piece, or of MySQL each
    /// behind the reply to the one before
    #[arg(long)]
    pub(crate) transaction: bool,
    /// Servers behind a contender that is started
    #[arg(long, default_value_t = 4)]
    pub(crate) servers: usize,
    /// What becomes of a connection after its batch
    #[arg(long, value_enum, default_value_t)]
    #[serde(default)]
    pub(crate) connections: Connections,
    /// Whether clients speak TLS; servers never do
    #[arg(long, value_enum, default_value_t)]
    #[serde(default)]
    pub(crate) tls: Tls,
    /// With --tls and --connections: a connection goes on with the session of an earlier one
    #[arg(long)]
    #[serde(default)]
    pub(crate) resume: bool,
    /// Whether Proxima has a near cache before the servers, and what it is measured at
    #[arg(long, value_enum, default_value_t)]
    #[serde(default)]
    pub(crate) near: Near,
    /// The servers are a Galera cluster: Proxima reads at those that are not the writer
    #[arg(long)]
    #[serde(default)]
    pub(crate) galera: bool,
    /// Whether a request goes to one server or to all
    #[arg(long, value_enum, default_value_t = Spread::Hash)]
    pub(crate) spread: Spread,
}

/// The settings of the measurement.
#[derive(Args, Clone, Debug)]
pub(crate) struct Settings {
    /// Bursts that are measured
    #[arg(long, default_value_t = 40)]
    pub(crate) bursts: usize,
    /// Least number of requests in a burst; at least two rounds are made
    #[arg(long, default_value_t = 1_100)]
    pub(crate) burst_requests: usize,
    /// The processor to run on [default: the one with the least to do]
    #[arg(long)]
    pub(crate) cpu: Option<usize>,
    /// Count the proxy's system calls too, in a run of its own under strace
    #[arg(long)]
    pub(crate) syscalls: bool,
    /// Connect as many idle clients at the end and see what memory they cost
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    pub(crate) idle_clients: usize,
    /// Seed of the sequence of keys
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
}

/// A target and what it is asked.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Case {
    /// The target.
    pub(crate) subject: Subject,
    /// The requests.
    pub(crate) shape: Shape,
}

/// The target.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Subject {
    /// A program to be started.
    Start {
        /// The contender.
        contender: Contender,
        /// Its program.
        program: PathBuf,
    },
    /// A process that runs.
    Attach {
        /// Its id.
        pid: u32,
        /// Its address.
        address: SocketAddr,
        /// The ports of its servers. Empty: it is a server itself.
        backends: Vec<u16>,
    },
}

impl Options {
    /// The cases that the command line asks for.
    pub(crate) fn cases(&self) -> Result<Vec<Case>> {
        ensure!(self.settings.bursts > 0, "--bursts must be at least 1");
        let target = &self.target;
        if let Some(file) = &target.plan {
            let text = File::open(file).with_context(|| format!("cannot read {}", file.display()))?;
            return serde_json::from_reader(text).with_context(|| format!("{} is no plan", file.display()));
        }
        let subjects: Vec<Subject> = match (target.pid, target.address) {
            (Some(pid), Some(address)) => vec![Subject::Attach {
                pid,
                address,
                backends: target.backends.clone(),
            }],
            _ => target
                .contender
                .iter()
                .map(|contender| {
                    let program = contender.program(&target.binary)?;
                    Ok(Subject::Start {
                        contender: *contender,
                        program,
                    })
                })
                .collect::<Result<_>>()?,
        };
        Ok(subjects
            .into_iter()
            .map(|subject| Case {
                subject,
                shape: self.shape.clone(),
            })
            .collect())
    }
}

impl Shape {
    /// The form of the requests.
    pub(crate) fn form(&self, keys: &Keys) -> Form {
        Form::new(
            self.protocol,
            (self.keys_a_request, self.transaction),
            self.value_size,
            keys,
        )
    }

    /// Requests of a round.
    pub(crate) fn batch(&self) -> usize {
        self.clients * self.pipeline
    }

    /// Rounds of a burst with at least this number of requests.
    pub(crate) fn rounds(&self, requests: usize) -> usize {
        requests.div_ceil(self.batch()).max(2)
    }

    /// Refuses options that cannot be run in lockstep. `requests`: the least number in each of the `bursts`.
    pub(crate) fn check(&self, requests: usize, bursts: usize) -> Result<()> {
        ensure!(
            self.clients > 0 && self.pipeline > 0,
            "there must be at least one client and one request"
        );
        ensure!(self.servers > 0, "there must be at least one server");
        ensure!(self.keys_a_request > 0, "a request must have at least one key");
        ensure!(
            self.protocol == Protocol::Redis || self.keys_a_request == 1 || self.transaction,
            "requests with several keys are measured with --protocol redis"
        );
        ensure!(
            self.protocol != Protocol::Memcached || !self.transaction,
            "memcached has no transactions"
        );
        ensure!(
            !self.protocol.is_mysql() || self.pipeline == 1,
            "MySQL's clients wait for each reply: no --pipeline"
        );
        ensure!(
            !self.protocol.is_mysql() || self.spread == Spread::Hash && self.near == Near::None,
            "--spread and --near are about keys, which MySQL's statements have not"
        );
        ensure!(
            self.protocol.is_mysql() || !self.galera,
            "--galera is about --protocol mysql"
        );
        ensure!(self.tls != Tls::None || !self.resume, "--resume is about --tls");
        ensure!(
            self.near == Near::None || self.keys_a_request == 1 && !self.transaction,
            "a near cache is measured with one key a request"
        );
        let burst = self.rounds(requests) * self.batch();
        self.near
            .check(self.mix, self.keys, self.batch(), burst, bursts)?;
        // A text of MySQL has two digits for each byte of a value.
        let digits = if self.protocol == Protocol::Mysql { 2 } else { 1 };
        let batch = self.pipeline * self.keys_a_request * (digits * self.value_size + self.key_size + 32);
        ensure!(
            batch <= LARGEST_BATCH,
            "one client's batch of {batch} bytes does not fit a socket's buffer; pipeline × value size must stay \
             below {} KiB",
            LARGEST_BATCH / 1024
        );
        Ok(())
    }
}

impl Case {
    /// Whether the target answers by itself.
    fn is_server(&self) -> bool {
        match &self.subject {
            Subject::Start { contender, .. } => contender.is_server(),
            Subject::Attach { backends, .. } => backends.is_empty(),
        }
    }

    /// The shape, with no servers where there are none behind the target.
    pub(crate) fn effective_shape(&self) -> Shape {
        let servers = if self.is_server() { 0 } else { self.shape.servers };
        Shape {
            servers,
            ..self.shape.clone()
        }
    }

    /// The target's name in the report.
    pub(crate) fn name(&self) -> String {
        match &self.subject {
            Subject::Start { contender, .. } => contender.name().to_owned(),
            Subject::Attach { pid, .. } => format!("process {pid}"),
        }
    }
}
