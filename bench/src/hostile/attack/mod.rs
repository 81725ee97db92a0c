//! The attacks: one file each, which says what one of its connections does until the round is over.

mod connection_storm;
mod context;
mod floods;
mod garbage;
mod half_requests;
mod large_requests;
mod multi_gets;
mod readers;
mod redis;
mod slow_writers;
mod smuggling;

pub(super) use context::{AttackContext, AttackCounters, Done};

use clap::ValueEnum;
use serde::Serialize;

use crate::protocol::Protocol;
use redis as requests;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Attack {
    /// 40 connections ask for 40 MB each, and take 2 KB of it every second
    SlowReaders,
    /// 20 connections ask for 40 MB each, and take nothing
    StoppedReaders,
    /// 12 connections send a value of 100 KB, one byte a second
    SlowUploads,
    /// 20 connections send a request line, one byte a second
    SlowLines,
    /// 150 connections send nearly 1 MB of a request without an end, or half a value, and fall silent
    HalfRequests,
    /// 4 connections ask for 10,000 keys at once, again and again
    ManyKeys,
    /// 2 connections ask for 524,000 keys of one byte at once, in a line of 1 MiB, again and again
    TinyKeys,
    /// 4 connections ask for the same value of 1 MB 10,000 times in one line, and read 6 MB/s of it
    RepeatedKeys,
    /// 4 connections send 90 MB of sets, 4 others as many gets of 60 KB, and read no reply for 5 s; again and
    /// again
    Floods,
    /// 600 connections at a time are opened at once, kept for a second, and dropped; again and again
    ConnectionStorm,
    /// 10 connections speak other protocols (binary memcached, TLS, HTTP, Redis, SSH), or nonsense
    Garbage,
    /// 10 connections send lines that a proxy and its servers may understand differently, with commands as
    /// values
    Smuggling,
    /// Redis: 2 connections send MGET with 100,000 keys, 1 MiB, again and again
    LargeMget,
    /// Redis: the same with MSET of 60,000 keys
    LargeMset,
    /// Redis: the same with DEL
    LargeDel,
    /// Redis: the same with EXISTS
    LargeExists,
    /// Redis: the same with EVAL, its 88,000 keys at one server
    LargeEval,
    /// Redis: the same with SINTER, its keys at one server
    LargeSinter,
    /// Redis: the same with WATCH, its keys at one server
    LargeWatch,
    /// Redis: the same with SUBSCRIBE, of 88,000 channels
    LargeSubscribe,
    /// Redis: 2 connections send a pipeline of 16 transactions of 64 KiB, again and again
    Transactions,
    /// Redis: 2 connections send a transaction with 40,000 commands, 1 MiB, again and again
    LargeTransaction,
    /// Redis: 2 connections send a pipeline of 50,000 SCAN and KEYS, 1 MiB, again and again
    Scans,
    /// Redis: 2 connections send a pipeline of 50,000 GET with keys of one byte, 1 MiB, again and again
    TinyGets,
    /// Redis: 2 connections send a pipeline of 150,000 inline commands, 1 MiB, again and again
    InlineCommands,
}

impl Attack {
    /// Whether it is made in this protocol.
    pub(crate) fn is_made_in(self, protocol: Protocol) -> bool {
        match self {
            Self::StoppedReaders | Self::HalfRequests | Self::Garbage => true,
            Self::SlowReaders
            | Self::SlowUploads
            | Self::SlowLines
            | Self::ManyKeys
            | Self::TinyKeys
            | Self::RepeatedKeys
            | Self::Floods
            | Self::ConnectionStorm
            | Self::Smuggling => protocol == Protocol::Memcached,
            _ => protocol == Protocol::Redis,
        }
    }

    /// Its connections, or for a storm who opens them.
    pub(super) fn attackers(self) -> u32 {
        match self {
            Self::SlowReaders => 40,
            Self::StoppedReaders | Self::SlowLines => 20,
            Self::SlowUploads => 12,
            Self::HalfRequests => 150,
            Self::ManyKeys | Self::RepeatedKeys | Self::ConnectionStorm => 4,
            Self::Floods => 8,
            Self::Garbage | Self::Smuggling => 10,
            // Those of large requests.
            _ => 2,
        }
    }

    /// Runs attacker `number` until the round is over.
    pub(super) fn run(self, context: &AttackContext<'_>, number: u32) {
        match self {
            Self::SlowReaders => readers::slow(context, number),
            Self::StoppedReaders => readers::stopped(context, number),
            Self::SlowUploads => slow_writers::uploads(context, number),
            Self::SlowLines => slow_writers::lines(context, number),
            Self::HalfRequests => half_requests::run(context, number),
            Self::ManyKeys => multi_gets::many(context, number),
            Self::TinyKeys => multi_gets::tiny(context),
            Self::RepeatedKeys => multi_gets::repeated(context),
            Self::Floods => floods::run(context, number),
            Self::ConnectionStorm => connection_storm::run(context),
            Self::Garbage => garbage::run(context, number),
            Self::Smuggling => smuggling::run(context, number),
            large => {
                if let Some(request) = requests::request(large) {
                    large_requests::run(context, &request);
                }
            }
        }
    }

    /// The name on the command line.
    pub(super) fn name(self) -> String {
        self.to_possible_value()
            .map_or_else(String::new, |value| value.get_name().to_owned())
    }
}
