//! Servers that answer in many orders, without any.

use std::time::Duration;

use super::super::answer::Status;
use super::{election::natural, node::ALONE, *};
use crate::protocol::{MemberNote, ReachedCount};

pub(super) const FAILBACK: Duration = Duration::from_secs(10);
pub(super) const WRITER: OneWriter = OneWriter {
    order: Vec::new(),
    wait: std::time::Duration::ZERO,
    reads: false,
    donors: false,
    read_wait: std::time::Duration::ZERO,
    read_age: std::time::Duration::ZERO,
    failback: Some(FAILBACK),
    conflict_retries: 0,
    is_only_proxy: false,
};

struct Cluster {
    nodes: Nodes,
    noted: Vec<MemberNote>,
    settings: OneWriter,
    wish: Option<WriterWish>,
}

impl Cluster {
    fn new(size: usize, settings: OneWriter) -> Self {
        let nodes = Nodes::default();
        // The servers had time to answer.
        nodes.all.lock().unwrap().begun = Instant::now().checked_sub(SETTLING);
        Self {
            nodes,
            noted: (0..size).map(|_| MemberNote::default()).collect(),
            settings,
            wish: None,
        }
    }

    /// Returns the name of the writer.
    fn hear(&self, at: usize, answer: Answer) -> u32 {
        let of = Answerer {
            is_up: true,
            drains: false,
            position: at,
            address: &format!("10.0.0.{at}:3306"),
            reached: &ReachedCount::default(),
            noted: &self.noted[at],
        };
        self.nodes.heard(&of, answer, self.wish.clone(), &self.settings);
        self.nodes.writer()
    }

    /// The server has waited for the others twice, so that it may follow a writer.
    fn prove(&self, at: usize) -> u32 {
        self.hear(at, Answer::Proof(true));
        self.hear(at, Answer::Proof(true))
    }

    fn well(&self, at: usize, name: &str) -> u32 {
        self.hear(at, Answer::Status(named(name)));
        self.hear(at, Answer::Proof(true));
        self.hear(at, Answer::Proof(true))
    }

    /// All connections have ended that were to.
    fn close(&self) {
        while let Some(address) = self.nodes.closing() {
            self.nodes.closed(&address, &self.settings);
        }
    }

    fn serves(&self, at: usize) -> bool {
        Word(self.noted[at].get()).serves()
    }
}

/// The order with this number that the server `at` is the writer.
fn ordered(number: u64, at: usize, within: Duration, is_forced: bool) -> WriterWish {
    WriterWish {
        number,
        address: format!("10.0.0.{at}:3306"),
        within,
        is_forced,
    }
}

fn named(name: &str) -> Status {
    Status {
        name: name.into(),
        ..Status::default()
    }
}

#[test]
fn the_writer_stays_until_it_fails_and_the_next_is_the_first_by_number() {
    let cluster = Cluster::new(3, WRITER);
    assert_eq!(cluster.well(0, "pxc-10"), 1);
    assert_eq!((cluster.well(1, "pxc-3"), cluster.well(2, "pxc-2")), (1, 1));
    assert_eq!(
        cluster.hear(0, Answer::Failed("refused".into())),
        0,
        "pxc-2 waits first"
    );
    cluster.close();
    assert_eq!(
        cluster.hear(2, Answer::Proof(true)),
        0,
        "that may have begun before"
    );
    assert_eq!(cluster.hear(2, Answer::Proof(true)), 3);
    assert_eq!(cluster.well(0, "pxc-1"), 3, "it stays");
    let read_only = Status {
        is_read_only: true,
        ..named("pxc-2")
    };
    cluster.hear(2, Answer::Status(read_only));
    cluster.close();
    assert_eq!(cluster.prove(0), 1);
    assert!(cluster.serves(2));
}

#[test]
fn a_server_has_a_role_and_says_why_it_is_out() {
    let cluster = Cluster::new(3, WRITER);
    let said = |at: usize| {
        let status = cluster.nodes.role(&format!("10.0.0.{at}:3306"));
        let words: Vec<&str> = status.why_out.iter().map(|&(word, _)| word).collect();
        (status.role, words.join(" "), status.since)
    };
    assert_eq!(said(0), (Role::Out, "unknown".into(), None));
    cluster.well(0, "a");
    cluster.well(1, "b");
    cluster.hear(2, Answer::Status(named("c")));
    assert_eq!((said(0).0, said(1).0), (Role::Writer, Role::Reader));
    let (role, words, since) = said(2);
    assert_eq!((role, &*words), (Role::Out, "unproven"));
    let rejects = Status {
        why_not: vec![Reason::RejectsQueries],
        is_donor: true,
        ..named("c")
    };
    cluster.hear(2, Answer::Status(rejects));
    let (_, words, still_since) = said(2);
    assert_eq!(
        (&*words, still_since),
        ("rejects_queries donor", since),
        "it is out for as long as before"
    );
    cluster.hear(0, Answer::Failed("refused".into()));
    cluster.close();
    cluster.prove(1);
    assert_eq!(said(1).0, Role::Writer);
    assert_eq!((said(0).0, &*said(0).1), (Role::Out, "failed"));
}

