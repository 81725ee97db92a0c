//! The roster that the fleet has agreed on: its identity and its view. Each entry of the log is one change of
//! it.

use serde::{Deserialize, Serialize};

use super::{Cause, Peer, Slot, Stay, View};

/// The fleet as the voters have agreed on it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Roster {
    /// The identity of the fleet, drawn when it began.
    pub fleet: u128,
    /// The newest view.
    pub view: View,
    /// The reason of the newest view, for operators.
    pub why: String,
    /// Peers that were removed, the last one last, with the reason.
    pub removed: Vec<(String, Cause)>,
    /// How many peers have left so far, by the number of the cause.
    #[serde(default)]
    pub removals: [u64; Cause::LABELS.len()],
}

/// The most removals that are remembered.
const REMOVED: usize = 32;

/// A change of the roster. Further ones get names of their own: a voter that does not know a change makes no
/// view of it, and says so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Change {
    /// The fleet begins. It begins once: afterwards it keeps its identity.
    Begin {
        /// Its identity.
        fleet: u128,
    },
    /// These peers join. Stay, slot and `decides` are given to each by the view.
    Join {
        /// The peers as they announced themselves.
        peers: Vec<Peer>,
    },
    /// Peers leave.
    Remove {
        /// Their names, with the stays that end.
        peers: Vec<(String, Stay)>,
        /// Why.
        why: Cause,
    },
    /// A peer decides from now on, or no longer.
    Decide {
        /// Its name.
        name: String,
        /// Its stay.
        stay: Stay,
        /// Whether it decides.
        decides: bool,
    },
}

impl Roster {
    /// Makes a change; `false`: there was nothing to change.
    pub fn apply(&mut self, change: &Change) -> bool {
        let number = self.view.number + 1;
        let peers = &mut self.view.peers;
        match change {
            Change::Begin { fleet } => {
                let begins = self.fleet == 0;
                if begins {
                    self.fleet = *fleet;
                }
                return begins;
            }
            Change::Join { peers: new } => {
                for announced in new {
                    // A peer of this name in the view has left without a goodbye.
                    peers.retain(|peer| peer.name != announced.name);
                    let is_free = |slot: &Slot| peers.iter().all(|peer| peer.slot != *slot);
                    let Some(slot) = (0..1 << Slot::BITS).map(Slot).find(is_free) else {
                        continue;
                    };
                    peers.push(Peer {
                        stay: Stay(number),
                        slot,
                        decides: false,
                        ..announced.clone()
                    });
                }
                let names: Vec<&str> = new.iter().map(|peer| peer.name.as_str()).collect();
                self.why = format!("{} joined", names.join(", "));
            }
            Change::Remove { peers: gone, why } => {
                let before = peers.len();
                peers.retain(|peer| !gone.contains(&(peer.name.clone(), peer.stay)));
                if peers.len() == before {
                    return false;
                }
                let names: Vec<&str> = gone.iter().map(|(name, _)| name.as_str()).collect();
                self.why = format!("{} left: {why}", names.join(", "));
                if let Some(count) = self.removals.get_mut(why.number()) {
                    *count += (before - peers.len()) as u64;
                }
                self.removed
                    .extend(gone.iter().map(|(name, _)| (name.clone(), why.clone())));
                let surplus = self.removed.len().saturating_sub(REMOVED);
                self.removed.drain(..surplus);
            }
            Change::Decide { name, stay, decides } => {
                let Some(peer) = peers
                    .iter_mut()
                    .find(|peer| peer.name == *name && peer.stay == *stay && peer.decides != *decides)
                else {
                    return false;
                };
                peer.decides = *decides;
                self.why = match decides {
                    true => format!("{name} decides"),
                    false => format!("{name} does not decide any more: its copy may not be read"),
                };
            }
        }
        peers.sort_by(|one, other| one.name.cmp(&other.name));
        self.view.number = number;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slot_of_a_peer_that_left_is_given_to_the_next_with_another_stay() {
        let mut roster = Roster::default();
        let join = |names: &[&str]| Change::Join {
            peers: names.iter().map(|name| Peer::example(name)).collect(),
        };
        assert!(roster.apply(&join(&["b", "a"])));
        let gone = roster.view.named("b").map(|peer| (peer.name.clone(), peer.stay));
        let remove = Change::Remove {
            peers: gone.into_iter().collect(),
            why: Cause::Goodbye,
        };
        assert!(roster.apply(&remove));
        assert!(!roster.apply(&remove), "it has left already");
        assert!(roster.apply(&join(&["c"])));
        let c = roster.view.named("c");
        assert_eq!(c.map(|peer| (peer.slot, peer.stay)), Some((Slot(0), Stay(3))));
        assert_eq!(roster.view.number, 3);
    }

    #[test]
    fn fleet_that_has_begun_keeps_its_identity() {
        let mut roster = Roster::default();
        assert!(roster.apply(&Change::Begin { fleet: 7 }));
        assert!(!roster.apply(&Change::Begin { fleet: 8 }));
        assert_eq!(roster.fleet, 7);
    }

    #[test]
    fn removal_of_an_earlier_stay_changes_nothing() {
        let mut roster = Roster::default();
        assert!(roster.apply(&Change::Join {
            peers: vec![Peer::example("a")]
        }));
        let late = Change::Remove {
            peers: vec![("a".to_owned(), Stay(0))],
            why: Cause::LeaseEnded,
        };
        assert!(!roster.apply(&late));
        assert_eq!(roster.view.peers.len(), 1);
    }
}
