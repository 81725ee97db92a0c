//! Moves of the writer, among servers that answer in many orders, without any.

use std::time::Duration;

use super::super::answer::Status;
use super::tests::{Cluster, FAILBACK, WRITER, named};
use super::*;
use crate::protocol::ReachedCount;

/// The order with this number that the server `at` is the writer.
fn ordered(number: u64, at: usize, within: Duration, is_forced: bool) -> WriterWish {
    WriterWish {
        number,
        address: format!("10.0.0.{at}:3306"),
        within,
        is_forced,
    }
}

#[test]
fn a_planned_move_has_no_writer_until_the_former_one_is_empty_and_the_new_one_has_all() {
    let mut cluster = Cluster::new(3, WRITER);
    cluster.settings.wait = Duration::from_secs(10);
    for (at, name) in [(0, "a"), (1, "b"), (2, "c")] {
        cluster.well(at, name);
    }
    let writes = || [0, 1, 2].map(|at: usize| Word(cluster.noted[at].get()).writes());
    assert_eq!((cluster.nodes.writer(), writes()), (1, [true, false, false]));
    cluster.wish = Some(ordered(4, 2, Duration::from_secs(5), false));
    assert_eq!(cluster.hear(1, Answer::Proof(true)), 0, "writes wait");
    assert!(cluster.nodes.is_moving() && cluster.nodes.take_news());
    assert_eq!(writes(), [true, false, false], "what runs there may write");
    assert_eq!(cluster.nodes.emptying(), Some(("10.0.0.0:3306".into(), 1)));
    assert_eq!(cluster.nodes.emptying(), None, "it is said once");
    cluster.ask(2);
    assert_eq!(cluster.hear(2, Answer::Proof(true)), 0);
    cluster.nodes.emptied(1, &cluster.settings);
    assert_eq!(
        cluster.hear(2, Answer::Proof(true)),
        0,
        "that barrier began before"
    );
    cluster.ask(2);
    assert_eq!(cluster.hear(2, Answer::Proof(true)), 3);
    assert_eq!(
        (cluster.nodes.is_moving(), writes()),
        (false, [false, false, true])
    );
    assert_eq!(cluster.nodes.closing(), None, "nothing is cut off");
    // It stands: the server is the writer again when it can be.
    cluster.hear(2, Answer::Failed("gone".into()));
    cluster.close();
    cluster.prove(0);
    assert_eq!(cluster.prove(0), 1);
    cluster.well(2, "c");
    assert!(!cluster.nodes.is_moving(), "it has not been well for long");
    let mut all = cluster.nodes.all.lock().unwrap();
    let long_ago = Instant::now().checked_sub(FAILBACK).unwrap();
    all.node("10.0.0.2:3306").able_since = Some(long_ago);
    drop(all);
    assert_eq!(cluster.hear(1, Answer::Proof(true)), 0);
    assert_eq!(
        cluster.nodes.emptying(),
        Some(("10.0.0.0:3306".into(), 2)),
        "another move"
    );
    cluster.nodes.emptied(1, &cluster.settings);
    cluster.ask(2);
    assert_eq!(
        cluster.hear(2, Answer::Proof(true)),
        0,
        "that was for the move before"
    );
    // If it fails meanwhile, the former writer goes on.
    assert_eq!(cluster.hear(2, Answer::Failed("gone".into())), 1);
    assert!(!cluster.nodes.is_moving());
}