#[test]
fn configured_names_come_first() {
    let order = vec!["b".to_owned(), "a".to_owned()];
    let cluster = Cluster::new(3, OneWriter { order, ..WRITER });
    for (at, name) in ["a", "b", "c"].iter().enumerate() {
        cluster.hear(at, Answer::Status(named(name)));
        cluster.hear(at, Answer::Proof(true));
    }
    assert_eq!(
        cluster.hear(2, Answer::Proof(true)),
        0,
        "others are about to prove it"
    );
    cluster.well(0, "a");
    assert_eq!(cluster.well(1, "b"), 2);
    cluster.hear(1, Answer::Failed("gone".into()));
    cluster.close();
    assert_eq!(cluster.prove(0), 1);
    cluster.hear(2, Answer::Failed("gone".into()));
    assert_eq!(cluster.hear(0, Answer::Failed("gone".into())), 0);
    assert!(!cluster.nodes.has_reader());
}

#[test]
fn a_server_serves_when_it_has_waited_for_the_others_since_it_was_well() {
    let cluster = Cluster::new(1, WRITER);
    cluster.hear(0, Answer::Proof(true));
    cluster.hear(0, Answer::Proof(true));
    cluster.hear(0, Answer::Status(named("a")));
    assert!(!cluster.serves(0), "those were before");
    cluster.hear(0, Answer::Proof(true));
    assert!(!cluster.serves(0), "this one may have begun before");
    cluster.hear(0, Answer::Proof(false));
    cluster.hear(0, Answer::Proof(true));
    assert!(cluster.serves(0));
    cluster.hear(0, Answer::Proof(false));
    assert!(cluster.serves(0), "it is late because of another one");
    let donor = Status {
        is_donor: true,
        ..named("a")
    };
    cluster.hear(0, Answer::Status(donor));
    assert!(!cluster.serves(0));
    assert!(cluster.nodes.take_news() && !cluster.nodes.take_news());
}

#[test]
fn nobody_follows_a_writer_before_the_connections_to_it_have_ended() {
    let read_only = || Status {
        is_read_only: true,
        ..named("a")
    };
    for answer in [Answer::Failed("gone".into()), Answer::Status(read_only())] {
        let cluster = Cluster::new(3, WRITER);
        cluster.well(0, "a");
        cluster.well(1, "b");
        assert_eq!((cluster.well(2, "c"), cluster.nodes.closing()), (1, None));
        cluster.hear(0, answer);
        assert_eq!(cluster.nodes.closing().as_deref(), Some("10.0.0.0:3306"));
        assert_eq!((cluster.prove(1), cluster.prove(1)), (0, 0), "they are open");
        cluster.close();
        assert_eq!(cluster.hear(1, Answer::Proof(true)), 0, "it begins to wait now");
        assert_eq!(cluster.prove(1), 2);
    }
}

#[test]
fn nobody_waits_for_a_reader_that_is_silent() {
    let cluster = Cluster::new(2, WRITER);
    cluster.well(0, "a");
    cluster.well(1, "b");
    let donor = Status {
        is_donor: true,
        ..named("b")
    };
    cluster.hear(1, Answer::Status(donor));
    assert_eq!(cluster.nodes.closing(), None, "it answers what it was asked");
    cluster.well(1, "b");
    cluster.hear(1, Answer::Failed("late".into()));
    assert_eq!(cluster.nodes.closing().as_deref(), Some("10.0.0.1:3306"));
    assert_eq!(cluster.nodes.writer(), 1, "that stays");
}

#[test]
fn a_writer_that_is_no_member_any_more_is_followed() {
    let cluster = Cluster::new(2, WRITER);
    cluster.well(0, "a");
    assert_eq!(cluster.well(1, "b"), 1);
    let is_its = |address: &str| address != "10.0.0.0:3306";
    cluster.nodes.retain(&is_its, &WRITER);
    assert_eq!(cluster.nodes.writer(), 0);
    assert_eq!(cluster.nodes.closing().as_deref(), Some("10.0.0.0:3306"));
    cluster.prove(1);
    assert_eq!(cluster.prove(1), 0, "what is under way there ends first");
    cluster.close();
    cluster.prove(1);
    assert_eq!(cluster.prove(1), 2);
}

