//! What is wrong among the peers that only an operator can mend: those of another fleet, those whose settings
//! differ where they must be equal, and those whose clocks are far off.

use std::{
    collections::BTreeSet,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use super::Fleet;
use crate::{config::schema, event_log::kind};

/// A peer whose clock differs by more than this may not join. Stamps of a clock that is a minute ahead are
/// refused by all others, who then leave that peer out.
const CLOCKS: Duration = Duration::from_secs(30);

/// Unix time, in microseconds.
pub(super) fn unix_micros() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.unwrap_or_default().as_micros() as u64
}

/// How far the clock of a peer is off; `None`: not too far. Both times are in microseconds.
pub(super) fn clock_difference(theirs: u64, ours: u64) -> Option<String> {
    let difference = Duration::from_micros(theirs.abs_diff(ours));
    let way = if theirs > ours { "ahead of" } else { "behind" };
    (difference > CLOCKS).then(|| {
        let seconds = difference.as_secs();
        format!("its clock is {seconds} s {way} the one here. Set the clocks, and start the proxy whose clock was wrong again")
    })
}

impl Fleet {
    /// What an operator has to mend.
    pub(super) fn alerts(&self) -> BTreeSet<String> {
        let ours = self.who.facts().fleet;
        let mut alerts = BTreeSet::new();
        for (_, entry) in self.book.all() {
            let Some(who) = &entry.who else { continue };
            if who.identity == self.announced.identity || !entry.is_fresh() {
                continue;
            }
            let is_witness = self.config.role == schema::Role::Witness;
            let what = match (ours, who.fleet) {
                _ if entry.clock.is_some() => entry.clock.clone(),
                (Some(ours), Some(theirs)) if ours != theirs => Some(
                    "it belongs to another fleet. Stop it, remove its `dir`, and start it again: it joins this one"
                        .to_owned(),
                ),
                _ if is_witness => None,
                _ => self.settings.difference(&who.settings, who.witness),
            };
            alerts.extend(what.map(|what| format!("{}: {what}", who.name)));
        }
        alerts
    }

    /// Says in the log what begins to be wrong, and what is mended.
    pub(super) fn tell_of_alerts(&self, told: &mut BTreeSet<String>) {
        let alerts = self.alerts();
        for alert in alerts.difference(told) {
            tracing::error!(target: kind::PEER, "fleet: {alert}");
        }
        for alert in told.difference(&alerts) {
            let name = alert.split(':').next().unwrap_or_default();
            tracing::info!(target: kind::PEER, peer = name, "fleet: an alert is over, or its peer is gone");
        }
        *told = alerts;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clock_that_is_half_a_minute_off_is_told_of_with_its_direction() {
        let minute = 60_000_000;
        assert_eq!(clock_difference(10 * minute, 10 * minute + minute / 2), None);
        let ahead = clock_difference(12 * minute, 10 * minute).unwrap_or_default();
        assert!(
            ahead.starts_with("its clock is 120 s ahead of the one here"),
            "{ahead}"
        );
        let behind = clock_difference(9 * minute, 10 * minute).unwrap_or_default();
        assert!(
            behind.starts_with("its clock is 60 s behind the one here"),
            "{behind}"
        );
    }
}
