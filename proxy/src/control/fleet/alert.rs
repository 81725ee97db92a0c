//! What is wrong among the peers that only an operator can mend: those of another fleet, those whose settings
//! differ where they must be equal, and those whose clocks are far off.

use std::{
    collections::BTreeSet,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde::{Deserialize, Serialize};

use super::{Fleet, message::Introduction};
use crate::config::schema;

/// A peer whose clock differs by more than this may not join. Stamps of a clock that is a minute ahead are
/// refused by all others, who then leave that peer out.
const CLOCKS: Duration = Duration::from_secs(30);

/// What must be equal at all peers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Settings {
    /// The names of the pools with copies. A witness has none.
    pub(super) pools: BTreeSet<String>,
    lease: Duration,
    suspect: Duration,
    voters: Option<BTreeSet<String>>,
}

impl Settings {
    pub(super) fn new(config: &schema::Fleet, pools: impl IntoIterator<Item = String>) -> Self {
        let voters = config.voters.clone();
        Self {
            pools: pools.into_iter().collect(),
            lease: config.lease,
            suspect: config.suspect,
            voters: voters.map(|names| names.into_iter().collect()),
        }
    }

    /// What differs at a peer, for people.
    fn difference(&self, peer: &Introduction) -> Option<String> {
        let theirs = &peer.settings;
        let list = |names: &BTreeSet<String>| {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            if names.is_empty() {
                "none".to_owned()
            } else {
                names.join(", ")
            }
        };
        let voters = |names: &Option<BTreeSet<String>>| names.as_ref().map_or("auto".to_owned(), list);
        let (what, its, ours) = if theirs.pools != self.pools && !peer.witness {
            ("pools", list(&theirs.pools), list(&self.pools))
        } else if theirs.lease != self.lease {
            (
                "`lease`",
                format!("{:?}", theirs.lease),
                format!("{:?}", self.lease),
            )
        } else if theirs.suspect != self.suspect {
            (
                "`suspect`",
                format!("{:?}", theirs.suspect),
                format!("{:?}", self.suspect),
            )
        } else if theirs.voters != self.voters {
            ("`voters`", voters(&theirs.voters), voters(&self.voters))
        } else {
            return None;
        };
        let verb = if what == "pools" { "differ" } else { "differs" };
        Some(format!(
            "its {what} {verb}: {its} there, {ours} here. Make the configurations equal"
        ))
    }
}

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
                _ => self.settings.difference(who),
            };
            alerts.extend(what.map(|what| format!("{}: {what}", who.name)));
        }
        alerts
    }

    /// Says in the log what begins to be wrong, and what is mended.
    pub(super) fn tell_of_alerts(&self, told: &mut BTreeSet<String>) {
        let alerts = self.alerts();
        for alert in alerts.difference(told) {
            tracing::error!("fleet: {alert}");
        }
        for alert in told.difference(&alerts) {
            let name = alert.split(':').next().unwrap_or_default();
            tracing::info!(peer = name, "fleet: an alert is over, or its peer is gone");
        }
        *told = alerts;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn introduction(settings: Settings) -> Introduction {
        Introduction {
            name: "n1".to_owned(),
            identity: 1,
            fleet: Some(1),
            lowest: "n1".to_owned(),
            leader: None,
            witness: false,
            time: 0,
            settings,
        }
    }

    fn settings(pools: &[&str]) -> Settings {
        Settings {
            pools: pools.iter().map(|&name| name.to_owned()).collect(),
            ..Settings::default()
        }
    }

    #[test]
    fn difference_of_settings_names_both_sides() {
        let ours = settings(&["a", "b"]);
        assert_eq!(ours.difference(&introduction(ours.clone())), None);
        let said = ours.difference(&introduction(settings(&["a"])));
        let expected = "its pools differ: a there, a, b here. Make the configurations equal";
        assert_eq!(said.as_deref(), Some(expected));
        let longer = Settings {
            lease: Duration::from_secs(5),
            ..ours.clone()
        };
        let said = ours.difference(&introduction(longer)).unwrap_or_default();
        assert!(
            said.starts_with("its `lease` differs: 5s there, 0ns here"),
            "{said}"
        );
    }

    #[test]
    fn witness_has_no_pools_and_that_is_no_difference() {
        let witness = Introduction {
            witness: true,
            ..introduction(settings(&[]))
        };
        assert_eq!(settings(&["a"]).difference(&witness), None);
    }

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
