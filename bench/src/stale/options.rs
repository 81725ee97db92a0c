//! The command line of `proxima-bench stale`.

use std::{net::SocketAddr, time::Duration};

use anyhow::{Result, ensure};
use clap::{Args, ValueEnum, value_parser};
use serde::Serialize;

use super::tables::LONGEST_COMMENT;
use crate::{
    net::look_up,
    output::{Output, as_seconds},
    protocol::Protocol,
    session::prefix,
};

/// The longest TTL: memcached takes a greater number of seconds for a date.
const LONGEST_TTL: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Characters of a table's name, of which there are 64 at most, less those that a run appends to its prefix.
const LONGEST_TABLE_PREFIX: usize = 40;

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
/// it, as in an application that keeps the copies itself: each of them then has data of its own.
///
/// --connections says on which connection a request goes. With `own` each writer and each reader has one to
/// each address. With `same` there are --writers and no readers: each writes its own keys and reads them,
/// over one connection to one address (to all of --write with --write-all), as one session. With `pool` all
/// clients take a connection for one request out of a pool of --pool, and give it back: a read has hardly
/// ever the connection of the write before it.
///
/// Before the clock starts, the first version is set at every address of both lists. So a copy that no write
/// reaches is found stale, rather than empty. Half of the reads ask for the key that was acknowledged last,
/// where a write on its way is caught; the others for any key, where an old copy that has come back is.
///
/// Keys have a new name in each run and expire by themselves after --ttl. In MySQL they are in the database
/// `proxima_bench`, where the user `app` (password `secret`) may make tables: with `--as rows` each key has a
/// row of the table `stale`, with `--as tables` a table of its own, whose comment is the value. Writes of it
/// are DDL (ALTER TABLE), and reads are SHOW CREATE TABLE. All of them are deleted at the end of the run.
/// With `--protocol mysql-prepared` each connection prepares its statements once.
///
/// A read goes backwards that brings an older version than one that its connection has read before, or was
/// told that it has written. Such reads are counted, stale or not.
///
/// A read of MySQL asks for a number as well that no other read asks for (and for a table by its name). Where
/// another one comes back, it is counted as a reply of another client.
///
/// At the end, when nobody writes any more, every key of MySQL is read at every address until it has what was
/// acknowledged, for --timeout at most. An acknowledged write is lost if the row has counted fewer writes
/// than were acknowledged, or has an older version than the newest of them. A write is applied twice if the
/// row has counted more than were sent, or if a write has found its own version there. A write that was
/// refused or never answered may be applied once, or not. Tables count nothing: there only the newest version
/// of a key can be found lost. A key is counted where it is worst, and one that could not be read is counted
/// apart.
///
/// The longest spell is the longest time, from the beginning of a write that failed, in which no write to the
/// same key was acknowledged. Ctrl-C ends the run early, with its report.
///
/// Exit code: 0; 1 when a read was stale, a reply was another client's, an acknowledged write was lost, a
/// write was applied twice, or a value was not as it was written; 2 when the run could not be made, or has
/// shown nothing because no write was acknowledged, no read has found anything, or no key of MySQL could be
/// read at the end.
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
      written and read through two proxies of a Galera cluster
  proxima-bench stale --protocol mysql-prepared --write 10.0.0.1:3306 --connections same
      does each session read what it has written itself?
  proxima-bench stale --protocol mysql --write 10.0.0.1:3306 --connections pool --pool 16 --timeout 30s
      an application with a pool of connections: stop a server meanwhile, and see what is lost or done twice
  proxima-bench stale --protocol mysql --write 10.0.0.1:3306 --as tables --keys 8
      is a change of a schema seen by SHOW?"
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
    /// The protocol of all addresses: memcached, mysql or mysql-prepared
    #[arg(long, value_enum, default_value_t)]
    pub(super) protocol: Protocol,
    /// How MySQL stores a version
    #[arg(long = "as", value_enum, default_value_t)]
    #[serde(rename = "as")]
    pub(super) place: Place,
    /// The connections that requests take
    #[arg(long, value_enum, default_value_t)]
    pub(super) connections: Connections,
    /// Connections to each address with --connections pool; 8 unless it is said
    #[arg(
        long,
        default_value_if("connections", "pool", "8"),
        value_parser = value_parser!(u32).range(1..=10_000)
    )]
    pub(super) pool: Option<u32>,
    /// Every write goes to all addresses of --write
    #[arg(long)]
    pub(super) write_all: bool,
    /// How many keys; fewer are written more often
    #[arg(long, default_value_t = 100, value_parser = value_parser!(u32).range(1..=100_000))]
    pub(super) keys: u32,
    /// Writers, each with its own keys
    #[arg(long, default_value_t = 4, value_parser = value_parser!(u32).range(1..=1_000))]
    pub(super) writers: u32,
    /// Readers of all keys; there are none with --connections same
    #[arg(
        long,
        default_value = "8",
        default_value_if("connections", "same", None),
        value_parser = value_parser!(u32).range(1..=1_000)
    )]
    pub(super) readers: Option<u32>,
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

