//! The lease of one peer, and two leaders, of which the first may not know yet that the second was elected.
//! Raft is taken for correct: a leader that proves its leadership had not lost it when it began to prove it,
//! and only the last one can remove the peer.

use std::{collections::BTreeSet, fmt, sync::Arc};

use proxima::fleet::{Act, Change, Heartbeat, Leadership, Lease, Peer, Roster, Stay, View};

use crate::{
    explore::{Model, explore},
    proxy::print,
    world::announced,
};

/// The length of a tick, in microseconds. A lease takes four of them, and a leader waits for a little more
/// than five.
const TICK: u64 = 20_000;
const LEASE: u64 = 4 * TICK;
/// The hour at which everything begins.
const BEGIN: u64 = 100 * LEASE;
/// So many ticks go by.
const TICKS: u64 = 7;
/// So many heartbeats are sent.
const BEATS: usize = 2;

/// The rules of those who use a lease.
#[derive(Clone, Copy, Debug)]
struct Rules {
    /// The leader waits for longer than the lease, as clocks differ.
    margin: bool,
    /// The leader proves its leadership before it grants.
    proof: bool,
    /// A new leader counts every peer as just heard.
    patience: bool,
    /// The lease counts from the sending of the heartbeat.
    from_sending: bool,
}

const ALL: Rules = Rules {
    margin: true,
    proof: true,
    patience: true,
    from_sending: true,
};

/// How far a heartbeat is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Way {
    /// On its way to this leader.
    Sent(usize),
    /// This leader has heard it.
    Heard(usize),
    /// The grant is on its way back.
    Granted,
    /// The grant was heard.
    Over,
}

#[derive(Clone)]
struct World {
    rules: Rules,
    view: Arc<View>,
    /// The time of both leaders, and the clock of the peer, which loses a tick now and then.
    now: u64,
    clock: u64,
    lease: Arc<Lease>,
    /// The heartbeats, with the clock of the peer when each was sent.
    beats: Vec<(u64, Way)>,
    leaders: Vec<Leadership>,
}

#[derive(Clone, Copy)]
enum Step {
    /// Time goes by.
    Tick,
    /// Time goes by, and the peer's clock does not notice.
    SlowTick,
    /// The peer sends a heartbeat to a leader.
    Send(usize),
    /// A heartbeat is heard.
    Hear(usize),
    /// A leader proves its leadership, and grants.
    Prove(usize),
    /// The peer hears of its grant.
    Take(usize),
    /// Another leader is elected.
    Elect,
    /// The peer is removed.
    Remove,
}

impl fmt::Debug for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tick => write!(f, "a tick goes by"),
            Self::SlowTick => write!(f, "a tick goes by that the peer's clock loses"),
            Self::Send(leader) => write!(f, "the peer sends a heartbeat to leader {leader}"),
            Self::Hear(_) => write!(f, "the leader hears it"),
            Self::Prove(_) => write!(f, "the leader grants the lease"),
            Self::Take(_) => write!(f, "the peer hears of it"),
            Self::Elect => write!(f, "another leader is elected"),
            Self::Remove => write!(f, "the peer is removed"),
        }
    }
}

impl World {
    fn new(rules: Rules) -> Self {
        let mut roster = Roster::default();
        let peers: Vec<Peer> = vec![announced(0, 1)];
        roster.apply(&Change::Join { peers });
        let mut world = Self {
            rules,
            view: Arc::new(roster.view),
            now: BEGIN,
            clock: BEGIN / 2,
            lease: Arc::default(),
            beats: Vec::new(),
            leaders: Vec::new(),
        };
        world.elect();
        world
    }

    fn elect(&mut self) {
        // Waiting for a shorter lease, with the margin, is waiting for the lease without it.
        let lease = if self.rules.margin {
            LEASE
        } else {
            LEASE * 100 / 101 - TICK
        };
        let since = if self.rules.patience { self.now } else { 0 };
        self.leaders.push(Leadership::new(since, lease));
    }

    /// Does the last leader take the lease for ended?
    fn is_over(&self) -> bool {
        let Some(leader) = self.leaders.last() else {
            return false;
        };
        let acts = leader.clone().decide(self.now, &self.view, &BTreeSet::new());
        acts.iter()
            .any(|act| matches!(act, Act::Propose(Change::Remove { .. })))
    }

    fn renew(&mut self, until: u64) {
        let lease = Lease::default();
        lease.renew(self.lease.until());
        lease.renew(until);
        self.lease = Arc::new(lease);
    }

