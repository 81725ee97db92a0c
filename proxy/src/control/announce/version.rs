//! The version of a list of proxies: it rises when the list changes, and is the same at all peers that have
//! the same list.
//!
//! A peer that already tells the list says its version. Otherwise the next number follows the highest that
//! was seen, so that whoever knows an earlier list takes this one. Of two versions of one list, the higher
//! one is taken by all.

use crate::members::discovery::NodeList;

/// The highest version that is believed of a peer. Clients read it as a number of 32 bits.
const HIGHEST: u64 = i32::MAX as u64;

/// The version of the list `now`. `told` is what clients are told until now, and `heard` what peers tell.
pub(super) fn version(told: Option<&NodeList>, now: &NodeList, heard: &[NodeList]) -> u64 {
    let heard = || heard.iter().filter(|list| list.version <= HIGHEST);
    let same = heard().filter(|list| list.nodes() == now.nodes());
    let agreed = same.map(|list| list.version).max().unwrap_or(0);
    let before = told.map_or(0, |told| told.version);
    let is_same = told.is_some_and(|told| told.nodes() == now.nodes());
    if is_same || agreed > before {
        return agreed.max(before);
    }
    let seen = heard().map(|list| list.version).max().unwrap_or(0);
    seen.max(before).saturating_add(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: &str) -> NodeList {
        NodeList::parse(text.as_bytes()).unwrap()
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
            (Some("7\na||1"), &["18446744073709551615\na||1 b||1"], 8),
        ] {
            let (before, heard): (_, Vec<_>) =
                (told.map(list), heard.iter().map(|text| list(text)).collect());
            assert_eq!(
                version(before.as_ref(), &now, &heard),
                expected,
                "{told:?} {heard:?}"
            );
        }
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
                next.version = version(told[peer].as_ref(), now, &heard);
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
