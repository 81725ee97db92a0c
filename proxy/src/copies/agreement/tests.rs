//! The promises of the agreement, tested in a small world.

use proptest::prelude::*;

use super::{
    world::{KEYS, Move, SERVERS, WORKERS, World, identity, moves},
    *,
};

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// The model's own rule: another worker's write of a key begins after the one before has ended.
    #[test]
    fn no_read_shows_less_than_was_acknowledged_and_all_copies_come_back(moves in moves()) {
        let mut world = World::new();
        for one in moves {
            world.step(one);
        }
        world.settle();
        for server in 0..SERVERS {
            prop_assert_eq!(world.agreement.state(&identity(server)), CopyState::Current);
            for worker in 0..WORKERS {
                prop_assert!(world.reads(worker, server));
                for key in 0..KEYS {
                    world.step(Move::Read { worker, key, server });
                }
            }
        }
        prop_assert!(world.writes.iter().all(|write| write.over), "no write waits for ever");
    }
}

#[test]
fn old_acknowledgement_does_not_count() {
    let now = Instant::now();
    let mut agreement = Agreement::new(2);
    let acts = agreement.mark_stale(&identity(0), "test", MissedKeys::default(), now);
    let [
        Act::Propose(Proposal {
            epoch,
            state: CopyState::Leaving,
            ..
        }),
    ] = acts[..]
    else {
        panic!("{acts:?}");
    };
    assert!(
        agreement
            .acknowledged(0, &identity(0), epoch, MissedKeys::default(), now)
            .is_empty()
    );
    assert!(
        agreement
            .acknowledged(0, &identity(0), epoch, MissedKeys::default(), now)
            .is_empty(),
        "twice is once"
    );
    assert!(
        agreement
            .acknowledged(1, &identity(0), epoch - 1, MissedKeys::default(), now)
            .is_empty(),
        "of another proposal"
    );
    assert_eq!(agreement.state(&identity(0)), CopyState::Leaving);
    let acts = agreement.acknowledged(1, &identity(0), epoch, MissedKeys::default(), now);
    assert!(
        matches!(acts[..], [Act::Save { epoch: of, .. }] if of == epoch),
        "{acts:?}"
    );
}

#[test]
fn no_write_goes_on_without_a_copy_before_the_state_file_says_so() {
    let now = Instant::now();
    let mut agreement = Agreement::new(1);
    let leave = |agreement: &mut Agreement| {
        let acts = agreement.mark_stale(&identity(0), "test", MissedKeys::default(), now);
        let [Act::Propose(Proposal { epoch, .. })] = acts[..] else {
            panic!("{acts:?}");
        };
        assert!(
            agreement.saved(&identity(0), epoch).is_empty(),
            "it may still be read"
        );
        agreement.acknowledged(0, &identity(0), epoch, MissedKeys::default(), now);
        epoch
    };
    let first = leave(&mut agreement);
    assert_eq!(agreement.state(&identity(0)), CopyState::Leaving);
    agreement.removed(&identity(0));
    assert!(agreement.saved(&identity(0), first).is_empty(), "it is gone");
    let second = leave(&mut agreement);
    assert!(
        agreement.saved(&identity(0), first).is_empty(),
        "of an older proposal"
    );
    let acts = agreement.saved(&identity(0), second);
    assert!(
        matches!(
            acts[..],
            [Act::Propose(Proposal {
                state: CopyState::Out,
                ..
            })]
        ),
        "{acts:?}"
    );
    assert!(agreement.saved(&identity(0), second).is_empty(), "twice is once");
}

/// One participant, whose mailbox is emptied by the test, and a disk that writes at once.
#[derive(Default)]
struct Alone {
    proposals: Vec<Proposal>,
    watched: Vec<(ServerIdentity, u64)>,
}

impl Environment for Alone {
    fn propose(&mut self, _: &Agreement, proposal: Proposal) {
        self.proposals.push(proposal);
    }

    fn save(&mut self, _: &Agreement, _: &ServerIdentity, _: u64) -> bool {
        true
    }

    fn watch(&mut self, server: ServerIdentity, epoch: u64, _: u32) {
        self.watched.push((server, epoch));
    }

    fn repair(&mut self, _: RepairTask) {}
}

#[test]
fn pool_that_lost_its_majority_comes_back_together() {
    let now = Instant::now();
    let mut agreement = Agreement::new(1);
    agreement.set_pool("pool", 3, 2);
    let mut world = Alone::default();
    for server in 0..3 {
        let mut acts = agreement.mark_stale(&identity(server), "test", MissedKeys::everything(), now);
        loop {
            agreement.execute(acts, &mut world);
            let Some(proposal) = world.proposals.pop() else {
                break;
            };
            let Proposal { server, epoch, .. } = proposal;
            acts = agreement.acknowledged(0, &server, epoch, MissedKeys::default(), now);
        }
    }
    let [(first, one), (second, two), _] = &world.watched[..] else {
        panic!("{:?}", world.watched);
    };
    assert!(
        agreement.reachable(first, *one, true).is_empty(),
        "one of three alone may be the one that is cut off"
    );
    let acts = agreement.reachable(second, *two, true);
    let together: Vec<&ServerIdentity> = acts
        .iter()
        .filter_map(|act| match act {
            Act::Propose(Proposal {
                server,
                state: CopyState::Joining,
                ..
            }) => Some(server),
            _ => None,
        })
        .collect();
    assert_eq!(
        together,
        [first, second],
        "one after the other, each would be too few to take a write"
    );
}

/// Two workers, one slow connection: the first sees the copy miss a write while a write of the second is
/// still on its way.
#[test]
fn writes_of_another_worker_under_way_are_given_up_before_a_repair() {
    let mut world = World::new();
    let (first, second, server) = (0, 1, 0);
    world.step(Move::Write {
        worker: second,
        key: 0,
    });
    world.step(Move::Hold {
        server,
        connection: 0,
    });
    world.step(Move::Write {
        worker: second,
        key: 0,
    });
    world.step(Move::Freeze { server });
    world.step(Move::Write {
        worker: first,
        key: 1,
    });
    world.step(Move::TimeOut {
        worker: first,
        server,
    });
    world.step(Move::Event);
    world.step(Move::Hear { worker: second });
    // Behind the one that is on its way, and past the copy.
    world.step(Move::Write {
        worker: second,
        key: 0,
    });
    world.step(Move::Thaw { server });
    world.agree();
    assert_ne!(
        world.agreement.state(&identity(server)),
        CopyState::Current,
        "a connection of ours is still open there"
    );
    world.step(Move::Release {
        server,
        connection: 0,
    });
    world.agree();
    assert_eq!(world.agreement.state(&identity(server)), CopyState::Current);
    world.step(Move::Read {
        worker: second,
        key: 0,
        server,
    });
    assert_eq!(world.acknowledged[0], world.version);
}

#[test]
fn departed_copy_stays_out_and_is_repaired_of_what_it_missed_when_it_returns() {
    let mut world = World::new();
    let (worker, server) = (0, 0);
    (0..KEYS).for_each(|key| world.step(Move::Write { worker, key }));
    world.step(Move::Depart { server });
    world.agree();
    world.step(Move::Write { worker, key: 0 });
    world.agree();
    assert_eq!(world.agreement.state(&identity(server)), CopyState::Out);
    assert_eq!(world.acknowledged[0], world.version, "nobody waits for it");
    world.step(Move::Return { server });
    world.agree();
    assert_eq!(world.agreement.state(&identity(server)), CopyState::Current);
    assert_eq!(
        world.held(server),
        [None, Some(2)],
        "only what it missed is deleted"
    );
}
