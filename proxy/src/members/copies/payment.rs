//! What a debt comes to, once it is known which life the server is in. A flush takes everything, so it is asked of that life
//! only, and only where less does not do.

use std::{
    fmt,
    time::{Duration, Instant},
};

use super::Debt;
use crate::config::schema::Rejoin;

/// One life of a server's process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Incarnation {
    pub pid: u64,
    /// So long it has run, to the second below.
    pub uptime: Duration,
}

impl Incarnation {
    /// Is this another life than the one that was `known`? A pid alone does not tell (in a container it is always 1), and a
    /// clock alone neither: that of a frozen server stands still, but it never goes back.
    fn is_after(self, known: Self) -> bool {
        self.pid != known.pid || self.uptime < known.uptime
    }
}

/// How a debt is paid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payment<'a> {
    /// Not at all: nothing is owed any more, or the copy is trusted.
    None,
    /// These keys are deleted, once nothing more can come by old connections.
    Keys(Vec<&'a [u8]>),
    /// By one flush.
    Flush,
}

impl<'a> Payment<'a> {
    /// What `debt` comes to at a server that was last met as `known` and now is `who`, with `stored` values stored in this life.
    ///
    /// # Errors
    /// In words: it is to wait for a restart.
    pub fn due(
        debt: &'a Debt,
        rejoin: Rejoin,
        known: Incarnation,
        who: Incarnation,
        stored: u64,
        now: Instant,
    ) -> Result<Self, String> {
        /// A server's clock may lag so much.
        const LAG: Duration = Duration::from_secs(2);
        /// And its uptime is cut to this.
        const TICK: Duration = Duration::from_secs(1);
        let restarted = who.is_after(known);
        let since = |missed: Option<Instant>| missed.map(|when| now.saturating_duration_since(when));
        // Its life began after the last write that it missed: it holds nothing older, and has no connection of then.
        if restarted && since(debt.last).is_some_and(|last| who.uptime + LAG < last) {
            return Ok(Self::None);
        }
        // Another server may have taken the address over, with contents of its own: keys alone are deleted where the server is
        // the one that missed them, or has begun empty since.
        let is_ours = !restarted || since(debt.first).is_some_and(|first| who.uptime + TICK <= first);
        match rejoin {
            Rejoin::Trust => return Ok(Self::None),
            _ if is_ours && debt.count() == Some(0) => return Ok(Self::Keys(Vec::new())),
            Rejoin::Flush => return Ok(Self::Flush),
            Rejoin::Wait if !restarted && stored > 0 => {
                return Err("it is to be restarted first (rejoin: wait)".into());
            }
            Rejoin::Wait | Rejoin::Repair => {}
        }
        Ok(match debt.keys().filter(|_| is_ours) {
            Some(keys) if rejoin == Rejoin::Repair => Self::Keys(keys.collect()),
            _ => Self::Flush,
        })
    }
}

/// What was done, in words.
impl fmt::Display for Payment<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("nothing had to be done"),
            Self::Keys(keys) if keys.is_empty() => f.write_str("it owed nothing"),
            Self::Keys(keys) if keys.len() == 1 => f.write_str("1 key deleted"),
            Self::Keys(keys) => write!(f, "{} keys deleted", keys.len()),
            Self::Flush => f.write_str("flushed"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::Owed, *};

    const KNOWN: Incarnation = life(7, 100);

    const fn life(pid: u64, uptime: u64) -> Incarnation {
        let uptime = Duration::from_secs(uptime);
        Incarnation { pid, uptime }
    }

    /// A debt of one key, missed first and last so many seconds ago; what it comes to at `who`.
    fn due(rejoin: Rejoin, (first, last): (u64, u64), who: Incarnation) -> &'static str {
        let now = Instant::now() + Duration::from_secs(1000);
        let mut debt = Debt::default();
        let mut owed = Owed::default();
        owed.add(b"k");
        debt.add(owed);
        debt.missed(now - Duration::from_secs(first));
        debt.missed(now - Duration::from_secs(last));
        match Payment::due(&debt, rejoin, KNOWN, who, 1, now) {
            Ok(Payment::None) => "none",
            Ok(Payment::Keys(keys)) if keys == [b"k"] => "key",
            Ok(Payment::Flush) => "flush",
            Ok(other) => panic!("{other:?}"),
            Err(_) => "wait",
        }
    }

    #[test]
    fn less_than_a_flush_where_less_will_do() {
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
    fn a_copy_that_owes_nothing_keeps_what_it_holds() {
        let now = Instant::now() + Duration::from_secs(1000);
        let mut debt = Debt::default();
        debt.missed(now - Duration::from_secs(5));
        for (rejoin, who, expected) in [
            (Rejoin::Repair, KNOWN, Payment::Keys(Vec::new())),
            (Rejoin::Flush, KNOWN, Payment::Keys(Vec::new())),
            (Rejoin::Wait, KNOWN, Payment::Keys(Vec::new())),
            (Rejoin::Trust, KNOWN, Payment::None),
            // Another server has its address.
            (Rejoin::Repair, life(8, 500), Payment::Flush),
        ] {
            assert_eq!(Payment::due(&debt, rejoin, KNOWN, who, 1, now), Ok(expected));
        }
    }

    #[test]
    fn a_debt_that_is_not_known_is_a_flush() {
        let now = Instant::now();
        let mut debt = Debt::default();
        debt.add(Owed::everything());
        let due = Payment::due(&debt, Rejoin::Repair, KNOWN, KNOWN, 1, now);
        assert_eq!(due, Ok(Payment::Flush));
    }
}