    /// A leader hears a heartbeat.
    fn hear(&mut self, number: usize, leader: usize) {
        let beat = Heartbeat {
            name: "a".to_owned(),
            stay: Stay(1),
            sent: self.beats[number].0,
            ..Heartbeat::default()
        };
        let may = self.leaders[leader].heartbeat(self.now, &self.view, &beat);
        self.beats[number].1 = if may { Way::Heard(leader) } else { Way::Over };
    }
}

impl Model for World {
    type Step = Step;

    fn steps(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        if self.view.peers.is_empty() {
            return steps;
        }
        if self.now < BEGIN + TICKS * TICK {
            steps.push(Step::Tick);
            // One tick in seven: more than clocks differ by.
            let lost = (self.now - BEGIN) - (self.clock - BEGIN / 2);
            steps.extend((lost == 0).then_some(Step::SlowTick));
        }
        if self.beats.len() < BEATS {
            steps.extend((0..self.leaders.len()).map(Step::Send));
        }
        for (number, (_, way)) in self.beats.iter().enumerate() {
            match way {
                Way::Sent(_) => steps.push(Step::Hear(number)),
                Way::Heard(leader) if leader + 1 == self.leaders.len() || !self.rules.proof => {
                    steps.push(Step::Prove(number));
                }
                Way::Granted => steps.push(Step::Take(number)),
                Way::Heard(_) | Way::Over => {}
            }
        }
        steps.extend((self.leaders.len() == 1).then_some(Step::Elect));
        steps.extend(self.is_over().then_some(Step::Remove));
        steps
    }

    fn make(&mut self, step: Step) {
        match step {
            Step::Tick => (self.now, self.clock) = (self.now + TICK, self.clock + TICK),
            Step::SlowTick => self.now += TICK,
            Step::Send(leader) => self.beats.push((self.clock, Way::Sent(leader))),
            Step::Hear(number) => {
                if let Way::Sent(leader) = self.beats[number].1 {
                    self.hear(number, leader);
                }
            }
            Step::Prove(number) => self.beats[number].1 = Way::Granted,
            Step::Take(number) => {
                let sent = self.beats[number].0;
                let from = if self.rules.from_sending { sent } else { self.clock };
                self.renew(from + LEASE);
                self.beats[number].1 = Way::Over;
            }
            Step::Elect => self.elect(),
            Step::Remove => self.view = Arc::default(),
        }
    }

    fn fingerprint(&self) -> u64 {
        let leaders = format!("{:?}", self.leaders);
        let peers = self.view.peers.len();
        print(&(
            self.now,
            self.clock,
            self.lease.until(),
            peers,
            &self.beats,
            leaders,
        ))
    }

    fn wrong(&self) -> Option<String> {
        let is_wrong = self.view.peers.is_empty() && self.lease.is_valid(self.clock);
        is_wrong.then(|| "the peer was removed while its lease ran".to_owned())
    }
}

#[track_caller]
fn is_found_wrong(rules: Rules) {
    let found = explore(&World::new(rules), 5_000_000);
    let Some((way, why)) = &found.wrong else {
        panic!("nothing is found in {} states", found.states);
    };
    println!("{} steps, {} states, {:.1?}", way.len(), found.states, found.took);
    for (number, step) in way.iter().enumerate() {
        println!("{:3}. {step:?}", number + 1);
    }
    println!("     {why}");
}

#[test]
#[cfg_attr(debug_assertions, ignore = "takes long without optimisation")]
fn peer_is_never_removed_while_its_lease_runs() {
    let found = explore(&World::new(ALL), 20_000_000);
    println!(
        "{} states, depth {}, {:.1?}",
        found.states, found.depth, found.took
    );
    assert_eq!(found.wrong.map(|(_, why)| why), None);
    assert!(found.exhausted);
}

#[test]
fn leader_that_waits_without_a_margin_removes_a_peer_whose_clock_is_slow() {
    is_found_wrong(Rules { margin: false, ..ALL });
}

#[test]
#[cfg_attr(debug_assertions, ignore = "takes long without optimisation")]
fn lease_granted_without_proof_of_leadership_outlives_the_removal() {
    is_found_wrong(Rules { proof: false, ..ALL });
}

#[test]
fn new_leader_that_removes_at_once_removes_a_peer_with_a_lease() {
    is_found_wrong(Rules {
        patience: false,
        ..ALL
    });
}

#[test]
#[cfg_attr(debug_assertions, ignore = "takes long without optimisation")]
fn lease_counted_from_hearing_of_it_outlives_the_removal() {
    is_found_wrong(Rules {
        from_sending: false,
        ..ALL
    });
}
