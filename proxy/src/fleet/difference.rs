//! The difference between a roster and a later one. It is short where the fleet is large and few of its peers
//! come or go.

use serde::{Deserialize, Serialize};

use super::{Cause, Peer, Roster, Stay, View};

/// The difference between a roster and a later one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    fleet: u128,
    /// The numbers of the two views.
    from: u64,
    to: u64,
    why: String,
    /// Peers that are not in the later view.
    gone: Vec<(String, Stay)>,
    /// Peers that are in the later view only, or are other than before.
    new: Vec<Peer>,
    removed: Vec<(String, Cause)>,
    removals: [u64; Cause::LABELS.len()],
}

impl Difference {
    /// Is the later one newer than this roster?
    pub fn is_ahead_of(&self, roster: &Roster) -> bool {
        self.to > roster.view.number
    }
}

impl Roster {
    /// The difference that makes this roster of an earlier one.
    pub fn difference(&self, before: &Self) -> Difference {
        let peers = before.view.peers.iter();
        let gone = peers.filter(|peer| self.view.named(&peer.name).is_none());
        let peers = self.view.peers.iter();
        let new = peers.filter(|peer| before.view.named(&peer.name) != Some(peer));
        Difference {
            fleet: self.fleet,
            from: before.view.number,
            to: self.view.number,
            why: self.why.clone(),
            gone: gone.map(|peer| (peer.name.clone(), peer.stay)).collect(),
            new: new.cloned().collect(),
            removed: self.removed.clone(),
            removals: self.removals,
        }
    }

    /// Applies the difference to this roster; `None` if it begins at another roster.
    pub fn follow(&self, difference: &Difference) -> Option<Self> {
        if self.fleet != difference.fleet || self.view.number != difference.from {
            return None;
        }
        let stays = |peer: &&Peer| {
            let is_gone = difference.gone.iter().any(|(name, _)| *name == peer.name);
            !is_gone && difference.new.iter().all(|new| new.name != peer.name)
        };
        let mut peers: Vec<Peer> = self.view.peers.iter().filter(stays).cloned().collect();
        peers.extend(difference.new.iter().cloned());
        peers.sort_by(|one, other| one.name.cmp(&other.name));
        Some(Self {
            fleet: self.fleet,
            view: View {
                number: difference.to,
                peers,
            },
            why: difference.why.clone(),
            removed: difference.removed.clone(),
            removals: difference.removals,
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::prelude::*;

    use super::*;
    use crate::fleet::Change;

    /// One of three changes that concern the peer of this name.
    fn change(roster: &Roster, (kind, name): (u8, u8)) -> Change {
        let known = roster.view.named(&format!("{name}"));
        let (stay, decides) = known.map_or((Stay(0), false), |peer| (peer.stay, peer.decides));
        let name = format!("{name}");
        match kind {
            0 => Change::Join {
                peers: vec![Peer::example(&name)],
            },
            1 => Change::Remove {
                peers: vec![(name, stay)],
                why: Cause::Goodbye,
            },
            _ => Change::Decide {
                name,
                stay,
                decides: !decides,
            },
        }
    }

    proptest! {
        #[test]
        fn a_difference_leads_to_the_later_roster_and_from_no_other_than_the_earlier(
            first in prop::collection::vec((0..3_u8, 0..12_u8), 0..40),
            then in prop::collection::vec((0..3_u8, 0..12_u8), 1..20),
        ) {
            let mut roster = Roster::default();
            roster.apply(&Change::Begin { fleet: 7 });
            for one in first {
                let change = change(&roster, one);
                roster.apply(&change);
            }
            let before = roster.clone();
            for one in then {
                let change = change(&roster, one);
                roster.apply(&change);
            }
            let difference = roster.difference(&before);
            prop_assert_eq!(before.follow(&difference), Some(roster.clone()));
            let has_changed = roster.view.number > before.view.number;
            prop_assert_eq!(difference.is_ahead_of(&before), has_changed);
            prop_assert_eq!(roster.follow(&difference).is_none(), has_changed);
            let other = Roster { fleet: 8, ..before };
            prop_assert_eq!(other.follow(&difference), None);
        }
    }
}
