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

use crate::{members::MemberId, micros::Micros, random::Random};

/// Samples that may wait to be taken: each costs the control thread a walk through the tree, and it has other
/// things to do.
const WAITING: usize = 256;
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
    /// Its key; of a request that is a text, that without its values.
    pub key: Box<[u8]>,
    /// Of a request that is a text, the member that has answered it.
    pub member: Option<MemberId>,
    /// How it has ended.
    pub outcome: Outcome,
    /// The time from its way into the tree to its answer.
    pub took: Micros,
    /// The number of requests that it stands for.
    pub weight: f64,
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
    pub(in crate::route) fn weight(&self) -> f64 {
        f64::from(self.every.load(Relaxed).max(1))
    }

    /// Forgets what is left of an earlier time, and begins with few samples: there may be many requests.
    pub fn begin(&self) {
        let _ = self.take(0);
        self.every.store(EVERY, Relaxed);
    }

    /// Takes those that wait. One request in fewer is a sample from now on where there were fewer than `few`, and
    /// one in more, up to 64, where there were more than four times as many. Those that are taken stand for those
    /// that were lost, too.
    pub fn take(&self, few: usize) -> Vec<Sample> {
        let from = self.from.lock().unwrap_or_else(PoisonError::into_inner);
        let mut taken: Vec<Sample> = from.try_iter().take(WAITING).collect();
        let lost = self.lost.swap(0, Relaxed) as f64;
        let every = self.every.load(Relaxed);
        if taken.len() < few {
            self.every.store((every / 2).max(1), Relaxed);
        } else if taken.len() > 4 * few {
            self.every.store((every * 2).min(EVERY), Relaxed);
        }
        let more = 1.0 + lost / taken.len().max(1) as f64;
        taken.iter_mut().for_each(|sample| sample.weight *= more);
        taken
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
                member: None,
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
        assert_eq!((samples.weight(), seen(&samples, &mut random)), (1.0, 64_000));
        for _ in 0..7 {
            put(&samples, 250);
            samples.take(50);
        }
        assert_eq!(samples.weight(), f64::from(EVERY));
        assert!(!samples.wants(&[b'k'; LONGEST + 1], &mut random));
    }

    #[test]
    fn samples_for_which_there_is_no_room_are_told_by_the_weight_of_the_others() {
        let samples = Samples::default();
        put(&samples, 3 * WAITING);
        let weight = |samples: &Samples| samples.take(1).iter().map(|sample| sample.weight).sum::<f64>();
        assert_eq!(weight(&samples), 3.0 * WAITING as f64 * f64::from(EVERY));
        assert_eq!(weight(&samples), 0.0);
    }

    #[test]
    fn what_is_left_of_an_earlier_time_is_not_told() {
        let samples = Samples::default();
        (0..7).for_each(|_| _ = samples.take(50));
        put(&samples, 5);
        samples.begin();
        assert_eq!((samples.take(0).len(), samples.weight()), (0, f64::from(EVERY)));
    }
}
