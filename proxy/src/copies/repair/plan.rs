//! The steps of a repair, which depend on the life (the incarnation) that the server is in. A flush drops
//! everything, so it is sent in that life only, and only where deletes of single keys do not suffice.

use std::{
    fmt,
    time::{Duration, Instant},
};

use super::{super::MissedWrites, RepairError};
use crate::{
    config::schema::Rejoin,
    protocol::{Incarnation, Introduction},
};

/// A copy that was repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RepairReport {
    /// The life in which its server was.
    pub life: Incarnation,
    /// The repair that was done.
    pub remedy: Remedy,
}

/// The repair of a copy that was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// Nothing: it holds nothing that it should not, or is trusted.
    Nothing,
    /// The number of keys that were deleted.
    Keys(usize),
    /// It was flushed.
    Flush,
}

/// The repair in words for operators.
impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("nothing had to be done"),
            Self::Keys(0) => f.write_str("it missed nothing"),
            Self::Keys(1) => f.write_str("1 key deleted"),
            Self::Keys(keys) => write!(f, "{keys} keys deleted"),
            Self::Flush => f.write_str("flushed"),
        }
    }
}

/// The repair that a copy needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RepairPlan<'a> {
    /// Nothing: what was missed is gone with an earlier life, or the copy is trusted.
    Nothing,
    /// These keys are deleted, once nothing more can come by old connections.
    Keys(Vec<&'a [u8]>),
    /// It is flushed, once nothing more can come by old connections.
    Flush,
}

impl<'a> RepairPlan<'a> {
    /// Plans the repair of `missed` at a server that was last met as `known` and now introduces itself as
    /// `now_is`.
    ///
    /// # Errors
    /// [`RepairError::AwaitsRestart`]
    pub fn new(
        missed: &'a MissedWrites,
        rejoin: Rejoin,
        known: Incarnation,
        now_is: Introduction,
        now: Instant,
    ) -> Result<Self, RepairError> {
        /// A server's clock may lag so much.
        const LAG: Duration = Duration::from_secs(2);
        /// Its uptime is cut to this.
        const TICK: Duration = Duration::from_secs(1);
        let Introduction { life, stored } = now_is;
        let restarted = life.is_after(known);
        let since = |missed: Option<Instant>| missed.map(|when| now.saturating_duration_since(when));
        // Its life began after the last write that it missed: it holds no older value, and has no older
        // connection.
        if restarted && since(missed.last).is_some_and(|last| life.uptime + LAG < last) {
            return Ok(Self::Nothing);
        }
        // Another server may have taken the address over, with contents of its own: keys alone are deleted
        // where the server is the one that missed them, or has begun empty since.
        let is_ours = !restarted || since(missed.first).is_some_and(|first| life.uptime + TICK <= first);
        match rejoin {
            Rejoin::Trust => return Ok(Self::Nothing),
            _ if is_ours && missed.count() == Some(0) => return Ok(Self::Keys(Vec::new())),
            Rejoin::Flush => return Ok(Self::Flush),
            Rejoin::Wait if !restarted && stored > 0 => return Err(RepairError::AwaitsRestart),
            Rejoin::Wait | Rejoin::Repair => {}
        }
        Ok(match missed.keys().filter(|_| is_ours) {
            Some(keys) if rejoin == Rejoin::Repair => Self::Keys(keys.collect()),
            _ => Self::Flush,
        })
    }

    /// The result once this plan is carried out.
    pub fn remedy(&self) -> Remedy {
        match self {
            Self::Nothing => Remedy::Nothing,
            Self::Keys(keys) => Remedy::Keys(keys.len()),
            Self::Flush => Remedy::Flush,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::super::MissedKeys, *};

    const KNOWN: Incarnation = life(7, 100);

    const fn life(pid: u64, uptime: u64) -> Incarnation {
        let uptime = Duration::from_secs(uptime);
        Incarnation { pid, uptime }
    }

    const fn stored_one(life: Incarnation) -> Introduction {
        Introduction { life, stored: 1 }
    }

    /// The repair at `who` of one key whose writes were missed this many seconds ago, for the first and for
    /// the last time.
    fn due(rejoin: Rejoin, (first, last): (u64, u64), who: Incarnation) -> &'static str {
        let now = Instant::now() + Duration::from_secs(1000);
        let mut missed = MissedWrites::default();
        let mut keys = MissedKeys::default();
        keys.add(b"k");
        missed.add(keys);
        missed.missed_at(now - Duration::from_secs(first));
        missed.missed_at(now - Duration::from_secs(last));
        match RepairPlan::new(&missed, rejoin, KNOWN, stored_one(who), now) {
            Ok(RepairPlan::Nothing) => "none",
            Ok(RepairPlan::Keys(keys)) if keys == [b"k"] => "key",
            Ok(RepairPlan::Flush) => "flush",
            Ok(other) => panic!("{other:?}"),
            Err(_) => "wait",
        }
    }

    #[test]
    fn repair_is_less_than_a_flush_where_less_will_do() {
        use Rejoin::{Flush, Repair, Trust, Wait};
        let (same, young, old) = (life(7, 110), life(8, 5), life(8, 500));
        for (rejoin, missed, who, what) in [
            (Repair, (9, 1), same, "key"),
            (Flush, (9, 1), same, "flush"),
            (Trust, (9, 1), same, "none"),
            (Wait, (9, 1), same, "wait"),
            // Begun empty between the first missed write and the last.
            (Repair, (9, 1), young, "key"),
            (Wait, (9, 1), young, "flush"),
            // Begun after the last.
            (Repair, (20, 10), young, "none"),
            (Flush, (20, 10), young, "none"),
            // Begun before the first: it is another server.
            (Repair, (9, 1), old, "flush"),
            (Repair, (5, 1), young, "flush"),
            // The same pid, as in a container, and an earlier clock.
            (Repair, (9, 1), life(7, 5), "key"),
        ] {
            assert_eq!(due(rejoin, missed, who), what, "{rejoin:?} {missed:?} {who:?}");
        }
    }

    #[test]
    fn copy_that_missed_nothing_keeps_what_it_holds() {
        let now = Instant::now() + Duration::from_secs(1000);
        let mut missed = MissedWrites::default();
        missed.missed_at(now - Duration::from_secs(5));
        for (rejoin, who, expected) in [
            (Rejoin::Repair, KNOWN, RepairPlan::Keys(Vec::new())),
            (Rejoin::Flush, KNOWN, RepairPlan::Keys(Vec::new())),
            (Rejoin::Wait, KNOWN, RepairPlan::Keys(Vec::new())),
            (Rejoin::Trust, KNOWN, RepairPlan::Nothing),
            // Another server has its address.
            (Rejoin::Repair, life(8, 500), RepairPlan::Flush),
        ] {
            let plan = RepairPlan::new(&missed, rejoin, KNOWN, stored_one(who), now);
            assert_eq!(plan.unwrap(), expected);
        }
    }

    #[test]
    fn copy_that_missed_unknown_keys_is_flushed() {
        let now = Instant::now();
        let mut missed = MissedWrites::default();
        missed.add(MissedKeys::everything());
        let due = RepairPlan::new(&missed, Rejoin::Repair, KNOWN, stored_one(KNOWN), now);
        assert_eq!(due.unwrap(), RepairPlan::Flush);
    }
}
