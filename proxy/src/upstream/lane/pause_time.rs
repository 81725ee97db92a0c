//! The time for which a lane may be paused, as it is used up and regained.

use crate::micros::Micros;

/// The time for which a lane was paused while others waited behind the reply.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::upstream) struct PauseTime {
    /// Time used up when `changed` was last set.
    spent: Micros,
    /// The time at which the lane was last paused or resumed.
    changed: Micros,
}

impl PauseTime {
    /// The time used up shrinks by one microsecond per this many microseconds in which the lane is not
    /// paused.
    const REGAINED: u64 = 4;

    /// The lane is paused.
    pub(in crate::upstream) fn begin(&mut self, now: Micros) {
        self.spent = self.unregained_at(now);
        self.changed = now;
    }

    /// Time used up and not regained; for a lane that is not paused now.
    pub(in crate::upstream) fn unregained_at(&self, now: Micros) -> Micros {
        self.spent - (now - self.changed) / Self::REGAINED
    }

    /// The lane is resumed. `behind`: since when the first of the other requests has waited.
    pub(in crate::upstream) fn end(&mut self, now: Micros, behind: Option<Micros>) {
        self.spent = self.spent(now, behind);
        self.changed = now;
    }

    /// Time used up; for a lane that is paused now.
    pub(in crate::upstream) fn spent(&self, now: Micros, behind: Option<Micros>) -> Micros {
        self.spent + behind.map_or(Micros::ZERO, |behind| now - self.changed.max(behind))
    }
}

#[cfg(test)]
mod tests {
    use super::{Micros, PauseTime};

    const TIMEOUT: Micros = Micros::secs(1);

    #[test]
    fn slow_readers_one_after_the_other_delay_a_request_by_half_its_time_out_at_most() {
        for rest in [0, 1_000, 50_000, 200_000] {
            let (mut pause, mut now, mut delayed) = (PauseTime::default(), TIMEOUT, Micros::ZERO);
            let sent = now;
            while now - sent < TIMEOUT {
                if pause.unregained_at(now) >= TIMEOUT / 4 {
                    now += Micros(rest.max(100));
                    continue;
                }
                pause.begin(now);
                while pause.spent(now, Some(sent)) <= TIMEOUT / 4 {
                    now += Micros(100);
                    delayed += Micros(100);
                }
                pause.end(now, Some(sent));
                now += Micros(rest.max(100));
            }
            assert!(delayed <= TIMEOUT / 2, "{delayed:?} with {rest} between them");
        }
    }

    #[test]
    fn lane_that_no_request_waits_for_is_paused_at_no_cost() {
        let mut pause = PauseTime::default();
        pause.begin(Micros::ZERO);
        pause.end(TIMEOUT, None);
        pause.begin(TIMEOUT);
        assert_eq!(pause.spent(TIMEOUT, Some(Micros::ZERO)), Micros::ZERO);
        assert_eq!(
            pause.spent(TIMEOUT + Micros(5), Some(TIMEOUT + Micros(2))),
            Micros(3)
        );
    }
}
