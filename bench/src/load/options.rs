//! The command line of `proxima-bench load`.

use std::{net::SocketAddr, time::Duration};

use anyhow::{Result, ensure};
use clap::Args;
use serde::Serialize;

use crate::{
    output::{Output, as_seconds},
    protocol::Protocol,
    workload::{Mix, Popularity},
};

/// Bytes of a value of MySQL at most.
const LARGEST_ROW: usize = 4 << 20;

/// Load a memcached, a Redis or a MySQL, or a proxy before some, and measure how long replies take
///
/// Closed loop (the default): each connection keeps --pipeline requests under way and sends the next when a
/// reply came. This finds the greatest rate; its latencies are those of a server that is never asked more
/// than it answers.
///
/// Open loop (--rate): requests are due at fixed times whatever the replies do, and a latency counts from the
/// moment its request was due, not from when a busy connection let it go. A server that stalls for a second
/// is charged for every request of that second (no coordinated omission).
///
/// Every value is derived from its key, and every byte that is read is compared. A miss is counted; use
/// --fill to set every key first.
///
/// Exit code: 0; 1 when a wrong byte was read, with --strict also when a request was refused or lost; 2 when
/// the run could not be made.
#[derive(Args, Clone, Debug, Serialize)]
#[command(
    args_override_self = true,
    after_long_help = "Examples:
  proxima-bench load --address 127.0.0.1:11211 --fill                       how much does it take?
  proxima-bench load --rate 20000 --duration 60s --json open.json           how long do replies take at 20,000/s?
  proxima-bench load --connections 1000 --pipeline 16 --popularity zipf     many clients, deep pipelines, hot keys
  proxima-bench load --reconnect --connections 20                           a connection for every request
  proxima-bench load --protocol mysql --address 127.0.0.1:3306 --fill       as app, in the database proxima_bench"
)]
pub(crate) struct Options {
    /// Where to connect; of several, each connection takes the next
    #[arg(
        long,
        value_name = "IP:PORT,…",
        value_delimiter = ',',
        default_value = "127.0.0.1:11211"
    )]
    pub(crate) address: Vec<SocketAddr>,
    /// Connections in all
    #[arg(long, short = 'c', default_value_t = 100)]
    pub(crate) connections: usize,
    /// Threads that share the connections
    #[arg(long, short = 't', default_value_t = 1)]
    pub(crate) threads: usize,
    /// Requests under way on each connection; in the open loop, the most
    #[arg(long, short = 'P', default_value_t = 1)]
    pub(crate) pipeline: usize,
    /// Open loop: requests per second in all
    #[arg(long, value_name = "PER_SECOND")]
    pub(crate) rate: Option<f64>,
    /// How long requests are sent, as in 90s or 2m; 0s with --fill only fills
    #[arg(long, value_parser = humantime::parse_duration, default_value = "10s")]
    #[serde(rename = "duration_seconds", serialize_with = "as_seconds")]
    pub(crate) duration: Duration,
    /// A new connection for every request; its making is part of the latency
    #[arg(long)]
    pub(crate) reconnect: bool,
    /// How many different keys
    #[arg(long, default_value_t = 100_000)]
    pub(crate) keys: u32,
    /// Bytes of a key
    #[arg(long, default_value_t = 40)]
    pub(crate) key_size: usize,
    /// The protocol of the server
    #[arg(long, value_enum, default_value_t)]
    pub(crate) protocol: Protocol,
    /// Keys of a request; above 1: MGET and MSET
    #[arg(long, value_name = "COUNT", default_value_t = 1)]
    pub(crate) keys_a_request: usize,
    /// Bytes of a value
    #[arg(long, short = 'd', default_value_t = 400)]
    pub(crate) value_size: usize,
    /// How often each key is asked for: uniform, or zipf:EXPONENT (zipf alone is zipf:0.99)
    #[arg(long, default_value = "uniform")]
    #[serde(serialize_with = "as_text")]
    pub(crate) popularity: Popularity,
    /// Sets to gets
    #[arg(long, value_name = "SETS:GETS", default_value = "1:10")]
    pub(crate) mix: Mix,
    /// Set every key at every address before the clock starts
    #[arg(long)]
    pub(crate) fill: bool,
    /// Seed of the sequence of keys
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// A refused or lost request makes the exit code 1 too
    #[arg(long)]
    #[serde(skip)]
    pub(crate) strict: bool,
    #[command(flatten)]
    #[serde(skip)]
    pub(crate) output: Output,
}

impl Options {
    /// Refuses options that cannot be run.
    pub(crate) fn check(&self) -> Result<()> {
        ensure!(
            self.connections > 0 && self.threads > 0,
            "--connections and --threads must be at least 1"
        );
        ensure!(
            self.threads <= self.connections,
            "each of the --threads needs a connection"
        );
        ensure!(
            self.pipeline > 0 && self.keys_a_request > 0,
            "--pipeline and --keys-a-request must be at least 1"
        );
        ensure!(
            self.keys_a_request == 1 || self.protocol == Protocol::Redis,
            "requests with several keys are for --protocol redis"
        );
        ensure!(
            self.pipeline == 1 || !self.protocol.is_mysql(),
            "MySQL's clients wait for each reply: no --pipeline"
        );
        ensure!(
            self.value_size <= LARGEST_ROW || !self.protocol.is_mysql(),
            "values of MySQL are measured up to {LARGEST_ROW} bytes, whose text fits one packet"
        );
        ensure!(
            !self.reconnect || self.pipeline == 1,
            "--reconnect makes one request a connection: no --pipeline"
        );
        ensure!(
            self.rate.is_none_or(|rate| rate > 0.0 && rate.is_finite()),
            "--rate must be above 0"
        );
        Ok(())
    }
}

fn as_text<S: serde::Serializer>(popularity: &Popularity, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(popularity)
}
