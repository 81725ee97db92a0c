//! Quantiles of the last seconds, out of the histograms that the metrics have.

use serde::Serialize;

use crate::metrics::{BUCKETS, Latency};

/// What one histogram has counted in a time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Quantiles {
    count: u64,
    mean_us: f64,
    p50_us: f64,
    p99_us: f64,
    p999_us: f64,
}

impl Quantiles {
    /// Of what was counted between two looks. `None`: nothing was.
    pub(super) fn between(before: Option<&Latency>, now: &Latency) -> Option<Self> {
        let none = Latency::default();
        let before = before.unwrap_or(&none);
        let mut counts = [0; BUCKETS];
        for (count, (now, before)) in counts.iter_mut().zip(now.buckets.iter().zip(before.buckets)) {
            *count = now.saturating_sub(before);
        }
        let count: u64 = counts.iter().sum();
        let sum = now.sum.saturating_sub(before.sum);
        (count > 0).then(|| Self {
            count,
            mean_us: rounded(sum as f64 / count as f64),
            p50_us: rounded(quantile(&counts, 0.5 * count as f64)),
            p99_us: rounded(quantile(&counts, 0.99 * count as f64)),
            p999_us: rounded(quantile(&counts, 0.999 * count as f64)),
        })
    }

    pub(super) fn p99_us(&self) -> f64 {
        self.p99_us
    }
}

/// The time, in µs, that so many of the counted ones do not exceed. It lies in the bucket that has it as far
/// from its lower limit as if the bucket's times were spread evenly, as Prometheus's `histogram_quantile` has
/// it; in the open bucket, at its lower limit.
fn quantile(counts: &[u64; BUCKETS], rank: f64) -> f64 {
    let mut below = 0.0;
    for (bucket, &count) in counts.iter().enumerate() {
        let count = count as f64;
        if count > 0.0 && below + count >= rank {
            let low = if bucket == 0 { 0.0 } else { limit(bucket - 1) };
            let part = if bucket + 1 == BUCKETS {
                0.0
            } else {
                (rank - below) / count
            };
            return low + part * (limit(bucket) - low);
        }
        below += count;
    }
    limit(BUCKETS - 2)
}

/// The upper limit of a bucket, in µs.
fn limit(bucket: usize) -> f64 {
    (1u64 << bucket) as f64
}

/// A tenth is enough for what is told; the document then changes less often.
pub(super) fn rounded(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::Quantiles;
    use crate::metrics::Latency;

    fn counted(times: &[(u64, usize)]) -> Latency {
        let mut latency = Latency::default();
        for &(micros, count) in times {
            (0..count).for_each(|_| latency.record(micros));
        }
        latency
    }

    #[test]
    fn quantiles_are_of_what_came_since_the_look_before() {
        let before = counted(&[(5_000_000, 100)]);
        let mut now = counted(&[(5_000_000, 100)]);
        assert_eq!(Quantiles::between(Some(&before), &now), None);
        (0..990).for_each(|_| now.record(100));
        (0..10).for_each(|_| now.record(3000));
        let found = Quantiles::between(Some(&before), &now).unwrap();
        assert_eq!((found.count, found.mean_us), (1000, 129.0));
        // The buckets are 64 to 128 µs, and 2,048 to 4,096 µs.
        assert!((64.0..=128.0).contains(&found.p50_us), "{found:?}");
        assert_eq!(found.p99_us, 128.0);
        assert!((2048.0..=4096.0).contains(&found.p999_us), "{found:?}");
    }

    #[test]
    fn times_beyond_the_last_limit_are_told_as_that_limit() {
        let now = counted(&[(u64::MAX / 4, 3), (0, 1)]);
        let found = Quantiles::between(None, &now).unwrap();
        assert_eq!(found.p999_us, f64::from(1 << 24));
    }
}
