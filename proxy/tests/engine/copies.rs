//! A pool of copies, seen by one worker: what waits for the agreement, and for how long.

use std::time::Duration;

use proxima::{
    engine::News,
    members::{
        MemberId,
        copies::{Owed, Standing},
    },
};

use crate::world::{World, world_of};

const SET: &[u8] = b"set k 0 0 1\r\nx\r\n";

pub(crate) fn copies() -> World {
    world_of(
        "pools:\n  p:\n    replicated: true\n    eject: {failures: 0}\n    servers: [{address: 10.0.0.1:1, name: a}, \
         {address: 10.0.0.2:1, name: b}, {address: 10.0.0.3:1, name: c}]\nlisteners: [{address: \"127.0.0.1:1\", route: p}]\n",
    )
}

pub(crate) fn id(world: &World, name: &str) -> MemberId {
    let members = world.engine.tree.members();
    members.iter().find(|member| member.name == name).unwrap().id
}

/// The first question on each new lane is answered; what was held leaves.
pub(crate) fn greet(world: &mut World, names: &[&str]) {
    for name in names {
        assert_eq!(
            world.sent(name),
            "version\r\n",
            "{name} is asked before it is given a write"
        );
        world.reply(name, "VERSION 1\r\n");
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

#[test]
fn what_follows_in_the_pipeline_waits_for_a_decision_and_its_spreading() {
    let mut world = copies();
    let client = world.client();
    world.say(client, b"incr k 1\r\nget k\r\n");
    let lanes: Vec<&str> = ["a", "b", "c"]
        .into_iter()
        .filter(|name| !world.lanes(name).is_empty())
        .collect();
    let [home] = lanes[..] else {
        panic!("one copy decides, not {lanes:?}");
    };
    greet(&mut world, &[home]);
    assert_eq!(world.sent(home), "incr k 1\r\n");
    world.reply(home, "5\r\n");
    assert_eq!(world.heard(client), "", "the others have not heard of it");
    let others: Vec<&str> = ["a", "b", "c"].into_iter().filter(|name| *name != home).collect();
    greet(&mut world, &others);
    for other in &others {
        assert_eq!(world.sent(other), "delete k\r\n");
        world.reply(other, "NOT_FOUND\r\n");
    }
    assert_eq!(world.heard(client), "5\r\n");
    let asked: Vec<&str> = ["a", "b", "c"]
        .into_iter()
        .filter(|name| world.sent(name) == "get k\r\n")
        .collect();
    assert_eq!(asked.len(), 1, "{asked:?}");
}

#[test]
fn a_home_that_changes_hands_is_waited_for_and_not_for_ever() {
    let mut world = copies();
    for name in ["a", "b", "c"] {
        world.engine.follow(id(&world, name), 1, Standing::Leaving);
    }
    let client = world.client();
    world.say(client, b"incr k 1\r\n");
    world.pass(Duration::from_millis(500));
    assert_eq!(world.heard(client), "");
    world.pass(Duration::from_secs(3));
    let answer = world.heard(client);
    assert!(
        answer.starts_with("SERVER_ERROR no copy may decide"),
        "{answer:?}"
    );
}
