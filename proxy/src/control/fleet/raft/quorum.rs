//! A leader that no majority answers gives way.
//!
//! openraft 0.9 has a leader lead until it hears of a later term. Where connections fail in one direction or
//! between some of the voters only, such a leader kept those who hear it from electing another one that a
//! majority hears. It leads no more here until a majority answers it, and it is silent for a while, so that
//! the others stand if they can. Then it tries again.

use std::time::Duration;

/// A leader leads no more after so many heartbeats without an answer of a majority.
const ALONE: f64 = 20.0;
/// For so many heartbeats it is silent: longer than the last of five voters waits before it stands.
const SILENT: f64 = 20.0;
/// For so many heartbeats it looks whether a majority answers again.
const TRIES: f64 = 6.0;

/// What an elected leader does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Conduct {
    /// It answers as the leader.
    pub(super) leads: bool,
    /// It sends heartbeats.
    pub(super) beats: bool,
}

/// What a leader does that no majority has answered for this long. `heartbeat`: the time between two.
pub(super) fn conduct(unanswered: Duration, heartbeat: Duration) -> Conduct {
    let alone = unanswered.div_duration_f64(heartbeat) - ALONE;
    let leads = alone < 0.0;
    Conduct {
        leads,
        beats: leads || alone % (SILENT + TRIES) >= SILENT,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEAT: Duration = Duration::from_millis(50);

    #[test]
    fn a_leader_without_a_majority_is_silent_first_and_then_tries_again_and_again() {
        let phase = |millis| {
            let conduct = conduct(Duration::from_millis(millis), BEAT);
            (conduct.leads, conduct.beats)
        };
        assert_eq!([0, 999].map(phase), [(true, true); 2]);
        for round in 0..3 {
            let begin = 1000 + round * 1300;
            assert_eq!([begin, begin + 999].map(phase), [(false, false); 2]);
            assert_eq!([begin + 1000, begin + 1299].map(phase), [(false, true); 2]);
        }
    }
}
