//! What must be equal at all peers of a fleet, and what differs.

use std::{collections::BTreeSet, time::Duration};

use serde::{Deserialize, Serialize};

use crate::config::schema;

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

    /// What differs at a peer with these settings, for people. A witness has no pools.
    pub(super) fn difference(&self, theirs: &Self, is_witness: bool) -> Option<String> {
        let list = |names: &BTreeSet<String>| {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            if names.is_empty() {
                "none".to_owned()
            } else {
                names.join(", ")
            }
        };
        let voters = |names: &Option<BTreeSet<String>>| names.as_ref().map_or("auto".to_owned(), list);
        let (what, its, ours) = if theirs.pools != self.pools && !is_witness {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(pools: &[&str]) -> Settings {
        Settings {
            pools: pools.iter().map(|&name| name.to_owned()).collect(),
            ..Settings::default()
        }
    }

    #[test]
    fn difference_of_settings_names_both_sides() {
        let ours = settings(&["a", "b"]);
        assert_eq!(ours.difference(&ours, false), None);
        let said = ours.difference(&settings(&["a"]), false);
        let expected = "its pools differ: a there, a, b here. Make the configurations equal";
        assert_eq!(said.as_deref(), Some(expected));
        let longer = Settings {
            lease: Duration::from_secs(5),
            ..ours.clone()
        };
        let said = ours.difference(&longer, false).unwrap_or_default();
        assert!(
            said.starts_with("its `lease` differs: 5s there, 0ns here"),
            "{said}"
        );
    }

    #[test]
    fn witness_has_no_pools_and_that_is_no_difference() {
        assert_eq!(settings(&["a"]).difference(&settings(&[]), true), None);
    }
}
