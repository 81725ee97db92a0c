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

pub(super) struct Cluster {
    pub(super) nodes: Nodes,
    pub(super) noted: Vec<MemberNote>,
    pub(super) settings: OneWriter,
    pub(super) wish: Option<WriterWish>,
}

impl Cluster {
    pub(super) fn new(size: usize, settings: OneWriter) -> Self {
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
    pub(super) fn hear(&self, at: usize, answer: Answer) -> u32 {
        let of = Answerer {
            is_up: true,
            drains: false,
            position: at,
            address: &format!("10.0.0.{at}:3306"),
            reached: &ReachedCount::default(),
            noted: &self.noted[at],
        };
        let orders = WriterOrders {
            wish: self.wish.clone(),
            hold: None,
        };
        self.nodes.heard(&of, answer, orders, &self.settings);
        self.nodes.writer()
    }

    /// The server is asked for a barrier now.
    pub(super) fn ask(&self, at: usize) {
        let mut all = self.nodes.all.lock().unwrap();
        all.node(&format!("10.0.0.{at}:3306")).proof_asked = Some(Instant::now());
    }

    /// The server has waited for the others twice, so that it may follow a writer.
    pub(super) fn prove(&self, at: usize) -> u32 {
        self.hear(at, Answer::Proof(true));
        self.hear(at, Answer::Proof(true))
    }

    pub(super) fn well(&self, at: usize, name: &str) -> u32 {
        self.hear(at, Answer::Status(named(name)));
        self.hear(at, Answer::Proof(true));
        self.hear(at, Answer::Proof(true))
    }

    /// All connections have ended that were to.
    pub(super) fn close(&self) {
        while let Some(address) = self.nodes.closing() {
            self.nodes.closed(&address, &self.settings);
        }
    }

    pub(super) fn serves(&self, at: usize) -> bool {
        Word(self.noted[at].get()).serves()
    }
}

pub(super) fn named(name: &str) -> Status {
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
