//! The first start: what a proxy without a fleet does, as far as it sees the others. Silence alone never begins a
//! fleet.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    net::SocketAddr,
};

#[cfg(test)]
mod model;

/// What another proxy has answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Its name.
    pub name: String,
    /// The least name among the proxies that it knows to have no fleet, itself included.
    pub lowest: String,
    /// Its fleet.
    pub fleet: Option<u128>,
}

/// What a proxy without a fleet sees.
#[derive(Clone, Debug)]
pub struct Sight<'a> {
    /// Its name.
    pub me: &'a str,
    /// The answers of others.
    pub answers: &'a [Answer],
    /// The least number of proxies, with this one.
    pub expected: usize,
    /// Its own address, if it must be listed and is not.
    pub unlisted: Option<SocketAddr>,
    /// Those that are listed and whose answer is needed, and does not come.
    pub silent: &'a [SocketAddr],
}

/// What it does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FirstStart {
    /// It begins a fleet with those that are there.
    Begin,
    /// It is of this fleet.
    Adopt(u128),
    /// It waits.
    Wait(Waiting),
}

/// Why it waits, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// Those who answer are of more than one fleet.
    SeveralFleets,
    /// This proxy is at this address, which is not listed yet.
    Unlisted(SocketAddr),
    /// These do not answer.
    Silent(Vec<SocketAddr>),
    /// Too few are there.
    TooFew {
        /// So many are needed.
        expected: usize,
        /// The names of those that are there.
        present: Vec<String>,
    },
    /// This one begins.
    Other(String),
}

/// The least of these names: the proxy that begins, as far as this one sees.
pub fn lowest<'a>(me: &'a str, without_fleet: impl IntoIterator<Item = &'a str>) -> &'a str {
    without_fleet.into_iter().fold(me, Ord::min)
}

/// What a proxy without a fleet does.
///
/// Invariant: of proxies that see each other, one at most begins, as all of them must name the same one.
pub fn first_start(sight: &Sight<'_>) -> FirstStart {
    let fleets: BTreeSet<u128> = sight.answers.iter().filter_map(|one| one.fleet).collect();
    if fleets.len() > 1 {
        return FirstStart::Wait(Waiting::SeveralFleets);
    }
    // Others cannot count on a proxy that they may not see.
    if let Some(address) = sight.unlisted {
        return FirstStart::Wait(Waiting::Unlisted(address));
    }
    if let Some(fleet) = fleets.first() {
        return FirstStart::Adopt(*fleet);
    }
    if !sight.silent.is_empty() {
        return FirstStart::Wait(Waiting::Silent(sight.silent.to_vec()));
    }
    let names: BTreeMap<&str, &str> = sight
        .answers
        .iter()
        .map(|one| (&*one.name, &*one.lowest))
        .collect();
    let mut present: BTreeSet<&str> = names.keys().copied().collect();
    present.insert(sight.me);
    if present.len() < sight.expected {
        return FirstStart::Wait(Waiting::TooFew {
            expected: sight.expected,
            present: present.into_iter().map(str::to_owned).collect(),
        });
    }
    let begins = lowest(sight.me, names.keys().copied());
    let agree = sight.answers.iter().all(|one| one.lowest == begins);
    if !agree || begins != sight.me {
        return FirstStart::Wait(Waiting::Other(begins.to_owned()));
    }
    FirstStart::Begin
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SeveralFleets => {
                f.write_str("the listed peers belong to several fleets: list those of one")
            }
            Self::Unlisted(address) => write!(
                f,
                "the Service of the peers does not have this one's own endpoint {address} yet: does it select this pod, \
                 and is that its port?"
            ),
            Self::Silent(silent) => {
                let addresses: Vec<String> = silent.iter().map(ToString::to_string).collect();
                write!(
                    f,
                    "the first start waits for all pods of the Service, of which {} do not answer: {}",
                    silent.len(),
                    addresses.join(", ")
                )
            }
            Self::TooFew { expected, present } => write!(
                f,
                "the first start waits for {expected} peers, and {} are there: {}",
                present.len(),
                present.join(", ")
            ),
            Self::Other(name) => write!(f, "{name} begins the fleet"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(name: &str, lowest: &str, fleet: Option<u128>) -> Answer {
        Answer {
            name: name.to_owned(),
            lowest: lowest.to_owned(),
            fleet,
        }
    }

    fn sight<'a>(me: &'a str, answers: &'a [Answer]) -> Sight<'a> {
        Sight {
            me,
            answers,
            expected: 1,
            unlisted: None,
            silent: &[],
        }
    }

    #[test]
    fn the_least_of_those_that_agree_begins() {
        let agree = [answer("b", "a", None), answer("c", "a", None)];
        assert_eq!(first_start(&sight("a", &agree)), FirstStart::Begin);
        let differ = [answer("b", "a", None), answer("c", "b", None)];
        let other = |name: &str| FirstStart::Wait(Waiting::Other(name.to_owned()));
        assert_eq!(first_start(&sight("a", &differ)), other("a"));
        assert_eq!(first_start(&sight("b", &[answer("a", "a", None)])), other("a"));
        assert_eq!(first_start(&sight("a", &[])), FirstStart::Begin);
    }

    #[test]
    fn a_fleet_that_is_there_is_joined_and_of_several_none() {
        let one = [answer("b", "b", Some(7)), answer("c", "a", None)];
        assert_eq!(first_start(&sight("a", &one)), FirstStart::Adopt(7));
        let two = [answer("b", "b", Some(7)), answer("c", "c", Some(8))];
        assert_eq!(
            first_start(&sight("a", &two)),
            FirstStart::Wait(Waiting::SeveralFleets)
        );
    }

    #[test]
    fn who_is_not_seen_by_all_or_does_not_see_all_waits() {
        let address: SocketAddr = "10.0.0.1:11400".parse().unwrap();
        let fleet = [answer("b", "b", Some(7))];
        let unlisted = Sight {
            unlisted: Some(address),
            ..sight("a", &fleet)
        };
        assert_eq!(
            first_start(&unlisted),
            FirstStart::Wait(Waiting::Unlisted(address))
        );
        let silent = Sight {
            silent: &[address],
            ..sight("a", &[])
        };
        assert_eq!(
            first_start(&silent),
            FirstStart::Wait(Waiting::Silent(vec![address]))
        );
        let few = Sight {
            expected: 3,
            ..sight("a", &[])
        };
        let FirstStart::Wait(why) = first_start(&few) else {
            panic!("it does not wait");
        };
        assert_eq!(
            why.to_string(),
            "the first start waits for 3 peers, and 1 are there: a"
        );
    }
}
