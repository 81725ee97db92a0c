//! What the agreement promises, tried in a small world.

use proptest::prelude::*;

use super::{
    world::{KEYS, Move, SERVERS, WORKERS, World, id, moves},
    *,
};

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// The model's own rule: another worker's write of a key begins after the one before has ended.
    #[test]
    fn nobody_reads_less_than_was_acknowledged_and_all_come_back(moves in moves()) {
        let mut world = World::new();
        for one in moves {
            world.step(one);
        }
        world.settle();
        for server in 0..SERVERS {
            prop_assert_eq!(world.agreement.standing(id(server)), Standing::Current);
            for worker in 0..WORKERS {
                prop_assert!(world.views[worker].standing(id(server)).is_read());
                for key in 0..KEYS {
                    world.step(Move::Read { worker, key, server });
                }
            }
        }
        prop_assert!(world.writes.iter().all(|write| write.over), "no write waits for ever");
    }
}

#[test]
fn an_old_acknowledgement_does_not_count() {
    let now = Instant::now();
    let mut agreement = Agreement::new(2);
    let acts = agreement.missed(id(0), "pool", "test", Owed::default(), now);
    let [
        Act::Propose {
            epoch,
            standing: Standing::Leaving,
            ..
        },
    ] = acts[..]
    else {
        panic!("{acts:?}");
    };
    assert!(
        agreement
            .acknowledged(0, id(0), epoch, Owed::default(), now)
            .is_empty()
    );
    assert!(
        agreement
            .acknowledged(0, id(0), epoch, Owed::default(), now)
            .is_empty(),
        "twice is once"
    );
    assert!(
        agreement
            .acknowledged(1, id(0), epoch - 1, Owed::default(), now)
            .is_empty(),
        "of another proposal"
    );
    assert_eq!(agreement.standing(id(0)), Standing::Leaving);
    let acts = agreement.acknowledged(1, id(0), epoch, Owed::default(), now);
    assert!(
        matches!(acts[..], [Act::Note { epoch: of, .. }] if of == epoch),
        "{acts:?}"
    );
}

#[test]
fn nobody_goes_on_without_a_copy_before_it_is_noted_that_it_owes() {
    let now = Instant::now();
    let mut agreement = Agreement::new(1);
    let leave = |agreement: &mut Agreement| {
        let acts = agreement.missed(id(0), "pool", "test", Owed::default(), now);
        let [Act::Propose { epoch, .. }] = acts[..] else {
            panic!("{acts:?}");
        };
        assert!(agreement.noted(id(0), epoch).is_empty(), "it may still be read");
        agreement.acknowledged(0, id(0), epoch, Owed::default(), now);
        epoch
    };
    let first = leave(&mut agreement);
    assert_eq!(agreement.standing(id(0)), Standing::Leaving);
    agreement.removed(id(0));
    assert!(agreement.noted(id(0), first).is_empty(), "it is gone");
    let second = leave(&mut agreement);
    assert!(agreement.noted(id(0), first).is_empty(), "of an older proposal");
    let acts = agreement.noted(id(0), second);
    assert!(
        matches!(
            acts[..],
            [Act::Propose {
                standing: Standing::Out,
                ..
            }]
        ),
        "{acts:?}"
    );
    assert!(agreement.noted(id(0), second).is_empty(), "twice is once");
}

#[test]
fn a_group_that_lost_its_majority_comes_back_together() {
    let now = Instant::now();
    let mut agreement = Agreement::new(1);
    agreement.group("pool", 3, 2);
    let mut watched = Vec::new();
    for server in 0..3 {
        let mut acts = agreement.missed(id(server), "pool", "test", Owed::everything(), now);
        while let Some(act) = acts.pop() {
            match act {
                Act::Propose { member, epoch, .. } => {
                    acts.extend(agreement.acknowledged(0, member, epoch, Owed::default(), now));
                }
                Act::Note { member, epoch } => acts.extend(agreement.noted(member, epoch)),
                Act::Watch { member, epoch, .. } => watched.push((member, epoch)),
                _ => {}
            }
        }
    }
    let [(first, one), (second, two), _] = watched[..] else {
        panic!("{watched:?}");
    };
    assert!(
        agreement.reachable(first, one, true).is_empty(),
        "one of three alone may be the one that is cut off"
    );
    let acts = agreement.reachable(second, two, true);
    let together: Vec<MemberId> = acts
        .iter()
        .filter_map(|act| match act {
            Act::Propose {
                member,
                standing: Standing::Joining,
                ..
            } => Some(*member),
            _ => None,
        })
        .collect();
    assert_eq!(
        together,
        [first, second],
        "one after the other, each would be too few to take a write"
    );
}

/// Two workers, one slow connection: the first sees the copy miss a write while a write of the second is still on its way.
#[test]
fn what_another_worker_has_under_way_is_given_up_before_a_debt_is_paid() {
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
    world.step(Move::News);
    world.step(Move::Order { worker: second });
    // Behind the one that is on its way, and past the copy.
    world.step(Move::Write {
        worker: second,
        key: 0,
    });
    world.step(Move::Thaw { server });
    world.agree();
    assert_ne!(
        world.agreement.standing(id(server)),
        Standing::Current,
        "a connection of ours is still open there"
    );
    world.step(Move::Release {
        server,
        connection: 0,
    });
    world.agree();
    assert_eq!(world.agreement.standing(id(server)), Standing::Current);
    world.step(Move::Read {
        worker: second,
        key: 0,
        server,
    });
    assert_eq!(world.acknowledged[0], world.version);
}

#[test]
fn one_that_is_named_no_more_stays_out_and_owes_what_it_missed_when_it_returns() {
    let mut world = World::new();
    let (worker, server) = (0, 0);
    (0..KEYS).for_each(|key| world.step(Move::Write { worker, key }));
    world.step(Move::Vanish { server });
    world.agree();
    world.step(Move::Write { worker, key: 0 });
    world.agree();
    assert_eq!(world.agreement.standing(id(server)), Standing::Out);
    assert_eq!(world.acknowledged[0], world.version, "nobody waits for it");
    world.step(Move::Return { server });
    world.agree();
    assert_eq!(world.agreement.standing(id(server)), Standing::Current);
    assert_eq!(
        world.held(server),
        [None, Some(2)],
        "only what it missed is deleted"
    );
}
