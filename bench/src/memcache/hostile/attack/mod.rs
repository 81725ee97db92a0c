//! The attacks: one file each, which says what one of its connections does until the round is over.

mod connection_storm;
mod floods;
mod garbage;
mod ground;
mod half_requests;
mod multi_gets;
mod readers;
mod slow_writers;
mod smuggling;

pub(super) use ground::{Deeds, Done, Ground};

use clap::ValueEnum;
use serde::Serialize;

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
}

impl Attack {
    /// Its connections, or for a storm who opens them.
    pub(super) fn attackers(self) -> u32 {
        match self {
            Self::SlowReaders => 40,
            Self::StoppedReaders | Self::SlowLines => 20,
            Self::SlowUploads => 12,
            Self::HalfRequests => 150,
            Self::ManyKeys | Self::RepeatedKeys | Self::ConnectionStorm => 4,
            Self::TinyKeys => 2,
            Self::Floods => 8,
            Self::Garbage | Self::Smuggling => 10,
        }
    }

    /// Runs attacker `number` until the round is over.
    pub(super) fn run(self, ground: &Ground<'_>, number: u32) {
        match self {
            Self::SlowReaders => readers::slow(ground, number),
            Self::StoppedReaders => readers::stopped(ground, number),
            Self::SlowUploads => slow_writers::uploads(ground, number),
            Self::SlowLines => slow_writers::lines(ground, number),
            Self::HalfRequests => half_requests::run(ground, number),
            Self::ManyKeys => multi_gets::many(ground, number),
            Self::TinyKeys => multi_gets::tiny(ground),
            Self::RepeatedKeys => multi_gets::repeated(ground),
            Self::Floods => floods::run(ground, number),
            Self::ConnectionStorm => connection_storm::run(ground),
            Self::Garbage => garbage::run(ground, number),
            Self::Smuggling => smuggling::run(ground, number),
        }
    }

    /// The name on the command line.
    pub(super) fn name(self) -> String {
        self.to_possible_value()
            .map_or_else(String::new, |value| value.get_name().to_owned())
    }
}
