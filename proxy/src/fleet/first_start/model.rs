//! A model of pods that come and go, the API server that lists them and keeps the Lease, and the real rule by which
//! they begin a fleet: never two.
//!
//! Every interleaving is tried for two pods, and random ones for three. Each rule of the protocol is left out once,
//! and must be missed: then two fleets serve at the same time.

use std::{
    collections::{HashSet, VecDeque},
    net::{Ipv4Addr, SocketAddr},
};

use super::{Answer, FirstStart, Sight, first_start, lowest};
use crate::random::Random;

/// A rule that is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Omitted {
    Nothing,
    /// The Lease is read before the pods are listed and asked.
    ReadFirst,
    /// All that are listed answer.
    Silent,
    /// Whoever takes a fleet, from its directory or from another pod, looks whether the Lease is that fleet's.
    Look,
    /// It writes the Lease anew.
    Renew,
    /// It does so when it is listed.
    Listed,
    /// It answers that the fleet is its own before it reads the Lease.
    Mark,
    /// All that answer name the same one.
    Agree,
}

const RULES: [Omitted; 7] = [
    Omitted::ReadFirst,
    Omitted::Silent,
    Omitted::Look,
    Omitted::Renew,
    Omitted::Listed,
    Omitted::Mark,
    Omitted::Agree,
];

const NAMES: [&str; 3] = ["a", "b", "c"];
const MOST: usize = NAMES.len();
/// Processes that end, and directories that are lost, in the exhaustive search.
const ENDS: u8 = 2;
const LOSSES: u8 = 1;
/// No more fleets are begun, so that there is an end.
const FLEETS: u8 = 3;
/// No more versions of the Lease are made.
const VERSIONS: u8 = 5;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// A process begins, in a new pod or in the one that it was in.
    Start(usize),
    /// The API server lists the pod.
    List(usize),
    /// The process ends.
    End(usize),
    /// The pod of a process that has ended is gone.
    Gone(usize),
    /// The directory of a process that has ended is lost.
    Lose(usize),
    /// A pod hears which pods are listed.
    Watch(usize),
    /// A pod asks another one.
    Ask(usize, usize),
    /// The same, and no answer comes.
    Miss(usize, usize),
    /// A pod goes on with what it has begun, or begins with what it sees.
    GoOn(usize),
}

/// How far a pod is with what it begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum Pass {
    #[default]
    None,
    /// It has read this version of the Lease.
    Read(u8),
    /// It has listed the pods since, and asked these.
    Listed(u8, [bool; MOST]),
    /// The Lease is that of its new fleet.
    Won(u8),
    /// It is about to take a fleet.
    Take,
    /// It has read this version of the Lease, which was that fleet's.
    TakeRead(u8),
    /// It was listed since.
    TakeListed(u8),
    /// The Lease is that fleet's, and was written anew.
    Taken(u8),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Pod {
    is_alive: bool,
    /// It answers others, and serves if it has a fleet.
    is_open: bool,
    /// The fleet in its directory.
    fleet: Option<u8>,
    /// The fleet that it is about to take.
    taking: Option<u8>,
    listed: [bool; MOST],
    /// The name that others have told to be the least, and their fleet.
    book: [Option<(u8, Option<u8>)>; MOST],
    pass: Pass,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct World {
    count: usize,
    listed: [bool; MOST],
    /// The version of the Lease, and its fleet.
    lease: (u8, Option<u8>),
    pods: [Pod; MOST],
    ends: u8,
    losses: u8,
    fleets: u8,
}

fn address(pod: usize) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::new(10, 0, 0, pod as u8), 11400))
}

impl World {
    fn new(count: usize, ends: u8, losses: u8) -> Self {
        Self {
            count,
            listed: [false; MOST],
            lease: (0, None),
            pods: [Pod::default(); MOST],
            ends,
            losses,
            fleets: 0,
        }
    }

