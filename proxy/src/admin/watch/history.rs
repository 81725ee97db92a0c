//! The last ten minutes, as points of lines.

use std::{collections::VecDeque, time::Duration};

use serde::Serialize;

use super::latency::rounded;

/// Time between two points.
const EVERY: Duration = Duration::from_secs(5);
/// Points that are kept: ten minutes.
const KEPT: usize = 120;

/// What a line has at one time.
#[derive(Clone, Copy, Default)]
pub(super) struct Point {
    pub(super) requests: f64,
    pub(super) hit_ratio: Option<f64>,
    pub(super) p99_us: Option<f64>,
    pub(super) errors: f64,
    pub(super) clients: f64,
    pub(super) rss_bytes: Option<u64>,
    pub(super) descriptors: Option<usize>,
}

/// The points of the last ten minutes, the newest last. `None`: nobody watched then.
#[derive(Default)]
pub(super) struct History {
    points: VecDeque<Option<Point>>,
    until_ms: u64,
}

/// The lines of all points.
#[derive(Serialize)]
pub(super) struct Lines {
    every_ms: u64,
    until_ms: u64,
    requests: Vec<Option<f64>>,
    hit_ratio: Vec<Option<f64>>,
    p99_us: Vec<Option<f64>>,
    errors: Vec<Option<f64>>,
    clients: Vec<Option<f64>>,
    rss_bytes: Vec<Option<u64>>,
    descriptors: Vec<Option<usize>>,
}

impl History {
    /// Takes the point of this time, in milliseconds since 1970, if it is time for one.
    pub(super) fn add(&mut self, now_ms: u64, point: Point) {
        let every = EVERY.as_millis() as u64;
        let slot = now_ms / every * every;
        if slot <= self.until_ms {
            return;
        }
        let missed = (slot - self.until_ms) / every - 1;
        for _ in 0..missed.min(KEPT as u64) {
            self.push(None);
        }
        self.push(Some(point));
        self.until_ms = slot;
    }

    fn push(&mut self, point: Option<Point>) {
        if self.points.len() == KEPT {
            self.points.pop_front();
        }
        // Where nobody has watched before, nothing is missing.
        if point.is_some() || !self.points.is_empty() {
            self.points.push_back(point);
        }
    }

    fn line<T>(&self, of: fn(&Point) -> Option<T>) -> Vec<Option<T>> {
        let points = self.points.iter();
        points.map(|point| point.as_ref().and_then(of)).collect()
    }

    pub(super) fn lines(&self) -> Lines {
        Lines {
            every_ms: EVERY.as_millis() as u64,
            until_ms: self.until_ms,
            requests: self.line(|point| Some(rounded(point.requests))),
            hit_ratio: self.line(|point| point.hit_ratio.map(|ratio| (ratio * 1000.0).round() / 1000.0)),
            p99_us: self.line(|point| point.p99_us),
            errors: self.line(|point| Some(rounded(point.errors))),
            clients: self.line(|point| Some(point.clients)),
            rss_bytes: self.line(|point| point.rss_bytes),
            descriptors: self.line(|point| point.descriptors),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{History, KEPT, Point};

    #[test]
    fn points_are_five_seconds_apart_and_those_of_ten_minutes() {
        let mut history = History::default();
        let mut add = |ms: u64| {
            history.add(
                ms,
                Point {
                    requests: ms as f64,
                    ..Point::default()
                },
            );
            history.lines()
        };
        assert_eq!(add(10_000).requests, [Some(10_000.0)]);
        assert_eq!(add(14_999).requests, [Some(10_000.0)]);
        assert_eq!(add(15_001).requests, [Some(10_000.0), Some(15_001.0)]);
        assert_eq!(
            add(30_000).requests[1..],
            [Some(15_001.0), None, None, Some(30_000.0)]
        );
        let lines = add(10_000_000);
        assert_eq!((lines.requests.len(), lines.until_ms), (KEPT, 10_000_000));
        assert_eq!(lines.requests.iter().flatten().count(), 1);
        assert_eq!(lines.hit_ratio.iter().flatten().count(), 0);
    }
}
