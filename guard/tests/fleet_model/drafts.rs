//! One rule left out: a wrong order is found, by the shortest way.

use proxima::fleet::keeper::Rules;

use crate::{
    explore::explore,
    scope::{Request::*, Scope, Uses},
    world::World,
};

const LIMIT: usize = 20_000_000;

/// Finds what goes wrong in this scope.
#[track_caller]
fn is_found_wrong(scope: &Scope) {
    let found = explore(&World::new(scope), LIMIT);
    let (states, took) = (found.states, found.took);
    let Some((way, why)) = &found.wrong else {
        panic!(
            "nothing is found in {states} states, down to depth {}",
            found.depth
        );
    };
    println!("{} steps, {states} states, {took:.1?}", way.len());
    for (number, step) in way.iter().enumerate() {
        println!("{:3}. {step:?}", number + 1);
    }
    println!("     {why}");
}

const ALL: Rules = Rules::ALL;
const USES: Uses = Scope::NOTHING.uses;
const NOTHING: Scope = Scope::NOTHING;
/// A reader says goodbye and starts again, while two write.
const RESTARTED: Scope = Scope {
    removals: 1,
    restarted: &[2],
    restarts: 1,
    joins: &[2],
    prompt: &[(1, 0), (1, 2)],
    ..Scope::TWO_SETS
};
#[test]
fn without_stamps_the_last_to_arrive_stays() {
    is_found_wrong(&Scope {
        rules: Rules { stamps: false, ..ALL },
        ..Scope::TWO_SETS
    });
}

#[test]
fn without_a_lease_a_removed_peer_reads_an_old_value() {
    is_found_wrong(&Scope {
        uses: Uses {
            lease_for_reads: false,
            ..USES
        },
        ..Scope::REMOVED
    });
}

#[test]
fn removed_before_its_lease_ended_a_peer_reads_an_old_value() {
    is_found_wrong(&Scope {
        uses: Uses {
            lease_is_waited_for: false,
            ..USES
        },
        ..Scope::REMOVED
    });
}

#[test]
fn changes_without_a_view_are_acknowledged_before_a_joiner_has_them() {
    is_found_wrong(&Scope {
        uses: Uses {
            view_of_changes: false,
            ..USES
        },
        ..Scope::REMOVED
    });
}

#[test]
fn confirmations_without_a_view_leave_nothing_owed() {
    is_found_wrong(&Scope {
        uses: Uses {
            view_of_confirmations: false,
            ..USES
        },
        ..Scope::REMOVED
    });
}

#[test]
fn unconfirmed_changes_that_are_not_owed_are_never_repaired() {
    is_found_wrong(&Scope {
        rules: Rules {
            doubts_are_missed: false,
            ..ALL
        },
        ..Scope::REMOVED
    });
}

#[test]
fn changes_that_only_the_coordinator_notes_as_owed_are_never_repaired() {
    is_found_wrong(&Scope {
        rules: Rules {
            everybody_records_missed: false,
            ..ALL
        },
        ..Scope::REMOVED
    });
}

#[test]
fn without_clean_up_the_change_of_a_removed_coordinator_stays_at_one_copy() {
    is_found_wrong(&Scope {
        rules: Rules {
            clean_up: false,
            ..ALL
        },
        ..Scope::WRITER_REMOVED
    });
}

#[test]
fn who_returns_with_what_it_had_unconfirmed_reads_it() {
    is_found_wrong(&Scope {
        uses: Uses {
            uncertain_is_deleted: false,
            ..USES
        },
        ..Scope::WRITER_REMOVED
    });
}

#[test]
fn killed_proxy_that_keeps_its_copy_reads_its_unfinished_change() {
    is_found_wrong(&Scope {
        uses: Uses {
            flush_after_kill: false,
            ..USES
        },
        ..Scope::WRITER_KILLED
    });
}

#[test]
fn without_a_floor_a_joiner_stores_an_older_change() {
    is_found_wrong(&Scope {
        rules: Rules { floor: false, ..ALL },
        ..RESTARTED
    });
}

#[test]
fn joiner_that_stores_before_it_has_its_floor_keeps_an_older_change() {
    is_found_wrong(&Scope {
        rules: Rules {
            no_floor_deletes: false,
            ..ALL
        },
        ..RESTARTED
    });
}

#[test]
fn acknowledgements_of_an_earlier_stay_that_count_leave_an_old_value() {
    is_found_wrong(&Scope {
        rules: Rules { stays: false, ..ALL },
        ..RESTARTED
    });
}

#[test]
fn home_that_takes_older_sets_loses_them() {
    is_found_wrong(&Scope {
        rules: Rules {
            decided: false,
            ..ALL
        },
        requests: &[Set(0), Set(1), Incr],
        ..NOTHING
    });
}

#[test]
fn older_sets_that_only_the_home_refuses_are_lost_when_it_moves() {
    is_found_wrong(&Scope {
        uses: Uses {
            everybody_refuses: false,
            ..USES
        },
        requests: &[Set(0), Incr],
        ..Scope::HOME_MOVED
    });
}

#[test]
fn new_home_that_decides_at_once_decides_from_an_old_value() {
    is_found_wrong(&Scope {
        rules: Rules { settle: false, ..ALL },
        requests: &[Incr, Incr],
        ..Scope::HOME_MOVED
    });
}

#[test]
fn set_that_a_home_left_unanswered_is_lost_unless_it_is_drawn_again() {
    is_found_wrong(&Scope {
        rules: Rules {
            homes_that_left: false,
            ..ALL
        },
        requests: &[Set(1), Incr],
        late: &[0],
        removed: &[0],
        removals: 1,
        ..NOTHING
    });
}

#[test]
fn loser_that_is_acknowledged_before_the_copy_has_the_winner_is_read_too_early() {
    is_found_wrong(&Scope {
        uses: Uses {
            winner_is_waited_for: false,
            ..USES
        },
        late: &[0, 1, 2],
        ..Scope::TWO_SETS
    });
}

#[test]
fn write_that_outlives_its_stay_lands_after_the_repair() {
    is_found_wrong(&Scope {
        uses: Uses {
            late_writes_end: false,
            ..USES
        },
        requests: &[Set(1), Set(2)],
        late: &[0],
        removed: &[0],
        removals: 1,
        joins: &[0],
        prompt: &[(1, 2), (2, 1)],
        ..NOTHING
    });
}

#[test]
fn changes_of_a_coordinator_without_a_floor_are_older_than_what_was_acknowledged() {
    is_found_wrong(&Scope {
        uses: Uses {
            floor_before_changes: false,
            ..USES
        },
        requests: &[Set(2), Set(0)],
        removals: 2,
        restarted: &[0, 1],
        restarts: 2,
        joins: &[0, 1],
        prompt: &[(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)],
        ..NOTHING
    });
}