#[test]
fn a_hold_has_writes_wait_until_its_word_and_goes_back_without_one() {
    let mut cluster = Cluster::new(3, WRITER);
    cluster.settings.wait = Duration::from_secs(20);
    for (at, name) in [(0, "a"), (1, "b"), (2, "c")] {
        cluster.well(at, name);
    }
    let hold = |number, to: Option<&str>| WriterOrders {
        wish: None,
        hold: Some(WriterHold {
            number,
            to: to.map(str::to_owned),
        }),
    };
    let order = |orders: WriterOrders| {
        cluster.nodes.ordered(orders, &cluster.settings);
        cluster.nodes.writer()
    };
    let held = |is_quiet, has_all| Some(HeldWrites { is_quiet, has_all });
    assert_eq!(cluster.nodes.held(), None);
    assert_eq!(order(hold(1, None)), 0, "writes wait at once");
    assert_eq!(cluster.nodes.held(), held(false, false));
    assert!(cluster.nodes.has_reader(), "reads go on");
    let (address, number) = cluster.nodes.emptying().unwrap();
    assert_eq!(&*address, "10.0.0.0:3306");
    cluster.nodes.emptied(number, &cluster.settings);
    assert_eq!(cluster.nodes.held(), held(true, false));
    // Without an aim the former writer goes on, as soon as the order ends.
    assert_eq!(order(WriterOrders::default()), 1);
    assert_eq!(cluster.nodes.held(), None);
    // With one it is another server, which has waited for the others since it was named.
    assert_eq!(order(hold(2, None)), 0);
    let (_, number) = cluster.nodes.emptying().unwrap();
    cluster.nodes.emptied(number, &cluster.settings);
    cluster.ask(2);
    assert_eq!(order(hold(2, Some("10.0.0.2:3306"))), 0);
    let proves = || {
        let of = Answerer {
            is_up: true,
            drains: false,
            position: 2,
            address: "10.0.0.2:3306",
            reached: &ReachedCount::default(),
            noted: &cluster.noted[2],
        };
        let orders = hold(2, Some("10.0.0.2:3306"));
        cluster
            .nodes
            .heard(&of, Answer::Proof(true), orders, &cluster.settings);
        cluster.nodes.held()
    };
    assert_eq!(proves(), held(true, false), "that barrier began before");
    cluster.ask(2);
    assert_eq!(proves(), held(true, true));
    assert_eq!(cluster.nodes.writer(), 0, "and still waits for the word");
    let wish = WriterOrders {
        wish: Some(ordered(3, 2, Duration::from_secs(5), false)),
        hold: None,
    };
    assert_eq!(order(wish), 3);
    assert!(!cluster.nodes.is_moving() && cluster.nodes.closing().is_none());
}

#[test]
fn a_process_that_stood_still_asks_all_servers_anew() {
    let mut cluster = Cluster::new(2, WRITER);
    cluster.settings.wait = Duration::from_secs(20);
    assert_eq!((cluster.well(0, "a"), cluster.well(1, "b")), (1, 1));
    cluster.nodes.begin_anew(&cluster.settings);
    assert_eq!(cluster.nodes.writer(), 0);
    assert!(!cluster.serves(0) && !cluster.serves(1) && !cluster.nodes.has_reader());
    assert_eq!(cluster.nodes.closing().as_deref(), Some("10.0.0.0:3306"));
    cluster.close();
    assert_eq!(cluster.prove(1), 0, "it has to say that all is well");
    cluster.well(1, "b");
    assert_eq!(cluster.prove(1), 2);
}

