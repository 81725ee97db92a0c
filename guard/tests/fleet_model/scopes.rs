//! What may happen, and is right in every order.

use std::env;

use crate::{
    explore::explore,
    scope::{Request::*, Scope},
    world::World,
};

/// More states than any scope here has.
const LIMIT: usize = 60_000_000;

const NOTHING: Scope = Scope::NOTHING;

/// Visits all states of a scope, in which everything is right.
#[track_caller]
fn holds(scope: &Scope) {
    let found = explore(&World::new(scope), LIMIT);
    println!(
        "{} states, depth {}, {:.1?}",
        found.states, found.depth, found.took
    );
    if let Some((way, why)) = &found.wrong {
        for (number, step) in way.iter().enumerate() {
            println!("{:3}. {step:?}", number + 1);
        }
        panic!("after {} steps {why}", way.len());
    }
    assert!(found.exhausted, "there are more than {LIMIT} states");
}

/// The same for scopes with millions of states.
#[track_caller]
fn holds_in_soak(scope: &Scope) {
    match env::var("PROXIMA_SOAK") {
        Ok(value) if value == "1" => holds(scope),
        _ => println!("skipped: PROXIMA_SOAK=1 is not set"),
    }
}

#[test]
fn two_sets_that_race_leave_equal_copies() {
    holds(&Scope::TWO_SETS);
}

#[test]
fn two_sets_to_copies_that_answer_late_leave_equal_copies() {
    holds(&Scope {
        late: &[0, 1],
        ..Scope::TWO_SETS
    });
}

#[test]
fn decisions_of_a_home_that_moves_are_made_from_different_values() {
    holds(&Scope {
        requests: &[Incr, Incr],
        ..Scope::HOME_MOVED
    });
}

#[test]
fn decisions_of_homes_whose_views_were_missed_are_made_from_different_values() {
    holds(&Scope {
        requests: &[Incr, Incr],
        demoted: &[0],
        views_are_skipped: true,
        ..Scope::HOME_MOVED
    });
}

#[test]
fn peer_that_is_removed_and_returns_reads_no_old_value() {
    holds(&Scope::REMOVED);
}

#[test]
fn set_and_decision_with_a_home_that_moves_lose_nothing() {
    holds(&Scope {
        requests: &[Set(0), Incr],
        ..Scope::HOME_MOVED
    });
}

#[test]
#[cfg_attr(debug_assertions, ignore = "takes long without optimisation")]
fn two_sets_over_links_that_are_lost_leave_equal_copies() {
    holds(&Scope {
        late: &[0, 1],
        losses: 2,
        ..Scope::TWO_SETS
    });
}

#[test]
#[cfg_attr(debug_assertions, ignore = "takes long without optimisation")]
fn three_sets_that_race_leave_equal_copies() {
    holds(&Scope {
        requests: &[Set(0), Set(1), Set(2)],
        ..NOTHING
    });
}

#[test]
#[cfg_attr(debug_assertions, ignore = "takes long without optimisation")]
fn two_sets_and_a_decision_that_race_lose_nothing() {
    holds(&Scope {
        requests: &[Set(0), Set(1), Incr],
        ..NOTHING
    });
}

#[test]
#[cfg_attr(debug_assertions, ignore = "takes long without optimisation")]
fn writer_that_is_removed_and_returns_reads_no_old_value() {
    holds(&Scope::WRITER_REMOVED);
}

#[test]
#[cfg_attr(debug_assertions, ignore = "takes long without optimisation")]
fn writer_that_is_killed_and_starts_again_reads_no_old_value() {
    holds(&Scope::WRITER_KILLED);
}

#[test]
#[cfg_attr(debug_assertions, ignore = "takes long without optimisation")]
fn peer_that_is_removed_twice_before_it_was_repaired_reads_no_old_value() {
    holds(&Scope {
        removals: 2,
        ..Scope::REMOVED
    });
}

#[test]
#[cfg_attr(debug_assertions, ignore = "takes long without optimisation")]
fn set_that_a_home_left_unanswered_is_not_lost() {
    holds(&Scope {
        requests: &[Set(1), Incr],
        late: &[0],
        removed: &[0],
        removals: 1,
        ..NOTHING
    });
}

#[test]
#[cfg_attr(debug_assertions, ignore = "takes long without optimisation")]
fn two_sets_with_a_peer_removed_leave_equal_copies() {
    holds(&Scope {
        removed: &[2],
        removals: 1,
        ..Scope::TWO_SETS
    });
}

#[test]
#[cfg_attr(debug_assertions, ignore = "takes long without optimisation")]
fn two_sets_with_a_writer_removed_leave_equal_copies() {
    holds(&Scope {
        removed: &[0],
        removals: 1,
        ..Scope::TWO_SETS
    });
}

#[test]
fn two_sets_with_a_peer_that_starts_again_leave_equal_copies() {
    holds_in_soak(&Scope {
        removals: 1,
        restarted: &[2],
        restarts: 1,
        joins: &[2],
        ..Scope::TWO_SETS
    });
}

#[test]
fn two_sets_with_a_peer_that_is_removed_and_returns_leave_equal_copies() {
    holds_in_soak(&Scope {
        removed: &[2],
        removals: 1,
        joins: &[2],
        ..Scope::TWO_SETS
    });
}

#[test]
fn two_sets_with_a_writer_that_is_killed_leave_equal_copies() {
    holds_in_soak(&Scope {
        killed: &[0],
        removals: 1,
        ..Scope::TWO_SETS
    });
}

#[test]
fn two_sets_and_a_decision_over_a_lost_link_lose_nothing() {
    holds_in_soak(&Scope {
        requests: &[Set(0), Set(1), Incr],
        losses: 1,
        ..NOTHING
    });
}

#[test]
fn two_decisions_with_the_home_removed_are_made_from_different_values() {
    holds(&Scope {
        requests: &[Incr, Incr],
        removed: &[0],
        removals: 1,
        ..NOTHING
    });
}

#[test]
fn peer_that_leaves_twice_and_decides_between_reads_no_old_value() {
    holds_in_soak(&Scope {
        removals: 2,
        promoted: &[2],
        ..Scope::REMOVED
    });
}
