//! The version of a list of proxies: it rises when the list changes, and is the same at all peers that have
//! the same list.
//!
//! A peer that already tells the list says its version. Otherwise the next number follows the highest that
//! was seen, so that whoever knows an earlier list takes this one. Of two versions of one list, the higher
//! one is taken by all.
//!
//! ```text
//!  0 ── believed of other lists ── OTHER ── believed of the same list ── SAME ── own changes ── VERSIONS
//! ```
//!
//! No count of changes comes near these limits, so a number beyond them is an error of who tells it. The
//! number that follows the highest one of another list is still believed by the peers that tell the same.

use crate::members::discovery::{HIGHEST_VERSION, NodeList};

/// The highest version that is believed of a peer with the same list.
const SAME: u64 = HIGHEST_VERSION / 2;
/// The highest version that is believed of a peer with another list.
const OTHER: u64 = SAME / 2;

/// The versions that peers tell.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PeerVersions {
    /// The highest one of the same list.
    same: u64,
    /// The highest one of any other list.
    other: u64,
}

impl PeerVersions {
    /// Adds what a peer tells. `now` is the own list.
    pub(super) fn add(&mut self, told: &NodeList, now: &NodeList) {
        let (highest, limit) = match told.nodes() == now.nodes() {
            true => (&mut self.same, SAME),
            false => (&mut self.other, OTHER),
        };
        if told.version <= limit {
            *highest = told.version.max(*highest);
        }
    }
}

/// The version of the list `now`. `told` is what clients are told until now. If all numbers are used up, it
/// stays the highest one.
pub(super) fn version(told: Option<&NodeList>, now: &NodeList, heard: PeerVersions) -> u64 {
    let before = told.map_or(0, |told| told.version);
    let is_same = told.is_some_and(|told| told.nodes() == now.nodes());
    if is_same || heard.same > before {
        return heard.same.max(before);
    }
    (heard.other.max(before) + 1).min(HIGHEST_VERSION)
}

#[cfg(test)]
mod tests {
    use std::slice::from_ref;

    use super::*;

    fn list(text: &str) -> NodeList {
        NodeList::parse(text.as_bytes()).unwrap()
    }

    fn hear(told: &[NodeList], now: &NodeList) -> PeerVersions {
        let mut heard = PeerVersions::default();
        told.iter().for_each(|list| heard.add(list, now));
        heard
    }

    #[test]
    fn version_rises_with_a_change_and_is_that_of_a_peer_with_the_same_list() {
        let now = list("0\na||1 b||1");
        for (told, heard, expected) in [
            (None, &[][..], 1),
            (None, &["5\na||1 b||1"], 5),
            (None, &["5\na||1"], 6),
            (Some("7\na||1 b||1"), &[], 7),
            (Some("7\na||1 b||1"), &["6\na||1 b||1"], 7),
            (Some("7\na||1 b||1"), &["9\na||1 b||1"], 9),
            (Some("7\na||1 b||1"), &["9\na||1"], 7),
            (Some("7\na||1"), &[], 8),
            (Some("7\na||1"), &["8\na||1 b||1"], 8),
            (Some("7\na||1"), &["7\na||1"], 8),
            (Some("7\na||1"), &["7\na||1 b||1"], 8),
            (Some("7\na||1"), &["12\nc||1", "3\na||1 b||1"], 13),
            (Some("7\na||1"), &["2147483647\na||1 b||1"], 8),
            (Some("7\na||1"), &["2147483647\na||1"], 8),
            (Some("7\na||1"), &["1073741823\na||1"], 8),
            (Some("7\na||1"), &["9\na||1", "2147483647\nc||1"], 10),
            (Some("2147483646\na||1"), &[], 2_147_483_647),
            (Some("2147483647\na||1"), &["5\na||1 b||1"], 2_147_483_647),
        ] {
            let before = told.map(list);
            let heard: Vec<NodeList> = heard.iter().map(|text| list(text)).collect();
            let next = version(before.as_ref(), &now, hear(&heard, &now));
            assert_eq!(next, expected, "{told:?} {heard:?}");
        }
    }

    #[test]
    fn peers_agree_after_one_of_them_has_heard_the_highest_number_that_is_believed() {
        let (before, now) = (list("7\na||1"), list("0\na||1 b||1"));
        let wrong = list(&format!("{OTHER}\nc||1"));
        let mut misled = now.clone();
        misled.version = version(Some(&before), &now, hear(&[wrong], &now));
        assert_eq!(misled.version, OTHER + 1);
        let peer = version(Some(&before), &now, hear(from_ref(&misled), &now));
        assert_eq!(peer, OTHER + 1);
        let next = version(Some(&misled), &before, hear(from_ref(&misled), &before));
        assert_eq!(next, OTHER + 2);
    }

    /// Whatever the order in which three peers notice changes and hear of each other: their versions rise,
    /// and are the same in the end.
    #[test]
    fn peers_with_the_same_list_come_to_the_same_version() {
        let lists = ["0\na||1 b||1 c||1", "0\na||1 b||1", "0\nb||1 c||1"].map(list);
        for order in 0..729_usize {
            let turns: Vec<usize> = (0..6).map(|turn| order / 3_usize.pow(turn) % 3).collect();
            let mut told: [Option<NodeList>; 3] = [None, None, None];
            let step = |told: &mut [Option<NodeList>; 3], peer: usize, now: &NodeList| {
                let heard = (0..3).filter(|&other| other != peer);
                let heard: Vec<NodeList> = heard.filter_map(|other| told[other].clone()).collect();
                let mut next = now.clone();
                next.version = version(told[peer].as_ref(), now, hear(&heard, now));
                if let Some(before) = &told[peer] {
                    let same = before.nodes() == next.nodes();
                    assert!(same && next.version >= before.version || next.version > before.version);
                }
                told[peer] = Some(next);
            };
            for (turn, &peer) in turns.iter().enumerate() {
                step(&mut told, peer, &lists[(turn + peer) % 3]);
            }
            for _ in 0..2 {
                (0..3).for_each(|peer| step(&mut told, peer, &lists[0]));
            }
            assert!(told[0] == told[1] && told[1] == told[2], "{turns:?}: {told:?}");
        }
    }
}
