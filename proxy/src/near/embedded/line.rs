//! Numbers on a line, and the times they mean.

use proxima_wire::memcache::LONGEST_TTL;

/// Now, on the two clocks that an expiry time may mean.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    /// Milliseconds on the store's clock.
    pub(super) now: u64,
    /// Seconds since 1970.
    pub(super) unix: u64,
}

impl Clock {
    /// Whole seconds on the store's clock: memcached's time passes in whole seconds.
    pub(super) const fn second(self) -> u64 {
        self.now / 1000
    }

    /// memcached's expiry time as the store's: 0 is never, a negative one long ago, up to 30 days from now on, beyond
    /// that since 1970.
    pub(super) fn expires(self, ttl: i32) -> u64 {
        let (second, unix, ttl) = (self.second() as i64, self.unix as i64, i64::from(ttl));
        let at = match ttl {
            0 => return 0,
            ..0 => 0,
            1..=LONGEST_TTL => second + ttl,
            _ => second + ttl - unix,
        };
        // 0 would be never.
        (at * 1000).max(1) as u64
    }

    /// Seconds that are left until `expires`; none = for ever. Wraps below 0 as memcached's does.
    pub(super) fn ttl(self, expires: u64) -> Option<u32> {
        (expires != 0).then(|| (expires / 1000).wrapping_sub(self.second()) as u32)
    }
}

/// Appends a number.
pub(super) fn push(out: &mut Vec<u8>, number: impl itoa::Integer) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}
