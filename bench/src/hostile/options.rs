//! The command line of `proxima-bench hostile`.

use std::{net::SocketAddr, time::Duration};

use anyhow::{Result, ensure};
use clap::{Args, ValueEnum, value_parser};
use serde::Serialize;

use super::attack::Attack;
use crate::{
    net::look_up,
    output::{Output, as_optional_seconds, as_seconds},
    protocol::Protocol,
    session::prefix,
};

/// Attack a memcached, a Redis or a proxy as hostile clients do, and see what its other clients notice
///
/// While the chosen attacks last, well-behaved clients set, read, delete and count keys of their own, one
/// batch of up to eight requests at a time. Every reply is checked: is it the reply to this request, in its
/// order, and the value that was written last, byte for byte? And it is timed, from the moment its batch was
/// sent.
///
/// A run fails when a well-behaved client gets
///
/// * a wrong reply: of another request or key, an older value than was acknowledged, bytes that nobody asked
///   for;
///
/// * a late reply: later than --timeout, not counting the time in which the machine itself stood still;
///
/// * a refusal (SERVER_ERROR, or an error of Redis), or its connection is closed; with --no-misses also when what it set is gone;
///
/// or when a new client is not served within 3 s of the end of the attacks; with --pid also when that process
/// ends, or takes more memory than --rss-limit.
///
/// How long the machine stands still is measured: a thread that sleeps 5 ms notes how much longer it slept;
/// with --pid the time in which that process was ready and did not get a processor counts as well, with
/// --control the time that a request directly to a memcached behind the proxy took. What of this falls into
/// the time of a late reply is taken off it, and 100 ms are allowed beyond --timeout. The report has both
/// figures.
///
/// All attacks run at once, or --in-turn one after the other. They store values under keys that begin with a
/// tilde and, by smuggling, try to read them in others' places. Do not run this where anything depends on the
/// server.
///
/// Exit code: 0; 1 when the run failed as above; 2 when it could not be made, or has shown nothing.
#[derive(Args, Clone, Debug, Serialize)]
#[command(
    args_override_self = true,
    after_long_help = "Examples:
  proxima-bench hostile --address 127.0.0.1:11311
      all attacks at once, for 20 seconds
  proxima-bench hostile --address 127.0.0.1:11311 --attack slow-readers,stopped-readers --timeout 500ms
      do slow readers delay others by more than half a second?
  proxima-bench hostile --address 127.0.0.1:11311 --in-turn --duration 30s --json hostile.json
      each attack alone, for half a minute
  proxima-bench hostile --address 127.0.0.1:11311 --control 127.0.0.1:11211 --pid $(pidof proxima) --rss-limit 320
      with the noise of the machine and the memory of the proxy
  proxima-bench hostile --protocol redis --address 127.0.0.1:6380 --in-turn --duration 5s --most-delay 100ms
      does 1 MiB of any kind of request delay others by more than 100 ms?
  prlimit --nofile=128:128 proxima run --config proxima.yaml    and then    --attack connection-storm
      connections at the limit of descriptors"
)]
pub(crate) struct Options {
    /// What is attacked; a name is looked up once
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:11211", value_parser = look_up)]
    pub(super) address: SocketAddr,
    /// The protocol in which it is attacked
    #[arg(long, value_enum, default_value_t)]
    pub(super) protocol: Protocol,
    /// Which attacks; without it all of the protocol
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', value_enum)]
    pub(super) attack: Vec<Attack>,
    /// One attack after the other, each for --duration, rather than all at once
    #[arg(long)]
    pub(super) in_turn: bool,
    /// So many times the connections of each attack
    #[arg(long, default_value_t = 1, value_parser = value_parser!(u32).range(1..=20))]
    pub(super) strength: u32,
    /// Well-behaved clients
    #[arg(long, default_value_t = 20, value_parser = value_parser!(u32).range(1..=1_000))]
    pub(super) clients: u32,
    /// Time that a well-behaved client lets pass after the replies to a batch
    #[arg(long, value_parser = humantime::parse_duration, default_value = "20ms")]
    #[serde(rename = "pause_seconds", serialize_with = "as_seconds")]
    pub(super) pause: Duration,
    /// How long attacks last, as in 90s or 10m
    #[arg(long, value_parser = humantime::parse_duration, default_value = "20s")]
    #[serde(rename = "duration_seconds", serialize_with = "as_seconds")]
    pub(super) duration: Duration,
    /// No reply to a well-behaved client may take longer: the proxy's own time-out for its servers
    #[arg(long, value_parser = humantime::parse_duration, default_value = "1s")]
    #[serde(rename = "timeout_seconds", serialize_with = "as_seconds")]
    pub(super) timeout: Duration,
    /// An attack may make the longest wait of a well-behaved client, less the time in which the machine stood
    /// still, so much longer than it is in a quiet round, which then goes ahead
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    #[serde(rename = "most_delay_seconds", serialize_with = "as_optional_seconds")]
    pub(super) most_delay: Option<Duration>,
    /// A server behind the proxy, asked directly all the while: what is slow there is not the proxy's
    /// fault
    #[arg(long, value_name = "HOST:PORT", value_parser = look_up)]
    pub(super) control: Option<SocketAddr>,
    /// The attacked process, where it runs on this machine: its memory is measured, and how long it waits for
    /// a processor
    #[arg(long)]
    pub(super) pid: Option<u32>,
    /// The most resident memory that it may take
    #[arg(long, value_name = "MIB", requires = "pid")]
    pub(super) rss_limit: Option<u64>,
    /// A value that is gone is a failure: for servers with room for everything
    #[arg(long)]
    pub(super) no_misses: bool,
    /// Keys of the well-behaved clients begin with this
    #[arg(long, value_name = "TEXT", value_parser = prefix, default_value = "proxima-hostile:")]
    pub(super) prefix: String,
    #[command(flatten)]
    #[serde(skip)]
    pub(super) output: Output,
}

impl Options {
    /// Refuses options that cannot be run.
    pub(super) fn check(&self) -> Result<()> {
        ensure!(
            !self.protocol.is_mysql(),
            "attacks are made in the protocols memcached and redis"
        );
        ensure!(!self.timeout.is_zero(), "--timeout must be above 0");
        ensure!(!self.duration.is_zero(), "--duration must be above 0");
        for attack in &self.attack {
            ensure!(
                attack.is_made_in(self.protocol),
                "--attack {}: there is none in the protocol {}",
                attack.name(),
                self.protocol.name()
            );
        }
        Ok(())
    }

    /// The attacks of each round of the run. A quiet round has none.
    pub(super) fn rounds(&self) -> Vec<Vec<Attack>> {
        let mut chosen = self.attack.clone();
        if chosen.is_empty() {
            let all = Attack::value_variants().iter().copied();
            chosen = all.filter(|attack| attack.is_made_in(self.protocol)).collect();
        }
        let quiet = self.most_delay.map(|_| Vec::new());
        let attacked = if self.in_turn {
            chosen.into_iter().map(|attack| vec![attack]).collect()
        } else {
            vec![chosen]
        };
        quiet.into_iter().chain(attacked).collect()
    }
}
