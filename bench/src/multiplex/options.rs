//! The command line of `proxima-bench multiplex`.

use std::{path::PathBuf, time::Duration};

use anyhow::{Result, ensure};
use clap::Args;
use serde::Serialize;

use super::{table::Table, way::Way};
use crate::{
    contender::Contender,
    output::{Output, as_seconds},
    process::raise_descriptor_limit,
    protocol::Protocol,
};

/// Descriptors that a process needs beside those of its clients.
const BESIDE: u64 = 200;

/// Measure what many clients of MySQL cost a server, directly, behind HAProxy and behind Proxima
///
/// Starts a MariaDB with a data directory of its own, and measures four tables, in rounds in which each way
/// has its turn: the processor time of the server and of the proxy for each request (from /proc), connections
/// at the server, latencies, errors, and the proxy's memory for each client. Each round has a proxy of its
/// own, with its default limits on connections to the server. Tables show the median of the rounds with least
/// and greatest, and multiples are those of one round each.
///
/// The clients are part of this program. Each reply is compared, and the sum of all updates as well. A way
/// that fails says so in its column. A whole run takes about ten minutes.
///
/// Exit code: 0, also when a bar is missed, which the tables show; 2 when the run could not be made.
#[derive(Args, Clone, Debug, Serialize)]
#[command(
    args_override_self = true,
    after_long_help = "Examples:
  proxima-bench multiplex --proxima target/release/proxima
  proxima-bench multiplex --tables logins,prepares --rounds 40
  proxima-bench multiplex --contender haproxy,proxima-io_uring,proxima-epoll --tables clients
  proxima-bench multiplex --rounds 1                       does everything run?"
)]
pub(crate) struct Options {
    /// Only these tables
    #[arg(
        long,
        value_enum,
        value_name = "NAME,…",
        value_delimiter = ',',
        default_value = "logins,prepares,clients,idle"
    )]
    pub(super) tables: Vec<Table>,
    /// The proxies that have their turns behind the direct way
    #[arg(
        long,
        value_enum,
        value_name = "NAME,…",
        value_delimiter = ',',
        default_value = "haproxy,proxima-io_uring"
    )]
    contender: Vec<Contender>,
    /// Proxima's program [default: the one beside this program, or in the PATH]
    #[arg(long, value_name = "PATH")]
    proxima: Option<PathBuf>,
    /// How often every way has its turn
    #[arg(long, default_value_t = 20)]
    pub(super) rounds: usize,
    /// How often in the table idle, whose figures hardly vary
    #[arg(long, default_value_t = 3)]
    pub(super) idle_rounds: usize,
    /// The length of a round of logins and prepares, behind a quarter of it that is not counted
    #[arg(long, value_parser = humantime::parse_duration, default_value = "800ms")]
    #[serde(rename = "duration_seconds", serialize_with = "as_seconds")]
    pub(super) duration: Duration,
    /// The length of a round of clients
    #[arg(long, value_parser = humantime::parse_duration, default_value = "4s")]
    #[serde(rename = "paced_seconds", serialize_with = "as_seconds")]
    pub(super) paced: Duration,
    /// Clients that ask once a second
    #[arg(long, default_value_t = 1_000)]
    pub(super) clients: usize,
    /// Clients that ask nothing; fewer where the limit on descriptors has no room for two of each
    #[arg(long, default_value_t = 10_000)]
    idle: usize,
    /// Seed of the sequence of rows and times
    #[arg(long, default_value_t = 1)]
    pub(super) seed: u64,
    #[command(flatten)]
    #[serde(skip)]
    pub(super) output: Output,
}

impl Options {
    /// Refuses what cannot be run.
    pub(super) fn check(&self) -> Result<()> {
        ensure!(
            self.rounds > 0 && self.idle_rounds > 0,
            "--rounds and --idle-rounds must be at least 1"
        );
        ensure!(
            self.clients > 0 && self.idle > 0,
            "--clients and --idle must be at least 1"
        );
        for contender in &self.contender {
            ensure!(
                contender.speaks(Protocol::Mysql) && !contender.is_server(),
                "{} is no proxy of MySQL",
                contender.name()
            );
        }
        Ok(())
    }

    /// The ways to the server, in the order of their turns.
    pub(super) fn ways(&self) -> Result<Vec<Way>> {
        let mut ways = vec![Way::Direct];
        for contender in &self.contender {
            let named = self.proxima.clone().filter(|_| contender.is_proxima());
            let program = named.map_or_else(|| contender.program(&[]), Ok)?;
            ways.push(Way::Through(*contender, program));
        }
        Ok(ways)
    }

    /// Rounds of a table.
    pub(super) fn rounds_of(&self, table: Table) -> usize {
        match table {
            Table::Idle => self.idle_rounds,
            _ => self.rounds,
        }
    }

    /// Clients that ask nothing, each of which may need two descriptors of a proxy.
    pub(super) fn idle(&self) -> usize {
        let room = raise_descriptor_limit().saturating_sub(BESIDE) / 2;
        self.idle.min(usize::try_from(room).unwrap_or(usize::MAX))
    }
}
