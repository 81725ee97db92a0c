//! A near cache before the servers of a lockstep run.

use anyhow::{Result, ensure};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::workload::Mix;

/// The state of the near cache while it is measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Near {
    /// There is none
    #[default]
    None,
    /// Its only rule is switched off
    Off,
    /// Every get finds a reply that is kept, and nothing reaches a server
    Hits,
    /// No key's reply is kept when its turn comes: that of a get is kept, and its time is over by then
    Misses,
    /// Every get is for a key that is never asked for again, and the memory is full of such keys
    Scan,
    /// Every set changes a key whose reply is kept
    Written,
}

/// A number of keys that do not fit into the smaller memory.
const MANY: usize = 20_000;

impl Near {
    /// The lines of Proxima's configuration before `route`, and the route that stands in its place.
    pub(crate) fn wrap(self, route: &str) -> (&'static str, String) {
        const LARGE: &str = "near: {memory: 256MiB}\n";
        const SMALL: &str = "near: {memory: 4MiB}\n";
        let (near, time) = match self {
            Self::None => return ("", route.to_owned()),
            Self::Off => (LARGE, "0s"),
            Self::Hits | Self::Written => (LARGE, "1h"),
            Self::Scan => (SMALL, "1h"),
            Self::Misses => (SMALL, "100ms"),
        };
        let rules = format!("[{{name: all, ttl: {time}, others: none}}]");
        (near, format!("{{near: {{child: {route}, rules: {rules}}}}}"))
    }

    /// Whether every key is read before it is measured, so that its reply is kept.
    pub(crate) fn keeps_all(self) -> bool {
        matches!(self, Self::Hits | Self::Written)
    }

    /// Refuses a run that cannot be kept in lockstep.
    ///
    /// # Errors
    /// This mix, or this number of keys with this many requests of a round and of each of the bursts.
    pub(crate) fn check(self, mix: Mix, keys: u32, batch: usize, burst: usize, bursts: usize) -> Result<()> {
        let keys = keys as usize;
        match self {
            Self::None | Self::Off => {}
            Self::Misses => ensure!(
                keys >= MANY && keys >= 20 * batch,
                "--near misses is measured with at least {MANY} keys, and 20 times as many as the {batch} requests of a \
                 round"
            ),
            Self::Scan => ensure!(
                mix.is_gets_only() && keys >= 2 * burst * bursts,
                "--near scan is measured with --mix 0:1, and --keys must be twice as many as the {} requests \
                 of all bursts",
                burst * bursts
            ),
            Self::Hits => ensure!(
                mix.is_gets_only() && keys.is_multiple_of(batch),
                "--near hits is measured with --mix 0:1, and --keys must be a multiple of the {batch} requests of a \
                 round"
            ),
            Self::Written => ensure!(
                mix.is_sets_only() && keys == burst,
                "--near written is measured with --mix 1:0, and --keys must be the {burst} requests of a burst"
            ),
        }
        Ok(())
    }
}