#[test]
fn a_planned_move_has_no_writer_until_the_former_one_is_empty_and_the_new_one_has_all() {
    let mut cluster = Cluster::new(3, WRITER);
    cluster.settings.wait = Duration::from_secs(10);
    for (at, name) in [(0, "a"), (1, "b"), (2, "c")] {
        cluster.well(at, name);
    }
    let writes = || [0, 1, 2].map(|at: usize| Word(cluster.noted[at].get()).writes());
    let asks = |at: usize| {
        let mut all = cluster.nodes.all.lock().unwrap();
        all.node(&format!("10.0.0.{at}:3306")).proof_asked = Some(Instant::now());
    };
    assert_eq!((cluster.nodes.writer(), writes()), (1, [true, false, false]));
    cluster.wish = Some(ordered(4, 2, Duration::from_secs(5), false));
    assert_eq!(cluster.hear(1, Answer::Proof(true)), 0, "writes wait");
    assert!(cluster.nodes.is_moving() && cluster.nodes.take_news());
    assert_eq!(writes(), [true, false, false], "what runs there may write");
    assert_eq!(cluster.nodes.emptying(), Some(("10.0.0.0:3306".into(), 1)));
    assert_eq!(cluster.nodes.emptying(), None, "it is said once");
    asks(2);
    assert_eq!(cluster.hear(2, Answer::Proof(true)), 0);
    cluster.nodes.emptied(1, &cluster.settings);
    assert_eq!(
        cluster.hear(2, Answer::Proof(true)),
        0,
        "that barrier began before"
    );
    asks(2);
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
    asks(2);
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
    let mut all = cluster.nodes.all.lock().unwrap();
    all.node("10.0.0.2:3306").proof_asked = Some(Instant::now());
    drop(all);
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
fn who_has_begun_anew_waits_for_a_status_that_was_asked_for_since() {
    let cluster = Cluster::new(2, WRITER);
    let tells = |at: usize, asked: u64| {
        let mut all = cluster.nodes.all.lock().unwrap();
        all.node(&format!("10.0.0.{at}:3306")).status_asked = asked;
        drop(all);
        cluster.hear(at, Answer::Status(named("a")));
    };
    cluster.well(0, "a");
    assert_eq!(cluster.well(1, "b"), 1);
    assert!(!cluster.nodes.is_doubtful(150), "nothing was rejected");
    cluster.nodes.rejects(100);
    assert!(cluster.nodes.is_doubtful(100) && cluster.nodes.take_news());
    tells(0, 90);
    assert!(cluster.nodes.take_news(), "it is looked at again");
    assert!(
        cluster.nodes.is_doubtful(100),
        "the server may have changed its mind since"
    );
    tells(1, 120);
    assert!(cluster.nodes.is_doubtful(100), "that is another server");
    tells(0, 120);
    assert!(cluster.nodes.take_news() && !cluster.nodes.is_doubtful(150));
    tells(0, 130);
    assert!(!cluster.nodes.take_news(), "nobody waits");
    // Somebody has it reject something all the time.
    cluster.nodes.rejects(200);
    assert!(
        !cluster.nodes.is_doubtful(130),
        "that is known of those that came before"
    );
    tells(0, 190);
    assert!(!cluster.nodes.is_doubtful(180) && cluster.nodes.is_doubtful(195));
    cluster.hear(0, Answer::Failed("gone".into()));
    assert!(
        !cluster.nodes.is_doubtful(300),
        "the next writer has rejected nothing"
    );
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
            let mut all = cluster.nodes.all.lock().unwrap();
            all.node("10.0.0.1:3306").proof_asked = Some(Instant::now());
            drop(all);
            assert_eq!(cluster.hear(1, Answer::Proof(true)), 2);
            assert!(!cluster.nodes.is_moving() && cluster.nodes.closing().is_none());
        }
    }
}

