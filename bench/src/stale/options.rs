//! The command line of `proxima-bench stale`.

use std::{net::SocketAddr, time::Duration};

use anyhow::{Result, ensure};
use clap::{Args, value_parser};
use serde::Serialize;

use crate::{
    net::look_up,
    output::{Output, as_seconds},
    protocol::Protocol,
    session::prefix,
};

/// The longest TTL: memcached takes a greater number of seconds for a date.
const LONGEST_TTL: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Find out whether reads bring values that were replaced before
///
/// Writers set keys through --write, each time with a higher version in the value, and readers get them
/// through --read. A read that begins after a version was acknowledged must bring that version, a newer one,
/// or a miss. Anything older is stale, and its age is the time from the acknowledgement of the first newer
/// version to the beginning of the read. A miss is never stale: a cache may forget, but it must not lie.
///
/// Each key has one writer, which waits for the reply to one write before it sends the next: so the versions
/// of a key are ordered. A write that is refused or never answered has an open outcome: reads may bring its
/// version or the one before. When a newer version is acknowledged, that is over: an unanswered write that
/// shows up later is stale.
///
/// Every client takes the next address of its list for each request: the addresses must lead to the same
/// data. With --write-all a write goes to every address of --write, and is acknowledged when all have stored
/// it, as in an application that keeps the copies itself.
///
/// Before the clock starts, the first version is set at every address of both lists. So a copy that no write
/// reaches is found stale, rather than empty. Half of the reads ask for the key that was acknowledged last,
/// where a write on its way is caught; the others for any key, where an old copy that has come back is.
///
/// Keys have a new name in each run and expire by themselves after --ttl. In MySQL each key has a row in the
/// table `bench` of the database `proxima_bench`, which the user `app` (password `secret`) may make; rows of
/// the run are deleted at its end.
///
/// A read goes backwards that brings an older version than an earlier one on the same connection. Such reads
/// are counted, stale or not.
///
/// The longest spell is the longest time, from the beginning of a write that failed, in which no write to the
/// same key was acknowledged. Ctrl-C ends the run early, with its report.
///
/// Exit code: 0; 1 when a read was stale, or a value was not as it was written; 2 when the run could not be
/// made, or has shown nothing because no write was acknowledged or no read has found anything.
#[derive(Args, Clone, Debug, Serialize)]
#[command(
    args_override_self = true,
    after_long_help = "Examples:
  proxima-bench stale --write 127.0.0.1:11211
      one memcached, one mcrouter, one twemproxy: restart or freeze a server behind it meanwhile
  proxima-bench stale --write 10.0.0.1:11311 --read 10.0.0.1:11311,10.0.0.2:11311,10.0.0.3:11311 --duration 10m
      written through the proxy of one node, read through those of all
  proxima-bench stale --write 10.0.0.1:11311,10.0.0.2:11311 --json stale.json
      written and read through both: is each of them seen through the other?
  proxima-bench stale --write 10.0.0.1:11211,10.0.0.2:11211 --write-all
      two memcached that the application itself keeps alike
  proxima-bench stale --protocol mysql --write 10.0.0.1:3306 --read 10.0.0.1:3306,10.0.0.2:3306 --pause 0s
      written and read through two proxies of a Galera cluster"
)]
pub(crate) struct Options {
    /// Where to write; names are looked up once
    #[arg(
        long,
        value_name = "HOST:PORT,…",
        value_delimiter = ',',
        default_value = "127.0.0.1:11211",
        value_parser = look_up
    )]
    pub(super) write: Vec<SocketAddr>,
    /// Where to read; without it the addresses of --write
    #[arg(long, value_name = "HOST:PORT,…", value_delimiter = ',', value_parser = look_up)]
    pub(super) read: Vec<SocketAddr>,
    /// The protocol of all addresses: memcached or mysql
    #[arg(long, value_enum, default_value_t)]
    pub(super) protocol: Protocol,
    /// Every write goes to all addresses of --write
    #[arg(long)]
    pub(super) write_all: bool,
    /// How many keys; fewer are written more often
    #[arg(long, default_value_t = 100, value_parser = value_parser!(u32).range(1..=100_000))]
    pub(super) keys: u32,
    /// Writers, each with its own keys
    #[arg(long, default_value_t = 4, value_parser = value_parser!(u32).range(1..=1_000))]
    pub(super) writers: u32,
    /// Readers of all keys
    #[arg(long, default_value_t = 8, value_parser = value_parser!(u32).range(1..=1_000))]
    pub(super) readers: u32,
    /// Time that a client lets pass after each reply; 0s for the greatest rate
    #[arg(long, value_parser = humantime::parse_duration, default_value = "1ms")]
    #[serde(rename = "pause_seconds", serialize_with = "as_seconds")]
    pub(super) pause: Duration,
    /// How long, as in 90s or 10m
    #[arg(long, value_parser = humantime::parse_duration, default_value = "30s")]
    #[serde(rename = "duration_seconds", serialize_with = "as_seconds")]
    pub(super) duration: Duration,
    /// How long a connection and a reply are waited for
    #[arg(long, value_parser = humantime::parse_duration, default_value = "1s")]
    #[serde(rename = "timeout_seconds", serialize_with = "as_seconds")]
    pub(super) timeout: Duration,
    /// Until a value expires, in whole seconds; 0s for never
    #[arg(long, value_parser = humantime::parse_duration, default_value = "10m")]
    #[serde(rename = "ttl_seconds", serialize_with = "as_seconds")]
    pub(super) ttl: Duration,
    /// Keys begin with this
    #[arg(long, value_name = "TEXT", value_parser = prefix, default_value = "proxima-stale:")]
    pub(super) prefix: String,
    /// Bytes of a value; more if its key and version need them
    #[arg(long, short = 'd', default_value_t = 100, value_parser = value_parser!(u32).range(..=1024 * 1024))]
    pub(super) value_size: u32,
    #[command(flatten)]
    #[serde(skip)]
    pub(super) output: Output,
}

impl Options {
    /// Refuses what cannot be run.
    pub(super) fn check(&self) -> Result<()> {
        ensure!(
            self.writers <= self.keys,
            "each of the --writers needs a key of its own"
        );
        ensure!(
            matches!(self.protocol, Protocol::Memcached | Protocol::Mysql),
            "versions are written and read in the protocols memcached and mysql"
        );
        ensure!(
            !self.prefix.contains(['\'', '\\']) || !self.protocol.is_mysql(),
            "a --prefix of MySQL has no quote and no backslash"
        );
        ensure!(!self.timeout.is_zero(), "--timeout must be above 0");
        ensure!(
            self.ttl.subsec_nanos() == 0 && self.ttl <= LONGEST_TTL,
            "--ttl must be whole seconds, at most 30 days"
        );
        Ok(())
    }

    /// The addresses to which reads go.
    pub(super) fn read_addresses(&self) -> &[SocketAddr] {
        if self.read.is_empty() {
            &self.write
        } else {
            &self.read
        }
    }
}
