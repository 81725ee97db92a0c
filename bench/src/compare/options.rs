//! The command line of `proxima-bench compare`.

use std::{path::PathBuf, time::Duration};

use anyhow::{Result, ensure};
use clap::{Args, ValueEnum};

use super::rows::{self, Row};
use crate::{
    contender::{Binary, Contender, Distribution},
    protocol::Protocol,
};

/// The row of `--rows` that stands for the free-running figures.
const FREE: &str = "free";
/// The row that stands for redis-benchmark or sysbench.
const WITNESS: &str = "witness";
/// The row that stands for the figures over clients and members, and their plots.
const SWEEP: &str = "sweep";
/// The row that stands for the set-up with a balancer, and its plot. It takes long, and is made only where it is
/// named.
const BALANCED: &str = "balanced";

/// Measure every proxy that is found side by side and write dated results
///
/// In lockstep: CPU time per request of Proxima (io_uring and epoll), twemproxy (Debian: nutcracker), HAProxy
/// in TCP mode, MySQL Router, and of memcached's proxy, mcrouter and predixy where a binary is named; the
/// embedded store against memcached or Redis; writes to all servers against writes to one; 1,000 members;
/// 10,000 idle clients. Then free-running, with real servers: throughput, latency, and latency at an equal
/// rate. Contenders take turns burst by burst (free-running: run by run), in several rounds; tables show the
/// median of the rounds with least and greatest, and for each promise whether it holds.
///
/// A whole run takes about half an hour. Whoever is not found is left out, and the results say so.
#[derive(Args, Clone, Debug)]
#[command(
    args_override_self = true,
    after_long_help = "Rows of --rows:
  1x1 10x1 100x1 1000x1 100x16 100x1-32k            proxies; clients ready at once × requests of each
  embedded-1x1 embedded-10x1 embedded-100x1 embedded-1000x1 embedded-100x16
  all-of-4 clients members-100x1 members-1x1 idle free
  fin rst (a connection for every request)   nutcracker (under twemproxy's file)
Rows of --protocol redis:
  1x1 10x1 100x1 1000x1 100x16 100x1-32k            proxies, and Proxima's own memcached beside them
  mget-100 mset-100 transaction members-100x1 embedded-100x1 embedded-100x16 idle free fin rst nutcracker
  witness (redis-benchmark)   sweep (plots over clients and members)
Rows of --protocol mysql: HAProxy in TCP mode, MySQL Router, and Proxima over servers and over a Galera cluster
  1x1 10x1 100x1 prepared-100x1 transaction fin free   witness (sysbench)
Only where it is named: balanced (1 to 5 servers directly, through a proxy, through HAProxy and two proxies)

Examples:
  proxima-bench compare --quick --rows 100x1,100x16
  proxima-bench compare --protocol redis --rounds 5
  proxima-bench compare --protocol mysql
  proxima-bench compare --binary mcrouter=/opt/mcrouter/bin/mcrouter --only proxima-epoll,twemproxy,mcrouter"
)]
pub(crate) struct Options {
    /// How often every contender has its turn
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Only these contenders
    #[arg(long, value_enum, value_name = "NAME,…", value_delimiter = ',')]
    only: Vec<Contender>,
    /// The protocol of the rows
    #[arg(long, value_enum, default_value_t)]
    pub(super) protocol: Protocol,
    /// Only these rows
    #[arg(long, value_name = "ROW,…", value_delimiter = ',')]
    rows: Vec<String>,
    /// Few, short rounds: to see whether everything runs, not to compare
    #[arg(long)]
    pub(super) quick: bool,
    /// twemproxy's distributions in the row `balanced`, for those that read its file
    #[arg(
        long,
        value_enum,
        value_name = "NAME,…",
        value_delimiter = ',',
        default_value = "ketama"
    )]
    pub(super) distribution: Vec<Distribution>,
    /// A contender's binary, where it is not found by itself
    #[arg(long, value_name = "NAME=PATH")]
    binary: Vec<Binary>,
    /// The processor of the proxies [default: the one with the least to do, anew in each round]
    #[arg(long)]
    pub(super) cpu: Option<usize>,
    /// Where the results go
    #[arg(long, value_name = "FOLDER", default_value = "bench/results")]
    pub(super) results: PathBuf,
    /// Where plots go
    #[arg(long, value_name = "FOLDER", default_value = "docs/images")]
    pub(super) plots: PathBuf,
}

/// A contender with its binary, or the reason why it has none.
pub(super) struct Entrant {
    pub(super) contender: Contender,
    pub(super) program: Result<PathBuf>,
}

impl Options {
    /// The contenders that may take part.
    pub(super) fn field(&self) -> Vec<Entrant> {
        Contender::value_variants()
            .iter()
            .filter(|contender| contender.speaks(self.protocol))
            .filter(|contender| self.only.is_empty() || self.only.contains(contender))
            .map(|contender| Entrant {
                contender: *contender,
                program: contender.program(&self.binary),
            })
            .collect()
    }

    /// The rows in lockstep that are asked for.
    pub(super) fn rows(&self) -> Result<Vec<Row>> {
        let all = rows::all(self.protocol);
        for name in &self.rows {
            let named = if self.protocol.is_mysql() {
                &[FREE, WITNESS][..]
            } else {
                &[FREE, WITNESS, SWEEP, BALANCED]
            };
            let known = named.contains(&name.as_str()) || all.iter().any(|row| row.name == name);
            ensure!(known, "no row '{name}'; --help lists them");
        }
        ensure!(self.rounds > 0, "--rounds must be at least 1");
        Ok(all.into_iter().filter(|row| self.wants(row.name)).collect())
    }

    /// Whether the free-running measurements are wanted.
    pub(super) fn free(&self) -> bool {
        self.wants(FREE)
    }

    /// Whether the outside witness is wanted.
    pub(super) fn witness(&self) -> bool {
        self.protocol != Protocol::Memcached && self.wants(WITNESS)
    }

    /// Whether figures over clients and members are wanted.
    pub(super) fn sweep(&self) -> bool {
        self.protocol == Protocol::Redis && self.wants(SWEEP)
    }

    /// Whether the set-up with a balancer is wanted.
    pub(super) fn balanced(&self) -> bool {
        !self.protocol.is_mysql() && self.rows.iter().any(|name| name == BALANCED)
    }

    fn wants(&self, row: &str) -> bool {
        self.rows.is_empty() || self.rows.iter().any(|name| name == row)
    }

    /// The number of rounds.
    pub(super) fn rounds(&self) -> usize {
        if self.quick {
            self.rounds.min(2)
        } else {
            self.rounds
        }
    }

    /// Bursts in each round.
    pub(super) fn bursts(&self) -> usize {
        if self.quick { 10 } else { 40 }
    }

    /// Length of one free run.
    pub(super) fn run(&self) -> Duration {
        Duration::from_secs(if self.quick { 1 } else { 4 })
    }
}
