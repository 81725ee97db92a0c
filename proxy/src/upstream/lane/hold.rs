//! The time for which a lane was held back, as it is used up and regained.

use crate::micros::Micros;

/// The time for which a lane was held back while others waited behind the reply.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::upstream) struct Hold {
    /// Time used up when `changed` was last set.
    spent: Micros,
    /// When the lane was last held back or released.
    changed: Micros,
}

impl Hold {
    /// The time used up shrinks by one microsecond per this many microseconds in which the lane is not held
    /// back.
    const REGAINED: u64 = 4;

    /// Starts to hold the lane back.
    pub(in crate::upstream) fn begin(&mut self, now: Micros) {
        self.spent = self.unregained_at(now);
        self.changed = now;
    }

    /// Time used up and not regained; for a lane that is not held back now.
    pub(in crate::upstream) fn unregained_at(&self, now: Micros) -> Micros {
        self.spent - (now - self.changed) / Self::REGAINED
    }

    /// Releases the lane. `behind`: since when the first of the other requests has waited.
    pub(in crate::upstream) fn end(&mut self, now: Micros, behind: Option<Micros>) {
        self.spent = self.spent(now, behind);
        self.changed = now;
    }

    /// Time used up; for a lane that is held back now.
    pub(in crate::upstream) fn spent(&self, now: Micros, behind: Option<Micros>) -> Micros {
        self.spent + behind.map_or(Micros::ZERO, |behind| now - self.changed.max(behind))
    }
}

#[cfg(test)]
mod tests {
    use super::{Hold, Micros};

    const TIMEOUT: Micros = Micros::secs(1);

    #[test]
    fn slow_readers_one_after_the_other_delay_a_request_by_half_its_time_out_at_most() {
        for rest in [0, 1_000, 50_000, 200_000] {
            let (mut hold, mut now, mut delayed) = (Hold::default(), TIMEOUT, Micros::ZERO);
            let sent = now;
            while now - sent < TIMEOUT {
                if hold.unregained_at(now) >= TIMEOUT / 4 {
                    now += Micros(rest.max(100));
                    continue;
                }
                hold.begin(now);
                while hold.spent(now, Some(sent)) <= TIMEOUT / 4 {
                    now += Micros(100);
                    delayed += Micros(100);
                }
                hold.end(now, Some(sent));
                now += Micros(rest.max(100));
            }
            assert!(delayed <= TIMEOUT / 2, "{delayed:?} with {rest} between them");
        }
    }

    #[test]
    fn a_lane_that_nobody_waits_for_is_held_at_no_cost() {
        let mut hold = Hold::default();
        hold.begin(Micros::ZERO);
        hold.end(TIMEOUT, None);
        hold.begin(TIMEOUT);
        assert_eq!(hold.spent(TIMEOUT, Some(Micros::ZERO)), Micros::ZERO);
        assert_eq!(
            hold.spent(TIMEOUT + Micros(5), Some(TIMEOUT + Micros(2))),
            Micros(3)
        );
    }
}