#[test]
fn a_writer_that_is_to_do_something_else_is_followed_as_by_an_order() {
    let donor = || Status {
        is_donor: true,
        ..named("a")
    };
    let mut cluster = Cluster::new(3, WRITER);
    cluster.settings.wait = Duration::from_secs(10);
    for (at, name) in [(0, "a"), (1, "c"), (2, "b")] {
        cluster.well(at, name);
    }
    cluster.hear(0, Answer::Status(donor()));
    assert!(cluster.nodes.is_moving() && !cluster.serves(0));
    assert_eq!(cluster.nodes.moving_to().as_deref(), Some("10.0.0.2:3306"));
    assert_eq!(cluster.nodes.closing(), None, "nothing is cut off");
    assert_eq!(cluster.nodes.emptying(), Some(("10.0.0.0:3306".into(), 1)));
    cluster.nodes.emptied(1, &cluster.settings);
    cluster.ask(2);
    assert_eq!(cluster.hear(2, Answer::Proof(true)), 3);
    assert_eq!(cluster.well(0, "a"), 3, "it stays");

    // With nobody to follow it, it stays. In maintenance it has failed.
    let mut cluster = Cluster::new(2, WRITER);
    cluster.settings.wait = Duration::from_secs(10);
    cluster.well(0, "a");
    cluster.hear(0, Answer::Status(donor()));
    assert_eq!((cluster.nodes.writer(), cluster.nodes.is_moving()), (1, false));
    assert_eq!(cluster.nodes.role("10.0.0.0:3306").role, Role::Writer);
    let maintained = Status {
        why_not: vec![Reason::Maintenance],
        ..named("a")
    };
    cluster.hear(0, Answer::Status(maintained));
    assert_eq!((cluster.nodes.writer(), cluster.nodes.is_moving()), (0, false));
    assert_eq!(cluster.nodes.closing().as_deref(), Some("10.0.0.0:3306"));

    // If it is well before that, it goes on.
    let mut cluster = Cluster::new(2, WRITER);
    cluster.settings.wait = Duration::from_secs(10);
    cluster.well(0, "a");
    cluster.well(1, "b");
    cluster.hear(0, Answer::Status(donor()));
    assert_eq!(cluster.nodes.writer(), 0);
    cluster.hear(0, Answer::Status(named("a")));
    cluster.prove(0);
    assert_eq!(cluster.prove(0), 1);

    // The same holds if an order names it.
    cluster.wish = Some(ordered(1, 0, Duration::from_secs(5), false));
    assert_eq!(cluster.hear(1, Answer::Proof(true)), 1);
    cluster.hear(0, Answer::Status(donor()));
    assert!(cluster.nodes.is_moving());
    cluster.hear(0, Answer::Status(named("a")));
    cluster.prove(0);
    assert_eq!((cluster.prove(0), cluster.nodes.is_moving()), (1, false));
}

#[test]
fn a_writer_that_rejects_what_is_new_has_a_moment_for_what_has_reached_it() {
    let read_only = Status {
        is_read_only: true,
        ..named("a")
    };
    let rejects = |why: Reason| Status {
        why_not: vec![why],
        ..named("a")
    };
    for (status, millis) in [
        (rejects(Reason::NotReady), 250),
        (rejects(Reason::NotSynced), 250),
        (rejects(Reason::RejectsQueries), 1_000),
        (read_only, 1_000),
    ] {
        let mut cluster = Cluster::new(3, WRITER);
        cluster.settings.wait = Duration::from_secs(10);
        for (at, name) in [(0, "a"), (1, "b"), (2, "c")] {
            cluster.well(at, name);
        }
        assert_eq!(cluster.hear(0, Answer::Status(status.clone())), 0);
        assert_eq!(cluster.nodes.moving_to().as_deref(), Some("10.0.0.1:3306"));
        assert_eq!(
            cluster.nodes.closing(),
            None,
            "it says itself that it has not run it"
        );
        assert!(cluster.nodes.emptying().is_some());
        std::thread::sleep(Duration::from_millis(millis));
        assert_eq!(cluster.hear(0, Answer::Status(status)), 0);
        assert_eq!(cluster.nodes.closing().as_deref(), Some("10.0.0.0:3306"));
    }
}

#[test]
fn writes_go_back_to_the_server_that_is_named_first_when_it_has_been_well() {
    for failback in [Some(FAILBACK), None] {
        let order = vec!["b".to_owned(), "c".to_owned()];
        let settings = OneWriter {
            order,
            failback,
            wait: Duration::from_secs(10),
            ..WRITER
        };
        let cluster = Cluster::new(3, settings);
        for (at, name) in [(0, "a"), (1, "b"), (2, "c")] {
            cluster.hear(at, Answer::Status(named(name)));
        }
        for at in [0, 1, 2] {
            cluster.prove(at);
        }
        assert_eq!(cluster.nodes.writer(), 2);
        cluster.hear(1, Answer::Failed("gone".into()));
        cluster.close();
        assert_eq!(cluster.prove(2), 3);
        cluster.well(1, "b");
        assert!(!cluster.nodes.is_moving(), "it has not been well for long");
        let mut all = cluster.nodes.all.lock().unwrap();
        all.node("10.0.0.1:3306").able_since = Instant::now().checked_sub(FAILBACK);
        drop(all);
        cluster.hear(0, Answer::Proof(true));
        assert_eq!(cluster.nodes.is_moving(), failback.is_some());
        if failback.is_some() {
            assert_eq!(cluster.nodes.moving_to().as_deref(), Some("10.0.0.1:3306"));
            cluster.nodes.emptying();
            cluster.nodes.emptied(1, &cluster.settings);
            cluster.ask(1);
            assert_eq!(cluster.hear(1, Answer::Proof(true)), 2);
            assert!(!cluster.nodes.is_moving() && cluster.nodes.closing().is_none());
        }
    }
}

