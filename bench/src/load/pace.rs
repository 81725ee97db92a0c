//! The times of requests in the open loop.

use std::time::{Duration, Instant};

/// Requests at equal distances, dealt to the connections of one thread in turn.
///
/// The n-th request of connection `c` of `C` is due at `start + (n × C + c) × interval`: nothing need be
/// remembered about requests that are late but their number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    start: Instant,
    interval: f64,
    connections: u64,
}

impl Pace {
    /// `rate` requests per second in all over `connections` from `start` on.
    pub(super) fn new(start: Instant, rate: f64, connections: usize) -> Self {
        Self {
            start,
            interval: 1.0 / rate,
            connections: connections as u64,
        }
    }

    /// The number of requests that were due by `now`.
    pub(super) fn due(&self, now: Instant) -> u64 {
        now.checked_duration_since(self.start)
            .map_or(0, |age| (age.as_secs_f64() / self.interval) as u64 + 1)
    }

    /// The time of request `number` of all.
    pub(super) fn time(&self, number: u64) -> Instant {
        self.start + Duration::from_secs_f64(number as f64 * self.interval)
    }

    /// The time of request `number` of `connection`.
    pub(super) fn time_on(&self, connection: usize, number: u64) -> Instant {
        self.time(number * self.connections + connection as u64)
    }

    /// The connection of request number `number` of all.
    pub(super) fn connection(&self, number: u64) -> usize {
        (number % self.connections) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_due_at_equal_distances() {
        let start = Instant::now();
        let pace = Pace::new(start, 1_000.0, 4);
        assert_eq!(pace.due(start), 1);
        assert_eq!(pace.due(start + Duration::from_micros(10_500)), 11);
        assert_eq!(pace.time(7), start + Duration::from_millis(7));
    }

    #[test]
    fn every_request_has_one_connection_and_one_time() {
        let pace = Pace::new(Instant::now(), 250.0, 3);
        let mut of_connection = [0; 3];
        for number in 0..100 {
            let connection = pace.connection(number);
            assert_eq!(
                pace.time_on(connection, of_connection[connection]),
                pace.time(number)
            );
            of_connection[connection] += 1;
        }
    }

    #[test]
    fn nothing_is_due_before_the_start() {
        let now = Instant::now();
        assert_eq!(Pace::new(now + Duration::from_secs(1), 1_000.0, 1).due(now), 0);
    }
}