    /// All pods run and are listed, and the last one has begun a fleet of which no other has heard.
    fn begun(ends: u8, losses: u8) -> Self {
        let mut world = Self::new(MOST, ends, losses);
        let steps = (0..MOST).flat_map(|at| [Step::Start(at), Step::List(at), Step::Watch(at)]);
        for step in steps {
            world = world.make(step, Omitted::Nothing).unwrap_or(world);
        }
        world.fleets = 1;
        world.lease = (1, Some(1));
        world.pods[MOST - 1].fleet = Some(1);
        world
    }

    fn decide(&self, at: usize, omitted: Omitted) -> FirstStart {
        let pod = &self.pods[at];
        let asked = |other: &usize| pod.listed[*other] && *other != at;
        let answers: Vec<Answer> = (0..self.count)
            .filter(asked)
            .filter_map(|other| {
                let (least, fleet) = pod.book[other]?;
                let least = match omitted {
                    Omitted::Agree => NAMES[at],
                    _ => NAMES[usize::from(least)],
                };
                Some(Answer {
                    name: NAMES[other].to_owned(),
                    lowest: least.to_owned(),
                    fleet: fleet.map(u128::from),
                })
            })
            .collect();
        let silent: Vec<SocketAddr> = (0..self.count)
            .filter(asked)
            .filter(|other| pod.book[*other].is_none() && omitted != Omitted::Silent)
            .map(address)
            .collect();
        let is_unlisted = !pod.listed[at] && omitted != Omitted::Listed;
        first_start(&Sight {
            me: NAMES[at],
            answers: &answers,
            expected: 1,
            unlisted: is_unlisted.then(|| address(at)),
            silent: &silent,
        })
    }

    /// The name that a pod says to be the least, and its fleet.
    fn answer(&self, at: usize, omitted: Omitted) -> (u8, Option<u8>) {
        let pod = &self.pods[at];
        let empty = (0..self.count).filter(|other| matches!(pod.book[*other], Some((_, None))));
        let least = lowest(NAMES[at], empty.map(|other| NAMES[other]));
        let least = NAMES.iter().position(|name| *name == least).unwrap();
        let taking = pod.taking.filter(|_| omitted != Omitted::Mark);
        (least as u8, pod.fleet.or(taking))
    }

    /// The step, if it is possible now, leads to the world that is returned.
    fn make(mut self, step: Step, omitted: Omitted) -> Option<Self> {
        match step {
            Step::Start(at) => {
                let pod = &mut self.pods[at];
                if pod.is_alive {
                    return None;
                }
                *pod = Pod {
                    is_alive: true,
                    is_open: pod.fleet.is_none(),
                    fleet: pod.fleet,
                    taking: pod.fleet,
                    pass: pod.fleet.map_or(Pass::None, |_| Pass::Take),
                    ..Pod::default()
                };
            }
            Step::List(at) => {
                if !self.pods[at].is_alive || self.listed[at] {
                    return None;
                }
                self.listed[at] = true;
            }
            Step::End(at) => {
                if !self.pods[at].is_alive || self.ends == 0 {
                    return None;
                }
                self.ends -= 1;
                self.pods[at].is_alive = false;
            }
            Step::Gone(at) => {
                if self.pods[at].is_alive || !self.listed[at] {
                    return None;
                }
                self.listed[at] = false;
            }
            Step::Lose(at) => {
                let pod = &mut self.pods[at];
                if pod.is_alive || pod.fleet.is_none() || self.losses == 0 {
                    return None;
                }
                self.losses -= 1;
                pod.fleet = None;
            }
            Step::Watch(at) => {
                let pod = &mut self.pods[at];
                if !pod.is_alive || !pod.is_open || pod.fleet.is_some() || pod.pass != Pass::None {
                    return None;
                }
                pod.hear(self.listed);
            }
            Step::Ask(at, other) | Step::Miss(at, other) => {
                let pod = self.pods[at];
                let may = pod.is_alive && pod.is_open && pod.fleet.is_none() && pod.listed[other];
                if at == other || !may || !matches!(pod.pass, Pass::None | Pass::Listed(..)) {
                    return None;
                }
                let is_there =
                    matches!(step, Step::Ask(..)) && self.pods[other].is_alive && self.pods[other].is_open;
                let answer = is_there.then(|| self.answer(other, omitted));
                let pod = &mut self.pods[at];
                pod.book[other] = answer;
                if let Pass::Listed(_, asked) = &mut pod.pass {
                    asked[other] = true;
                }
            }
            Step::GoOn(at) => return self.go_on(at, omitted),
        }
        Some(self)
    }