#[test]
fn an_order_for_a_server_that_is_read_only_is_given_up() {
    let mut cluster = Cluster::new(2, WRITER);
    cluster.well(0, "a");
    cluster.well(1, "b");
    let read_only = Status {
        is_read_only: true,
        ..named("b")
    };
    cluster.hear(1, Answer::Status(read_only));
    cluster.wish = Some(ordered(3, 1, Duration::from_secs(5), false));
    assert_eq!(cluster.hear(0, Answer::Proof(true)), 1);
    let given_up = cluster.nodes.take_given_up();
    assert_eq!(given_up, Some((3, "the server that was to be it is read-only")));
}

#[test]
fn a_server_that_drains_is_not_made_the_writer_by_an_order() {
    let mut cluster = Cluster::new(3, WRITER);
    cluster.settings.wait = Duration::from_secs(10);
    for (at, name) in [(0, "a"), (1, "b"), (2, "c")] {
        cluster.well(at, name);
    }
    cluster.nodes.all.lock().unwrap().node("10.0.0.2:3306").is_up = false;
    cluster.wish = Some(ordered(1, 2, Duration::from_secs(5), false));
    assert_eq!(cluster.hear(1, Answer::Proof(true)), 1);
    assert!(!cluster.nodes.is_moving());
    cluster.hear(0, Answer::Failed("gone".into()));
    cluster.close();
    cluster.prove(1);
    assert_eq!(cluster.prove(1), 2, "nor when the writer has failed");
}

#[test]
fn an_order_that_was_given_up_is_not_followed_once_more() {
    let mut cluster = Cluster::new(2, WRITER);
    cluster.settings.wait = Duration::from_secs(10);
    cluster.well(0, "a");
    cluster.well(1, "b");
    cluster.wish = Some(ordered(1, 1, Duration::ZERO, false));
    cluster.hear(0, Answer::Proof(true));
    assert!(cluster.nodes.take_given_up().is_some() && cluster.nodes.take_news());
    cluster.hear(0, Answer::Proof(true));
    assert_eq!(
        (cluster.nodes.take_given_up(), cluster.nodes.take_news()),
        (None, false),
        "whoever answers may have seen it before"
    );
}

#[test]
fn a_move_that_takes_too_long_is_given_up_or_cuts_off_what_is_left() {
    for is_forced in [false, true] {
        let mut cluster = Cluster::new(2, WRITER);
        cluster.settings.wait = Duration::from_secs(10);
        cluster.well(0, "a");
        cluster.well(1, "b");
        // There is no time at all.
        cluster.wish = Some(ordered(1, 1, Duration::ZERO, is_forced));
        let writer = cluster.hear(0, Answer::Proof(true));
        match is_forced {
            false => {
                assert_eq!((writer, cluster.nodes.is_moving()), (1, false));
                assert_eq!(cluster.nodes.take_given_up().map(|(order, _)| order), Some(1));
            }
            true => {
                assert_eq!((writer, cluster.nodes.is_moving()), (0, true));
                assert_eq!(cluster.nodes.closing().as_deref(), Some("10.0.0.0:3306"));
                cluster.close();
                cluster.prove(1);
                cluster.ask(1);
                assert_eq!(cluster.hear(1, Answer::Proof(true)), 2);
            }
        }
    }
}