/// The connections that requests take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Connections {
    /// Each client has its own: writers write, and readers read
    #[default]
    Own,
    /// Each client writes and reads its own keys on one
    Same,
    /// All clients share some
    Pool,
}

/// What a version of MySQL is stored in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Place {
    /// A row, which counts the writes to it
    #[default]
    Rows,
    /// The comment of a table, written by ALTER TABLE and read by SHOW CREATE TABLE
    Tables,
}

/// What keeps the versions of a run.
#[derive(Clone, Copy)]
pub(super) enum Store {
    Memcached,
    Rows,
    Tables,
}

impl Options {
    /// Refuses what cannot be run.
    pub(super) fn check(&self) -> Result<()> {
        ensure!(
            self.writers <= self.keys,
            "each of the --writers needs a key of its own"
        );
        ensure!(
            self.protocol != Protocol::Redis,
            "versions are written and read in the protocols memcached, mysql and mysql-prepared"
        );
        ensure!(
            !self.prefix.contains(['\'', '\\', '`']) || !self.protocol.is_mysql(),
            "a --prefix of MySQL has no quote, no backquote and no backslash"
        );
        ensure!(
            self.pool.is_none() || self.connections == Connections::Pool,
            "--pool is the size of the pool of --connections pool"
        );
        if self.connections == Connections::Same {
            ensure!(
                self.readers.is_none() && self.read.is_empty(),
                "with --connections same the writers read where they have written: there is no --read and no \
                 --readers"
            );
        }
        if self.place == Place::Tables {
            ensure!(
                self.protocol == Protocol::Mysql,
                "--as tables needs --protocol mysql: its statements are texts"
            );
            ensure!(
                self.value_size <= LONGEST_COMMENT,
                "a --value-size above {LONGEST_COMMENT} does not fit the comment of a table"
            );
            ensure!(
                self.prefix.len() <= LONGEST_TABLE_PREFIX,
                "a --prefix of tables has at most {LONGEST_TABLE_PREFIX} characters"
            );
        }
        ensure!(!self.timeout.is_zero(), "--timeout must be above 0");
        ensure!(
            self.ttl.subsec_nanos() == 0 && self.ttl <= LONGEST_TTL,
            "--ttl must be whole seconds, at most 30 days"
        );
        Ok(())
    }

    /// Whether reads and writes are executions of prepared statements.
    pub(super) fn is_prepared(&self) -> bool {
        self.protocol == Protocol::MysqlPrepared
    }

    /// What keeps the versions.
    pub(super) const fn store(&self) -> Store {
        match self.place {
            _ if !self.protocol.is_mysql() => Store::Memcached,
            Place::Rows => Store::Rows,
            Place::Tables => Store::Tables,
        }
    }

    /// All addresses once, those of writes first.
    pub(super) fn addresses(&self) -> Vec<SocketAddr> {
        let mut all = Vec::new();
        for address in self.write.iter().chain(&self.read) {
            if !all.contains(address) {
                all.push(*address);
            }
        }
        all
    }

    /// The keys of the writer with this number.
    pub(super) fn keys_of(&self, writer: u32) -> impl Iterator<Item = u32> + Clone + use<> {
        (writer..self.keys).step_by(self.writers as usize)
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
