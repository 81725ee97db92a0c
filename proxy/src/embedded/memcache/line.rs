//! Numbers on a line, and the times that they stand for.

use proxima_wire::memcache::LONGEST_TTL;

/// The present, on the two clocks to which an expiry time may refer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    /// Milliseconds on the store's clock.
    pub(super) now: u64,
    /// Seconds since 1970.
    pub(super) unix: u64,
}

impl Clock {
    /// Whole seconds on the store's clock. memcached's time passes in whole seconds.
    pub(super) const fn second(self) -> u64 {
        self.now / 1000
    }

    /// Converts memcached's expiry time to the store's. 0 means never, and a negative time has passed
    /// already. Up to 30 days it counts from now, beyond that from 1970.
    pub(super) fn expires(self, ttl: i32) -> u64 {
        let (second, unix, ttl) = (self.second() as i64, self.unix as i64, i64::from(ttl));
        let at = match ttl {
            0 => return 0,
            ..0 => 0,
            1..=LONGEST_TTL => second + ttl,
            _ => second + ttl - unix,
        };
        // A time of 0 would mean never.
        (at * 1000).max(1) as u64
    }

    /// Seconds that are left until `expires`. `None` if it never comes. The number wraps below 0 as
    /// memcached's does.
    pub(super) fn ttl(self, expires: u64) -> Option<u32> {
        (expires != 0).then(|| (expires / 1000).wrapping_sub(self.second()) as u32)
    }
}

/// Appends a number.
pub(super) fn push(out: &mut Vec<u8>, number: impl itoa::Integer) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}
