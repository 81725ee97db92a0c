//! A pool of copies, seen by one worker: what waits for the agreement, and for how long.

use std::time::Duration;

use proxima::{
    engine::News,
    members::{
        MemberId,
        copies::{Owed, Standing, Way},
    },
};

use crate::world::{World, world_of};

const SET: &[u8] = b"set k 0 0 1\r\nx\r\n";

pub(crate) const COPIES: &str = "pools:\n  p:\n    replicated: true\n    eject: {failures: 0}\n    servers: [{address: 10.0.0.1:1, name: a}, \
     {address: 10.0.0.2:1, name: b}, {address: 10.0.0.3:1, name: c}]\nlisteners: [{address: \"127.0.0.1:1\", route: p}]\n";

pub(crate) fn copies() -> World {
    world_of(COPIES)
}

pub(crate) fn id(world: &World, name: &str) -> MemberId {
    let members = world.engine.tree.members();
    members.iter().find(|member| member.name == name).unwrap().id
}

/// What the worker says that the copy owes when it follows this step.
pub(crate) fn owed(world: &mut World, name: &str, standing: Standing) -> Owed {
    let copy = id(world, name);
    world.engine.wishes.news.clear();
    world.engine.follow(copy, 1, standing);
    let found = world.engine.wishes.news.drain(..).find_map(|news| match news {
        News::Follows { owed, .. } => Some(owed),
        _ => None,
    });
    found.unwrap()
}

/// The first question on each new lane is answered; what was held leaves.
pub(crate) fn greet(world: &mut World, names: &[&str]) {
    for name in names {
        assert_eq!(
            world.sent(name),
            "version\r\n",
            "{name} is asked before it is given a write"
        );
        world.reply(name, "VERSION 1.6.18\r\n");
    }
}

/// A set that `a` and `b` have stored and `c` has missed; the client's seat.
fn missed_at_c(world: &mut World) -> usize {
    let client = world.client();
    world.say(client, SET);
    greet(world, &["a", "b", "c"]);
    for name in ["a", "b"] {
        assert_eq!(world.sent(name).as_bytes(), SET);
        world.reply(name, "STORED\r\n");
    }
    let lane = world.lane("c");
    world.leave(lane);
    client
}

#[test]
fn a_missed_write_is_answered_when_the_copy_is_out() {
    let mut world = copies();
    let client = missed_at_c(&mut world);
    let c = id(&world, "c");
    let missed = |news: &News| matches!(news, News::Missed(member, _) if member.id == c);
    assert!(world.engine.wishes.news.iter().any(missed));
    assert_eq!(world.heard(client), "", "somebody may still read the copy");
    world.engine.follow(c, 1, Standing::Leaving);
    world.turn();
    assert_eq!(world.heard(client), "");
    world.engine.follow(c, 2, Standing::Out);
    world.turn();
    assert_eq!(world.heard(client), "STORED\r\n");
}

#[test]
fn write_that_cannot_be_sent_for_want_of_descriptors_is_refused_and_missed_by_nobody() {
    let mut world = copies();
    world.short.insert("c".to_owned());
    let client = world.client();
    world.say(client, SET);
    greet(&mut world, &["a", "b"]);
    for reply in ["STORED\r\n", "HD\r\n"] {
        for name in ["a", "b"] {
            world.reply(name, reply);
        }
    }
    let refused = "SERVER_ERROR 10.0.0.3:1: cannot connect: Too many open files in this proxy\r\n";
    assert_eq!(world.heard(client), refused);
    let mut news = world.engine.wishes.news.iter();
    assert!(news.all(|news| matches!(news, News::Short(_))));
    assert!(
        world
            .engine
            .tree
            .members()
            .iter()
            .all(|member| member.health.failures() == 0)
    );
    world.short.clear();
    world.say(client, SET);
    greet(&mut world, &["c"]);
    for name in ["a", "b", "c"] {
        world.reply(name, "STORED\r\n");
    }
    assert_eq!(world.heard(client), "STORED\r\n");
}

#[test]
fn before_it_follows_a_copy_out_it_gives_up_what_may_still_change_it() {
    let mut world = copies();
    let client = world.client();
    world.say(client, SET);
    greet(&mut world, &["a", "b", "c"]);
    for name in ["a", "b"] {
        world.reply(name, "STORED\r\n");
    }
    let c = id(&world, "c");
    // Another worker has seen it miss a write; here a write is still on its way.
    world.engine.follow(c, 1, Standing::Leaving);
    let news: Vec<&News> = world.engine.wishes.news.iter().collect();
    let broken = news
        .iter()
        .position(|news| matches!(news, News::Broken(member, _) if member.id == c));
    let follows = news.iter().position(
        |news| matches!(news, News::Follows { member, owed, .. } if *member == c && *owed != Owed::default()),
    );
    assert!(
        broken.is_some() && broken < follows,
        "the connection first, then what it owes: {news:?}"
    );
    world.engine.follow(c, 2, Standing::Out);
    world.turn();
    assert_eq!(world.heard(client), "STORED\r\n");
}

#[test]
fn it_is_answered_though_the_copy_is_back_before_the_last_reply() {
    let mut world = copies();
    let client = world.client();
    world.say(client, SET);
    greet(&mut world, &["a", "b", "c"]);
    world.reply("a", "STORED\r\n");
    let lane = world.lane("c");
    world.leave(lane);
    let c = id(&world, "c");
    let back = [
        Standing::Leaving,
        Standing::Out,
        Standing::Joining,
        Standing::Opening,
        Standing::Current,
    ];
    for (epoch, standing) in back.into_iter().enumerate() {
        world.engine.follow(c, epoch as u64, standing);
    }
    world.reply("b", "STORED\r\n");
    assert_eq!(world.heard(client), "STORED\r\n");
}

