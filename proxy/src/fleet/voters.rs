//! The voters: the first three peers, from nine on five, or those that the configuration names. A voter that
//! is away for long is replaced. A voter that comes back at another address keeps its vote.

use std::net::SocketAddr;

/// A voter: the number of its node, and its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Voter {
    /// The number of its node, which is that of its directory.
    pub node: u64,
    /// The address at which it was when it was chosen.
    pub address: SocketAddr,
}

/// A proxy that could vote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Present {
    /// Its name.
    pub name: String,
    /// The number of its node.
    pub node: u64,
    /// The address at which it is.
    pub address: SocketAddr,
    /// It only votes.
    pub witness: bool,
}

/// The number of voters among this number of peers.
const fn wanted(present: usize) -> usize {
    match present {
        0..=2 => 1,
        3..=8 => 3,
        _ => 5,
    }
}

/// The voters from now on. `lost`: nodes that have been away for so long that others take their place, where
/// there are others: with fewer voters, one more loss would cost a majority that the remaining voters have
/// again once the lost one is back. `named`: the names that the configuration asks for.
pub fn choose(now: &[Voter], present: &[Present], lost: &[u64], named: Option<&[String]>) -> Vec<Voter> {
    let may = |one: &Present| named.is_none_or(|names| names.contains(&one.name));
    let mut able: Vec<&Present> = present.iter().filter(|one| may(one)).collect();
    // A witness has no other purpose.
    able.sort_by_key(|one| (!one.witness, one.name.clone()));
    let (away, kept): (Vec<&Voter>, Vec<&Voter>) = now
        .iter()
        .filter(|voter| {
            let here = present.iter().find(|one| one.node == voter.node);
            here.is_none_or(may)
        })
        .partition(|voter| lost.contains(&voter.node));
    let kept: Vec<Voter> = kept
        .into_iter()
        .map(|voter| {
            let here = able.iter().find(|one| one.node == voter.node);
            here.map_or(*voter, |one| Voter {
                address: one.address,
                ..*voter
            })
        })
        .collect();
    let count = match named {
        Some(names) => names.len(),
        None => wanted(able.len()).max((kept.len() + away.len()).min(5)),
    };
    let mut voters = kept;
    for one in able {
        if voters.len() >= count {
            break;
        }
        if voters.iter().all(|voter| voter.node != one.node) {
            voters.push(Voter {
                node: one.node,
                address: one.address,
            });
        }
    }
    let places = count.saturating_sub(voters.len());
    voters.extend(away.into_iter().take(places));
    // An even number of voters tolerates no more losses than one voter less.
    if voters.len().is_multiple_of(2) && voters.len() > 1 {
        voters.truncate(voters.len() - 1);
    }
    voters.sort_by_key(|voter| voter.node);
    voters
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(last: u8) -> SocketAddr {
        ([127, 0, 0, last], 1).into()
    }

    fn present(nodes: &[(u64, u8)]) -> Vec<Present> {
        let one = |&(node, last): &(u64, u8)| Present {
            name: format!("n{node}"),
            node,
            address: at(last),
            witness: false,
        };
        nodes.iter().map(one).collect()
    }

    fn voters(nodes: &[(u64, u8)]) -> Vec<Voter> {
        let one = |&(node, last): &(u64, u8)| Voter {
            node,
            address: at(last),
        };
        nodes.iter().map(one).collect()
    }

    const THREE: &[(u64, u8)] = &[(1, 1), (2, 2), (3, 3)];

    #[test]
    fn three_of_three_and_five_of_nine_vote() {
        assert_eq!(choose(&[], &present(THREE), &[], None), voters(THREE));
        let nine: Vec<_> = (1..10).map(|node| (node, node as u8)).collect();
        assert_eq!(
            choose(&voters(THREE), &present(&nine), &[], None),
            voters(&nine[..5])
        );
        assert_eq!(choose(&[], &present(&THREE[..2]), &[], None), voters(&THREE[..1]));
    }

    #[test]
    fn voter_that_returns_at_another_address_is_where_it_is_now() {
        let moved = [(1, 1), (2, 9), (3, 3)];
        assert_eq!(
            choose(&voters(THREE), &present(&moved), &[], None),
            voters(&moved)
        );
    }

    #[test]
    fn voter_that_is_away_stays_until_it_is_lost_and_is_replaced_then() {
        let four = [(1, 1), (3, 3), (4, 4)];
        assert_eq!(choose(&voters(THREE), &present(&four), &[], None), voters(THREE));
        assert_eq!(choose(&voters(THREE), &present(&four), &[2], None), voters(&four));
    }

    #[test]
    fn lost_voter_whose_place_nobody_can_take_keeps_it() {
        let two = [(1, 1), (3, 3)];
        assert_eq!(choose(&voters(THREE), &present(&two), &[2], None), voters(THREE));
        let names: Vec<String> = THREE.iter().map(|(node, _)| format!("n{node}")).collect();
        let chosen = choose(&voters(THREE), &present(&two), &[2], Some(&names));
        assert_eq!(chosen, voters(THREE));
    }

    #[test]
    fn witness_of_two_peers_votes() {
        let mut three = present(THREE);
        three[2].witness = true;
        assert_eq!(choose(&[], &three, &[], None), voters(THREE));
    }

    #[test]
    fn only_named_peers_vote() {
        let names = ["n3".to_owned()];
        let chosen = choose(&voters(THREE), &present(THREE), &[], Some(&names));
        assert_eq!(chosen, voters(&[(3, 3)]));
    }
}