#[test]
fn a_server_of_another_cluster_than_the_writers_serves_nobody() {
    let cluster = Cluster::new(3, WRITER);
    let of = |name: &str, cluster: &str| Status {
        cluster: cluster.into(),
        ..named(name)
    };
    for (at, name) in [(0, "a"), (1, "b"), (2, "c")] {
        cluster.hear(at, Answer::Status(of(name, "one")));
        cluster.prove(at);
    }
    assert_eq!(cluster.nodes.writer(), 1);
    // It has become the first server of a cluster of its own.
    cluster.hear(2, Answer::Status(of("c", "other")));
    cluster.prove(2);
    assert!(!cluster.serves(2) && cluster.serves(1));
    let said = cluster.nodes.role("10.0.0.2:3306");
    assert_eq!((said.role, said.why_out[0].0), (Role::Out, "other_cluster"));
    cluster.hear(0, Answer::Failed("gone".into()));
    cluster.close();
    assert_eq!(
        (cluster.prove(2), cluster.prove(1)),
        (0, 2),
        "nor does it take writes"
    );
    // One that leaves its cluster takes nobody with it, whatever id it tells.
    let alone = Status {
        why_not: vec![Reason::NotPrimary],
        ..of("b", "alone")
    };
    cluster.well(0, "a");
    cluster.hear(0, Answer::Status(of("a", "one")));
    cluster.prove(0);
    cluster.hear(1, Answer::Status(alone));
    assert!(cluster.serves(0) && !cluster.serves(2));
    cluster.hear(1, Answer::Status(of("b", "one")));
    cluster.prove(1);
    // Its data is that of the others again.
    cluster.hear(2, Answer::Status(of("c", "one")));
    assert!(!cluster.serves(2), "it has proved nothing of this one");
    cluster.prove(2);
    assert!(cluster.serves(2));
    // All of them are made anew.
    for at in 0..3 {
        cluster.hear(at, Answer::Failed("gone".into()));
    }
    cluster.close();
    for (at, name) in [(0, "a"), (1, "b"), (2, "c")] {
        cluster.hear(at, Answer::Status(of(name, "new")));
        cluster.prove(at);
        cluster.prove(at);
    }
    assert_ne!(cluster.nodes.writer(), 0);
    assert!((0..3).all(|at| cluster.serves(at)));
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
                let mut all = cluster.nodes.all.lock().unwrap();
                all.node("10.0.0.1:3306").proof_asked = Some(Instant::now());
                drop(all);
                assert_eq!(cluster.hear(1, Answer::Proof(true)), 2);
            }
        }
    }
}

#[test]
fn a_reader_that_has_waited_in_vain_serves_when_it_has_caught_up() {
    let cluster = Cluster::new(2, WRITER);
    cluster.well(0, "a");
    cluster.well(1, "b");
    cluster.hear(0, Answer::Late);
    cluster.hear(1, Answer::Late);
    assert_eq!(
        (cluster.serves(0), cluster.nodes.writer()),
        (true, 1),
        "the writer serves"
    );
    assert!(!cluster.serves(1));
    cluster.hear(1, Answer::Status(named("b")));
    cluster.hear(1, Answer::Proof(true));
    assert!(!cluster.serves(1));
    cluster.hear(1, Answer::Proof(true));
    assert!(cluster.serves(1));
}

#[test]
fn all_workers_read_strictly_while_another_proxy_may_write() {
    let cluster = Cluster::new(
        2,
        OneWriter {
            is_only_proxy: true,
            ..WRITER
        },
    );
    let says = |at: usize, others: OtherProxies| {
        let address = format!("10.0.0.{at}:3306");
        let mut all = cluster.nodes.all.lock().unwrap();
        all.node(&address).others_asked = Some(Instant::now());
        drop(all);
        cluster.hear(at, Answer::Others(others));
    };
    let strict = || {
        let [one, other] = [0, 1].map(|at: usize| Word(cluster.noted[at].get()).has_others());
        assert_eq!(one, other, "every server's note has it");
        assert_eq!(one, cluster.nodes.others().may_be());
        one
    };
    cluster.well(0, "a");
    cluster.well(1, "b");
    assert!(strict(), "nobody has told");
    says(0, OtherProxies::None);
    assert!(strict(), "one has not");
    says(1, OtherProxies::None);
    assert!(!strict());
    says(1, OtherProxies::Seen("10.0.0.1:3306".into()));
    assert!(strict());
    cluster.hear(1, Answer::Failed("gone".into()));
    assert!(!strict(), "it serves nobody");
    cluster.well(1, "b");
    assert!(strict(), "it has told of one before");
    says(1, OtherProxies::None);
    assert!(!strict());
    let long_ago = Instant::now().checked_sub(ALONE);
    let mut all = cluster.nodes.all.lock().unwrap();
    all.node("10.0.0.0:3306").others_told = long_ago;
    drop(all);
    assert!(cluster.nodes.look_for_others(&cluster.settings).may_be());
    assert!(strict(), "what was told long ago may not hold any more");
    says(0, OtherProxies::None);
    assert!(!strict());
    let mut all = cluster.nodes.all.lock().unwrap();
    all.node("10.0.0.0:3306").others_told = long_ago;
    drop(all);
    cluster.hear(1, Answer::Proof(true));
    assert!(strict(), "nor when a server answers something else");
}

#[test]
fn names_are_counted_as_people_do() {
    let mut names = ["pxc-10", "pxc-2", "a", "pxc", "pxc-02"];
    names.sort_by(|one, other| natural(one, other));
    assert_eq!(names, ["a", "pxc", "pxc-02", "pxc-2", "pxc-10"]);
}
