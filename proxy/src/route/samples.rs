//! Samples of requests, for those who watch: the workers put them, the control thread takes them.
#![allow(
    clippy::disallowed_types,
    reason = "workers only try to put; the control thread alone takes, and it alone waits for the lock"
)]

use std::{
    net::IpAddr,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU32, AtomicU64, Ordering::Relaxed},
        mpsc::{Receiver, SyncSender, sync_channel},
    },
};

use proxima_wire::message::{Class, Outcome};

use crate::{micros::Micros, random::Random};

/// Samples that may wait to be taken.
const WAITING: usize = 4096;
/// The longest key of a sample, in bytes. Requests for longer ones are passed over.
const LONGEST: usize = 1024;
/// One request in so many is a sample where there are many.
const EVERY: u32 = 64;

/// A request that was seen, and how it has ended.
#[derive(Clone, Debug)]
pub struct Sample {
    /// The number of its listener.
    pub listener: u16,
    /// The client's address; `None`: it is not known, or not there any more.
    pub client: Option<IpAddr>,
    /// The name of its command.
    pub command: &'static str,
    /// What it does to the data.
    pub class: Class,
    /// Its key.
    pub key: Box<[u8]>,
    /// How it has ended.
    pub outcome: Outcome,
    /// The time from its way into the tree to its answer.
    pub took: Micros,
    /// The number of requests that it stands for.
    pub weight: u32,
}

/// Where samples wait.
#[derive(Debug)]
pub struct Samples {
    to: SyncSender<Sample>,
    from: Mutex<Receiver<Sample>>,
    every: AtomicU32,
    lost: AtomicU64,
}

impl Default for Samples {
    fn default() -> Self {
        let (to, from) = sync_channel(WAITING);
        Self {
            to,
            from: Mutex::new(from),
            every: AtomicU32::new(EVERY),
            lost: AtomicU64::new(0),
        }
    }
}

impl Samples {
    /// Decides by chance whether a request for this key is a sample.
    pub(in crate::route) fn wants(&self, key: &[u8], random: &mut Random) -> bool {
        let every = self.every.load(Relaxed) as usize;
        (every <= 1 || random.below(every) == 0) && key.len() <= LONGEST
    }

    /// Puts a sample. Where there is no room, it is lost, and counted.
    pub(in crate::route) fn put(&self, sample: Sample) {
        if self.to.try_send(sample).is_err() {
            self.lost.fetch_add(1, Relaxed);
        }
    }

    /// The number of requests that a sample of now stands for.
    pub(in crate::route) fn weight(&self) -> u32 {
        self.every.load(Relaxed).max(1)
    }

    /// Takes those that wait, and how many were lost since. One request in fewer is a sample from now on where
    /// there were fewer than `few`, and one in more, up to 64, where there were more than four times as many.
    pub fn take(&self, few: usize) -> (Vec<Sample>, u64) {
        let from = self.from.lock().unwrap_or_else(PoisonError::into_inner);
        let taken: Vec<Sample> = from.try_iter().take(WAITING).collect();
        let every = self.every.load(Relaxed);
        if taken.len() < few {
            self.every.store((every / 2).max(1), Relaxed);
        } else if taken.len() > 4 * few {
            self.every.store((every * 2).min(EVERY), Relaxed);
        }
        (taken, self.lost.swap(0, Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use proxima_wire::message::{Class, Outcome};

    use super::{EVERY, LONGEST, Sample, Samples, WAITING};
    use crate::{micros::Micros, random::Random};

    fn put(samples: &Samples, count: usize) {
        for _ in 0..count {
            samples.put(Sample {
                listener: 0,
                client: None,
                command: "get",
                class: Class::Read,
                key: b"k".as_slice().into(),
                outcome: Outcome::Found,
                took: Micros(5),
                weight: samples.weight(),
            });
        }
    }

    #[test]
    fn few_requests_are_all_samples_and_of_many_one_in_sixty_four() {
        let (samples, mut random) = (Samples::default(), Random(7));
        let seen = |samples: &Samples, random: &mut Random| {
            (0..64_000).filter(|_| samples.wants(b"k", random)).count()
        };
        assert!((500..2000).contains(&seen(&samples, &mut random)));
        for _ in 0..7 {
            samples.take(50);
        }
        assert_eq!((samples.weight(), seen(&samples, &mut random)), (1, 64_000));
        for _ in 0..7 {
            put(&samples, 300);
            samples.take(50);
        }
        assert_eq!(samples.weight(), EVERY);
        assert!(!samples.wants(&[b'k'; LONGEST + 1], &mut random));
    }

    #[test]
    fn samples_that_nobody_takes_are_lost_and_counted() {
        let samples = Samples::default();
        put(&samples, WAITING + 7);
        let (taken, lost) = samples.take(1);
        assert_eq!((taken.len(), lost), (WAITING, 7));
        assert_eq!(samples.take(1).1, 0);
    }
}