    fn go_on(mut self, at: usize, omitted: Omitted) -> Option<Self> {
        let pod = self.pods[at];
        if !pod.is_alive || pod.is_open && pod.fleet.is_some() {
            return None;
        }
        let next = match pod.pass {
            Pass::None => match self.decide(at, omitted) {
                FirstStart::Adopt(fleet) => {
                    self.pods[at].taking = Some(fleet as u8);
                    Pass::Take
                }
                FirstStart::Begin => Pass::Read(self.lease.0),
                FirstStart::Wait(_) => return None,
            },
            Pass::Read(version) => {
                self.pods[at].hear(self.listed);
                Pass::Listed(version, [false; MOST])
            }
            Pass::Listed(version, asked) => {
                if (0..self.count).any(|other| other != at && pod.listed[other] && !asked[other]) {
                    return None;
                }
                let is_unchanged = version == self.lease.0 || omitted == Omitted::ReadFirst;
                match self.decide(at, omitted) {
                    FirstStart::Begin if is_unchanged && self.lease.0 < VERSIONS && self.fleets < FLEETS => {
                        self.fleets += 1;
                        self.lease = (self.lease.0 + 1, Some(self.fleets));
                        Pass::Won(self.fleets)
                    }
                    _ => Pass::None,
                }
            }
            Pass::Won(fleet) | Pass::Taken(fleet) => {
                let pod = &mut self.pods[at];
                (pod.fleet, pod.taking, pod.is_open) = (Some(fleet), None, true);
                Pass::None
            }
            Pass::Take | Pass::TakeRead(_) | Pass::TakeListed(_) => return self.take(at, omitted),
        };
        self.pods[at].pass = next;
        Some(self)
    }

    /// A pod that is about to take a fleet goes on.
    fn take(mut self, at: usize, omitted: Omitted) -> Option<Self> {
        let pod = &mut self.pods[at];
        let fleet = pod.taking?;
        match pod.pass {
            Pass::TakeRead(version) if self.listed[at] || omitted == Omitted::Listed => {
                pod.pass = Pass::TakeListed(version);
            }
            Pass::TakeListed(version) if version == self.lease.0 && self.lease.0 < VERSIONS => {
                if omitted != Omitted::Renew {
                    self.lease = (version + 1, Some(fleet));
                }
                pod.pass = Pass::Taken(fleet);
            }
            // A process with the directory of a fleet tries again, and others do what they see.
            Pass::TakeRead(_) | Pass::TakeListed(_) if pod.is_open => {
                (pod.taking, pod.pass) = (None, Pass::None);
            }
            Pass::TakeRead(_) | Pass::TakeListed(_) => pod.pass = Pass::Take,
            _ => match self.lease {
                (_, Some(other)) if other != fleet && omitted != Omitted::Look => {
                    (pod.fleet, pod.taking) = (None, None);
                    (pod.pass, pod.is_open) = (Pass::None, true);
                }
                (version, _) => pod.pass = Pass::TakeRead(version),
            },
        }
        Some(self)
    }

    fn steps(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        for at in 0..self.count {
            steps.extend([
                Step::Start(at),
                Step::List(at),
                Step::End(at),
                Step::Gone(at),
                Step::Lose(at),
                Step::Watch(at),
                Step::GoOn(at),
            ]);
            steps.extend((0..self.count).flat_map(|other| [Step::Ask(at, other), Step::Miss(at, other)]));
        }
        steps
    }

    /// The fleets that serve.
    fn serving(&self) -> HashSet<u8> {
        let serving = self.pods.iter().filter(|pod| pod.is_alive && pod.is_open);
        serving.filter_map(|pod| pod.fleet).collect()
    }
}

impl Pod {
    /// These pods are listed.
    fn hear(&mut self, listed: [bool; MOST]) {
        self.listed = listed;
        for (answer, is_listed) in self.book.iter_mut().zip(listed) {
            *answer = answer.filter(|_| is_listed);
        }
    }
}

