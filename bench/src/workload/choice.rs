//! Which key is asked for next, and whether it is read or written.

use std::{fmt, str::FromStr};

use anyhow::{Context, Result, ensure};
use rand::{RngExt, SeedableRng, rngs::SmallRng};
use rand_distr::{Distribution, Zipf};
use serde::{Deserialize, Serialize};

/// How often each key is asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Popularity {
    /// Every key alike.
    Uniform,
    /// The n-th key in proportion to `1 / n^exponent`.
    Zipf(f64),
    /// Each in its turn, and after the last one the first again.
    InTurn,
}

/// The text names no popularity; the caller of the program has to correct it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BadPopularity {
    #[error("'{0}' is not an exponent; a number above 0 is, as in zipf:0.99")]
    Exponent(String),
    #[error("expected 'uniform', 'zipf', 'zipf:EXPONENT' or 'in-turn'")]
    Word,
}

impl FromStr for Popularity {
    type Err = BadPopularity;

    fn from_str(text: &str) -> Result<Self, BadPopularity> {
        match text.split_once(':') {
            None if text == "uniform" => Ok(Self::Uniform),
            None if text == "zipf" => Ok(Self::Zipf(0.99)),
            None if text == "in-turn" => Ok(Self::InTurn),
            Some(("zipf", exponent)) => match exponent.parse() {
                Ok(exponent) if exponent > 0.0 && f64::is_finite(exponent) => Ok(Self::Zipf(exponent)),
                _ => Err(BadPopularity::Exponent(exponent.to_owned())),
            },
            _ => Err(BadPopularity::Word),
        }
    }
}

impl fmt::Display for Popularity {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uniform => out.write_str("uniform"),
            Self::Zipf(exponent) => write!(out, "zipf:{exponent}"),
            Self::InTurn => out.write_str("in-turn"),
        }
    }
}

/// Sets to gets, as in `1:10`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct Mix {
    sets: u32,
    gets: u32,
}

impl Mix {
    /// Nothing is only read.
    pub(crate) const GETS: Self = Self { sets: 0, gets: 1 };

    pub(crate) fn is_sets_only(self) -> bool {
        self.gets == 0
    }

    pub(crate) fn is_gets_only(self) -> bool {
        self.sets == 0
    }
}

/// The text is no mix. The caller of the program, or the author of the file of results, has to correct it.
#[derive(Debug, thiserror::Error)]
#[error("expected SETS:GETS, as in 1:10, not both 0")]
pub(crate) struct BadMix;

impl FromStr for Mix {
    type Err = BadMix;

    fn from_str(text: &str) -> Result<Self, BadMix> {
        let parts = text
            .split_once(':')
            .and_then(|(sets, gets)| Some((sets.parse().ok()?, gets.parse().ok()?)));
        match parts {
            Some((0, 0)) | None => Err(BadMix),
            Some((sets, gets)) => Ok(Self { sets, gets }),
        }
    }
}

impl TryFrom<String> for Mix {
    type Error = BadMix;

    fn try_from(text: String) -> Result<Self, BadMix> {
        text.parse()
    }
}

impl From<Mix> for String {
    fn from(mix: Mix) -> Self {
        mix.to_string()
    }
}

impl fmt::Display for Mix {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}", self.sets, self.gets)
    }
}

/// One request to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Operation {
    /// Number of the key.
    pub(crate) key: u32,
    /// A set, or else a get.
    pub(crate) set: bool,
}

/// An endless, seeded sequence of operations.
///
/// Keys are random, unless each has its turn; sets stand at fixed distances, so that every stretch of `sets + gets` operations costs
/// the same.
pub(crate) struct Operations {
    random: SmallRng,
    choice: Choice,
    keys: u32,
    mix: Mix,
    position: u64,
}

enum Choice {
    Uniform,
    Zipf(Zipf<f64>),
    InTurn { next: u32 },
}