#[test]
fn no_write_waits_for_ever_when_nothing_is_agreed() {
    let mut world = copies();
    let client = missed_at_c(&mut world);
    world.pass(Duration::from_secs(4));
    let answer = world.heard(client);
    assert!(
        answer.starts_with("SERVER_ERROR a copy missed this write"),
        "{answer:?}"
    );
    assert!(!world.engine.waits(), "nothing is left to look after");
}

/// The copy's new lane is ready, and its question answered.
fn ready(world: &mut World) {
    let client = world.client();
    world.say(client, SET);
    greet(world, &["a", "b", "c"]);
    for name in ["a", "b", "c"] {
        assert_eq!(world.sent(name).as_bytes(), SET);
        world.reply(name, "STORED\r\n");
    }
    assert_eq!(world.heard(client), "STORED\r\n");
}

#[test]
fn a_change_waits_until_no_other_worker_changes_the_key() {
    let mut world = copies();
    ready(&mut world);
    let mut rival = world.rival.claim(b"k", Way::AtOnce);
    assert!(rival.ask());
    let (client, other) = (world.client(), world.client());
    world.say(client, b"set k 0 0 1\r\ny\r\nget k\r\n");
    world.say(other, b"set j 0 0 1\r\nz\r\n");
    for name in ["a", "b", "c"] {
        assert_eq!(
            world.sent(name),
            "set j 0 0 1\r\nz\r\n",
            "another key waits for nobody"
        );
        world.reply(name, "STORED\r\n");
    }
    world.pass(Duration::from_millis(100));
    assert_eq!(
        world.sent("a"),
        "",
        "nor is the same client's next request let past"
    );
    drop(rival);
    world.pass(Duration::from_millis(1));
    for name in ["a", "b", "c"] {
        assert_eq!(world.sent(name), "set k 0 0 1\r\ny\r\n");
        world.reply(name, "STORED\r\n");
    }
    assert_eq!(world.heard(client), "STORED\r\n");
    let mut rival = world.rival.claim(b"k", Way::AtOnce);
    assert!(rival.ask(), "given back with the answer");
}

#[test]
fn a_key_that_another_worker_never_gives_back_is_not_waited_for_for_ever() {
    let mut world = copies();
    ready(&mut world);
    let mut rival = world.rival.claim(b"k", Way::AtOnce);
    assert!(rival.ask());
    let client = world.client();
    world.say(client, b"set k 0 0 1\r\ny\r\nversion\r\n");
    world.pass(Duration::from_secs(59));
    assert_eq!(world.heard(client), "");
    world.pass(Duration::from_secs(2));
    let answer = world.heard(client);
    assert!(
        answer.starts_with("SERVER_ERROR other changes of this key have not ended\r\nVERSION"),
        "{answer:?}"
    );
    drop(rival);
    assert!(
        world.rival.claim(b"k", Way::AtOnce).ask(),
        "nobody waits for it any more"
    );
}

#[test]
fn who_cannot_reach_enough_sends_nothing_and_makes_no_debt() {
    let mut world = copies();
    ready(&mut world);
    let [b, c] = ["b", "c"].map(|name| id(&world, name));
    for member in [b, c] {
        world.engine.follow(member, 1, Standing::Leaving);
        world.engine.follow(member, 2, Standing::Out);
    }
    let news = world.engine.wishes.news.len();
    let client = world.client();
    world.say(client, b"set k 0 0 1\r\ny\r\n");
    let answer = world.heard(client);
    assert!(
        answer.starts_with("SERVER_ERROR only 0 of the 2 copies"),
        "{answer:?}"
    );
    assert_eq!(world.sent("a"), "md k\r\n");
    let a = id(&world, "a");
    let fallen = |news: &News| matches!(news, News::Missed(member, _) if member.id == a);
    assert!(
        world.engine.wishes.news[news..].iter().any(fallen),
        "this side is read again as if rejoining"
    );
    assert_eq!(owed(&mut world, "a", Standing::Leaving), Owed::everything());
    for name in ["b", "c"] {
        assert_eq!(owed(&mut world, name, Standing::Leaving), Owed::default());
    }
}

#[test]
fn a_copy_that_came_while_a_change_waited_owes_it() {
    let mut world = copies();
    let client = world.client();
    let mut rival = world.rival.claim(b"k", Way::AtOnce);
    assert!(rival.ask());
    world.say(client, SET);
    // Through the worker that has the key, the new copy may be given another value before this one is sent to the others.
    world.reload(&COPIES.replace("name: c}", "name: c}, {address: 10.0.0.4:1, name: d}"));
    drop(rival);
    world.pass(Duration::from_millis(1));
    greet(&mut world, &["a", "b", "c"]);
    for name in ["a", "b", "c"] {
        assert_eq!(world.sent(name).as_bytes(), SET);
        world.reply(name, "STORED\r\n");
    }
    assert_eq!(world.heard(client), "", "somebody may still read the new copy");
    assert_ne!(owed(&mut world, "d", Standing::Leaving), Owed::default());
    world.engine.follow(id(&world, "d"), 2, Standing::Out);
    world.turn();
    assert_eq!(world.heard(client), "STORED\r\n");
}
