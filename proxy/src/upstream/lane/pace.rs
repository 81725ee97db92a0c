//! The rate at which a large message moves.

use crate::micros::Micros;

/// The rate at which a large message moves.
#[derive(Clone, Copy, Debug)]
pub(in crate::upstream) struct Pace {
    /// The start of the current span.
    since: Micros,
    /// Bytes that moved in the current span.
    bytes: u64,
    /// The message hardly moved in the previous span, because of its client.
    pub(in crate::upstream) dawdles: bool,
}

impl Pace {
    /// The pace of a message that begins now.
    pub(in crate::upstream) fn since(now: Micros) -> Self {
        Self {
            since: now,
            bytes: 0,
            dawdles: false,
        }
    }

    #[inline]
    /// Counts bytes of the message that have moved.
    pub(in crate::upstream) fn moved(&mut self, bytes: u64) {
        self.bytes += bytes;
    }

    /// Ends the current span if it has lasted `span`. Returns whether fewer than `least` bytes moved in it.
    pub(in crate::upstream) fn stalls(&mut self, now: Micros, span: Micros, least: u64) -> bool {
        if now - self.since <= span {
            return false;
        }
        let is_slow = self.bytes < least;
        (self.since, self.bytes) = (now, 0);
        is_slow
    }

    /// Ends the current span if it has lasted `span`. `rate`: the fewest bytes a second.
    pub(in crate::upstream) fn measure(
        &mut self,
        now: Micros,
        span: Micros,
        rate: u64,
        waits_for_client: bool,
    ) {
        let passed = now - self.since;
        if passed >= span {
            let expected = u128::from(rate) * u128::from(passed.0) / 1_000_000;
            self.dawdles = waits_for_client && u128::from(self.bytes) < expected;
            (self.since, self.bytes) = (now, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Micros, Pace};

    #[test]
    fn only_an_awaited_message_that_hardly_moves_is_slow() {
        for (bytes, waited_for, dawdles) in [(99, true, true), (100, true, false), (0, false, false)] {
            let mut pace = Pace::since(Micros::ZERO);
            pace.moved(bytes);
            pace.measure(Micros(100_000), Micros(100_000), 1000, waited_for);
            assert_eq!(pace.dawdles, dawdles, "{bytes} {waited_for}");
            pace.measure(Micros(100_001), Micros(100_000), 1000, false);
            assert_eq!(pace.dawdles, dawdles, "the next span has only begun");
        }
    }
}