impl Operations {
    /// A sequence over the keys `0..keys`.
    pub(crate) fn new(keys: u32, popularity: Popularity, mix: Mix, seed: u64) -> Result<Self> {
        ensure!(keys > 0, "there must be at least one key");
        let choice = match popularity {
            Popularity::Uniform => Choice::Uniform,
            Popularity::InTurn => Choice::InTurn { next: 0 },
            Popularity::Zipf(exponent) => Choice::Zipf(
                Zipf::new(f64::from(keys), exponent)
                    .context("this Zipf distribution cannot be drawn from")?,
            ),
        };
        Ok(Self {
            random: SmallRng::seed_from_u64(seed),
            choice,
            keys,
            mix,
            position: 0,
        })
    }
}

impl Iterator for Operations {
    type Item = Operation;

    fn next(&mut self) -> Option<Operation> {
        let key = match &mut self.choice {
            Choice::Uniform => self.random.random_range(0..self.keys),
            Choice::Zipf(zipf) => (zipf.sample(&mut self.random) as u32).clamp(1, self.keys) - 1,
            Choice::InTurn { next } => std::mem::replace(next, (*next + 1) % self.keys),
        };
        let (sets, all) = (
            u64::from(self.mix.sets),
            u64::from(self.mix.sets) + u64::from(self.mix.gets),
        );
        // Spread evenly: a set wherever the count of sets that are due goes up.
        let set = self.position * sets / all != (self.position + 1) * sets / all;
        self.position = (self.position + 1) % all;
        Some(Operation { key, set })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(popularity: Popularity) -> Vec<usize> {
        let mut counts = vec![0; 100];
        let operations = Operations::new(100, popularity, "1:10".parse().unwrap(), 7).unwrap();
        operations
            .take(100_000)
            .for_each(|operation| counts[operation.key as usize] += 1);
        counts
    }

    #[test]
    fn the_mix_holds_in_every_stretch() {
        for (mix, stretch, sets) in [
            ("1:10", 11, 1),
            ("1:0", 5, 5),
            ("0:1", 5, 0),
            ("2:3", 5, 2),
            ("10:1", 11, 10),
        ] {
            let operations: Vec<Operation> =
                Operations::new(10, Popularity::Uniform, mix.parse().unwrap(), 1)
                    .unwrap()
                    .take(stretch * 20)
                    .collect();
            for part in operations.chunks(stretch) {
                assert_eq!(
                    part.iter().filter(|operation| operation.set).count(),
                    sets,
                    "{mix}"
                );
            }
        }
    }

    #[test]
    fn uniform_keys_are_level() {
        let counts = counts(Popularity::Uniform);
        assert!(
            counts.iter().all(|&count| (800..1_200).contains(&count)),
            "{counts:?}"
        );
    }

    #[test]
    fn each_key_has_its_turn() {
        let operations = Operations::new(3, Popularity::InTurn, Mix::GETS, 7).unwrap();
        let keys: Vec<u32> = operations.take(7).map(|operation| operation.key).collect();
        assert_eq!(keys, [0, 1, 2, 0, 1, 2, 0]);
    }

    #[test]
    fn zipf_keys_follow_the_law() {
        let counts = counts(Popularity::Zipf(1.0));
        // With exponent 1 over 100 keys the n-th has 1 / (n × H(100)), H(100) = 5.187.
        for (rank, count) in [(1, counts[0]), (2, counts[1]), (10, counts[9]), (100, counts[99])] {
            let expected = 100_000.0 / (f64::from(rank) * 5.187);
            assert!(
                (count as f64 / expected - 1.0).abs() < 0.25,
                "rank {rank}: {count}, expected {expected:.0}"
            );
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_sequence() {
        let sequence = |seed| -> Vec<Operation> {
            let mix = "1:10".parse().unwrap();
            Operations::new(1_000, Popularity::Zipf(0.99), mix, seed)
                .unwrap()
                .take(100)
                .collect()
        };
        assert_eq!(sequence(3), sequence(3));
        assert_ne!(sequence(3), sequence(4));
    }

    #[test]
    fn wrong_words_are_refused() {
        assert!("0:0".parse::<Mix>().is_err());
        assert!("1".parse::<Mix>().is_err());
        assert!("zipf:-1".parse::<Popularity>().is_err());
        assert!("gauss".parse::<Popularity>().is_err());
    }
}