/// The states of all worlds with two pods, and the shortest way to two fleets, if there is one.
fn explore(omitted: Omitted) -> (usize, Option<Vec<Step>>) {
    let first = World::new(2, ENDS, LOSSES);
    let mut seen = HashSet::from([first]);
    let mut all = vec![(first, None::<(usize, Step)>)];
    let mut next = VecDeque::from([0]);
    while let Some(number) = next.pop_front() {
        let (world, _) = all[number];
        for step in world.steps() {
            let Some(made) = world.make(step, omitted).filter(|made| seen.insert(*made)) else {
                continue;
            };
            all.push((made, Some((number, step))));
            if made.serving().len() > 1 {
                let (mut way, mut at) = (Vec::new(), all.len() - 1);
                while let Some((before, step)) = all[at].1 {
                    way.push(step);
                    at = before;
                }
                way.reverse();
                return (all.len(), Some(way));
            }
            next.push_back(all.len() - 1);
        }
    }
    (all.len(), None)
}

/// Whether two fleets serve at any time in random walks with three pods.
fn walk(omitted: Omitted, walks: u64) -> bool {
    (0..walks).any(|seed| {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut world = match seed % 2 {
            0 => World::new(MOST, 6, 2),
            _ => World::begun(2, 1),
        };
        (0..200).any(|_| {
            let steps = world.steps().into_iter();
            let steps: Vec<World> = steps.filter_map(|step| world.make(step, omitted)).collect();
            // Where nothing can happen any more, nothing does.
            world = steps.get(random.below(steps.len())).copied().unwrap_or(world);
            world.serving().len() > 1
        })
    })
}

/// The second pod takes the fleet of the third one, which ends and begins with an empty directory while the first
/// one looks around. Random walks hardly ever find this way.
const TAKEN: [Step; 20] = [
    Step::Watch(1),
    Step::Ask(1, 0),
    Step::Ask(1, 2),
    Step::GoOn(1),
    Step::GoOn(1),
    Step::GoOn(1),
    Step::GoOn(1),
    Step::End(2),
    Step::Lose(2),
    Step::Start(2),
    Step::Watch(2),
    Step::Ask(2, 0),
    Step::Watch(0),
    Step::Ask(0, 1),
    Step::Ask(0, 2),
    Step::GoOn(0),
    Step::GoOn(0),
    Step::Ask(0, 1),
    Step::Ask(0, 2),
    Step::GoOn(0),
];

/// Whether two fleets serve behind [`TAKEN`].
fn taken(omitted: Omitted) -> bool {
    let ends = [Step::GoOn(0), Step::GoOn(1)];
    let mut world = World::begun(1, 1);
    for step in TAKEN.into_iter().chain(ends) {
        world = world.make(step, omitted).unwrap_or(world);
    }
    world.serving().len() > 1
}

#[test]
fn there_are_never_two_fleets() {
    let (states, wrong) = explore(Omitted::Nothing);
    assert_eq!(wrong, None, "of {states} states");
    assert!(states > 10_000, "{states}");
    assert!(!walk(Omitted::Nothing, 4_000));
    assert!(!taken(Omitted::Nothing));
}

#[test]
fn without_any_of_the_rules_there_are_two() {
    let kept: Vec<Omitted> = RULES
        .into_iter()
        .filter(|&rule| explore(rule).1.is_none() && !walk(rule, 4_000) && !taken(rule))
        .collect();
    assert_eq!(kept, [], "nothing is wrong without these");
}

#[test]
fn pods_that_all_answer_have_a_fleet_in_the_end() {
    let mut random = Random(7);
    for _ in 0..200 {
        let mut world = World::new(3, 0, 0);
        for _ in 0..4_000 {
            let mut steps = world.steps();
            steps.retain(|step| !matches!(step, Step::Miss(..)));
            let step = steps[random.below(steps.len())];
            world = world.make(step, Omitted::Nothing).unwrap_or(world);
        }
        assert!(world.pods.iter().all(|pod| pod.fleet.is_some()), "{world:?}");
    }
}
