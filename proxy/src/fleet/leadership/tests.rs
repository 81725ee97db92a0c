use std::collections::{BTreeSet, HashMap};

use proptest::{collection::vec, prelude::*};

use super::{Act, CANDIDATE, Candidate, Cause, Change, Heartbeat, Leadership, PAUSES};
use crate::fleet::{Peer, Roster, Stay, View};

const LEASE: u64 = 1_000_000;
const LOOK: u64 = 20_000;

fn name(peer: usize) -> String {
    format!("p{peer}")
}

fn announced(peer: usize) -> Peer {
    Peer {
        identity: peer as u128,
        ..Peer::example(&name(peer))
    }
}

fn view(peers: usize) -> View {
    let mut roster = Roster::default();
    let peers = (0..peers).map(announced).collect();
    roster.apply(&Change::Join { peers });
    roster.view
}

fn beat(peer: usize, late: &[usize]) -> Heartbeat {
    Heartbeat {
        name: name(peer),
        stay: Stay(1),
        late: late.iter().copied().map(name).collect(),
        knows: 1,
        ..Heartbeat::default()
    }
}

/// The peers that are told to stop after these complaints, each of one peer about another.
fn condemned(peers: usize, complaints: &[(usize, usize)]) -> BTreeSet<String> {
    let (view, mut leader) = (view(peers), Leadership::new(LEASE, LEASE));
    for peer in 0..peers {
        let late = complaints.iter().filter(|(accuser, _)| *accuser == peer);
        let late: Vec<usize> = late.map(|&(_, accused)| accused).collect();
        assert!(leader.heartbeat(LEASE, &view, &beat(peer, &late)));
    }
    let acts = leader.decide(LEASE, &view, &BTreeSet::new());
    let stopped = acts.into_iter().filter_map(|act| match act {
        Act::Stop { name, .. } => Some(name),
        Act::Propose(_) => None,
    });
    stopped.collect()
}

/// Has each of these pairs one of the peers?
fn covers(pairs: &[(usize, usize)], has: impl Fn(usize) -> bool) -> bool {
    pairs.iter().all(|&(one, other)| has(one) || has(other))
}

fn pairs(peers: usize) -> impl Strategy<Value = Vec<(usize, usize)>> {
    let pair = (0..peers, 1..peers).prop_map(move |(one, step)| (one, (one + step) % peers));
    vec(pair, 0..12)
}

proptest! {
    #[test]
    fn complaints_remove_one_of_each_pair_and_nobody_without_one(pairs in pairs(8)) {
        let condemned = condemned(8, &pairs);
        prop_assert!(covers(&pairs, |peer| condemned.contains(&name(peer))));
        let is_in_a_pair = |peer: usize| pairs.iter().any(|&(one, other)| one == peer || other == peer);
        prop_assert!((0..8).all(|peer| is_in_a_pair(peer) || !condemned.contains(&name(peer))));
    }

    #[test]
    fn complaints_among_four_peers_remove_the_fewest(pairs in pairs(4)) {
        let sets = (0_u32..16).filter(|set| covers(&pairs, |peer| set & 1 << peer != 0));
        let fewest = sets.map(u32::count_ones).min().unwrap_or_default();
        prop_assert_eq!(condemned(4, &pairs).len(), fewest as usize);
    }

    #[test]
    fn complaints_across_a_cut_remove_the_smaller_side(few in 1_usize..4, more in 1_usize..8, both in any::<bool>()) {
        let peers = few + few + more;
        let mut pairs = Vec::new();
        for one in 0..few {
            for other in few..peers {
                pairs.push((other, one));
                pairs.extend(both.then_some((one, other)));
            }
        }
        prop_assert_eq!(condemned(peers, &pairs), (0..few).map(name).collect());
    }

    /// Each step: the time that passes, the peer that is heard, the peers that it complains of, and whether a
    /// heartbeat comes.
    #[test]
    fn nobody_is_removed_while_its_lease_may_run(
        steps in vec((0..LEASE / 3, 0_usize..4, 0_usize..4, 0_u8..8), 1..60),
    ) {
        let view = view(4);
        let (begin, mut now) = (5 * LEASE, 5 * LEASE);
        let mut leader = Leadership::new(begin, LEASE);
        let mut until: HashMap<String, u64> = (0..4).map(|peer| (name(peer), begin + LEASE)).collect();
        let mut told: BTreeSet<String> = BTreeSet::new();
        for (later, peer, accused, kind) in steps {
            now += later;
            let late = if kind == 0 && accused != peer { vec![accused] } else { Vec::new() };
            if kind < 6 && leader.heartbeat(now, &view, &beat(peer, &late)) {
                // The lease was granted now at the latest; its clock may be slower than the leader's by 1 %.
                until.insert(name(peer), now + LEASE + LEASE / 100);
            }
            if kind == 7 && told.contains(&name(peer)) {
                leader.stopped(&name(peer), Stay(1));
                until.insert(name(peer), now);
            }
            for act in leader.decide(now, &view, &BTreeSet::new()) {
                match act {
                    Act::Stop { name, .. } => drop(told.insert(name)),
                    Act::Propose(Change::Remove { peers, .. }) => {
                        for (name, _) in peers {
                            prop_assert!(until[&name] <= now, "{} is removed {} µs too early", name, until[&name] - now);
                        }
                    }
                    Act::Propose(_) => {}
                }
            }
        }
    }
}

#[test]
fn complaints_of_a_stay_that_has_ended_do_not_count_against_the_next() {
    let mut roster = Roster::default();
    let peers = (0..3).map(announced).collect();
    roster.apply(&Change::Join { peers });
    let mut leader = Leadership::new(LEASE, LEASE);
    for peer in 0..3 {
        let late: &[usize] = if peer == 0 { &[] } else { &[0] };
        assert!(leader.heartbeat(LEASE, &roster.view, &beat(peer, late)));
    }
    let peers = vec![(name(0), Stay(1))];
    let why = Cause::Restarted;
    roster.apply(&Change::Remove { peers, why });
    roster.apply(&Change::Join {
        peers: vec![announced(0)],
    });
    assert!(leader.decide(LEASE, &roster.view, &BTreeSet::new()).is_empty());
    let knows = roster.view.number;
    let complaint = Heartbeat {
        knows,
        ..beat(1, &[0])
    };
    assert!(leader.heartbeat(LEASE, &roster.view, &complaint));
    assert_eq!(leader.decide(LEASE, &roster.view, &BTreeSet::new()).len(), 1);
}

#[test]
fn peer_with_a_longer_lease_than_its_leaders_is_waited_for() {
    let mut view = view(2);
    view.peers[1].lease = 3 * LEASE;
    let mut leader = Leadership::new(LEASE, LEASE);
    let removed = |now, leader: &mut Leadership| -> Vec<String> {
        let acts = leader.decide(now, &view, &BTreeSet::new());
        let removed = acts.into_iter().filter_map(|act| match act {
            Act::Propose(Change::Remove { peers, .. }) => Some(peers),
            _ => None,
        });
        removed.flatten().map(|(name, _)| name).collect()
    };
    // An earlier leader may have granted it a lease just before this one was elected.
    assert_eq!(removed(LEASE, &mut leader), Vec::<String>::new());
    assert_eq!(removed(3 * LEASE, &mut leader), [name(0)]);
    assert!(leader.heartbeat(3 * LEASE, &view, &beat(1, &[])));
    assert_eq!(removed(6 * LEASE, &mut leader), [name(0)]);
    assert_eq!(removed(7 * LEASE, &mut leader), [name(0), name(1)]);
}

#[test]
fn peer_that_joins_an_old_leader_is_given_time_for_its_first_heartbeat() {
    let mut leader = Leadership::new(0, LEASE);
    let now = 100 * LEASE;
    assert_eq!(leader.decide(now, &View::default(), &BTreeSet::new()), Vec::new());
    let view = view(1);
    assert_eq!(leader.decide(now + LOOK, &view, &BTreeSet::new()), Vec::new());
    assert_eq!(leader.decide(now + LEASE, &view, &BTreeSet::new()), Vec::new());
    let acts = leader.decide(now + 2 * LEASE, &view, &BTreeSet::new());
    assert!(
        matches!(&acts[..], [Act::Propose(Change::Remove { .. })]),
        "{acts:?}"
    );
}

/// The pause after each of this number of removals, each `stay` after the peer joined again.
fn pauses(removals: usize, stay: u64) -> Vec<u64> {
    let mut roster = Roster::default();
    let mut leader = Leadership::new(0, LEASE);
    let (mut now, mut left, mut pauses) = (0_u64, None::<u64>, Vec::new());
    while pauses.len() < removals {
        now += LOOK;
        let peer = roster.view.named("p0").map(|peer| peer.stay);
        match (peer, left) {
            (Some(Stay(number)), Some(at)) if now < at + stay => {
                let heard = Heartbeat {
                    stay: Stay(number),
                    ..beat(0, &[])
                };
                assert!(leader.heartbeat(now, &roster.view, &heard));
            }
            (Some(_), _) => {}
            (None, _) => {
                let peer = announced(0);
                let reaches = BTreeSet::new();
                leader.candidate(now, Candidate { peer, reaches });
            }
        }
        for act in leader.decide(now, &roster.view, &BTreeSet::new()) {
            let Act::Propose(change) = act else { continue };
            if let (Change::Join { .. }, Some(at)) = (&change, left) {
                pauses.push((now - at).next_multiple_of(PAUSES.0));
                left = Some(now);
            } else {
                left = Some(now);
            }
            roster.apply(&change);
        }
    }
    pauses
}

#[test]
fn pauses_of_a_peer_that_is_removed_again_and_again_double_up_to_the_longest() {
    let second = PAUSES.0;
    let expected = [1, 2, 4, 8, 16, 30, 30].map(|seconds| seconds * second);
    assert_eq!(pauses(7, 0), expected);
}

#[test]
fn pause_of_a_peer_that_stayed_for_long_is_the_first_again() {
    assert_eq!(pauses(3, 3 * PAUSES.1), [PAUSES.0; 3]);
}

#[test]
fn candidate_that_asks_no_more_does_not_join() {
    let mut leader = Leadership::new(0, LEASE);
    let (peer, reaches) = (announced(0), BTreeSet::new());
    leader.candidate(0, Candidate { peer, reaches });
    assert_eq!(
        leader.decide(CANDIDATE, &View::default(), &BTreeSet::new()),
        Vec::new()
    );
}
