//! Subscriptions of one client at several servers: the order of confirmations and messages, lost servers and
//! clients, and waits for connections.

use std::time::Duration;

use crate::world::{World, world_of};

/// A world whose channels are at the servers a, b and c by their first letter.
fn channels(dedicated: &str) -> World {
    world_of(&format!(
        "pools:\n  p: {{protocol: redis, servers: [{}], eject: {{failures: 0}}, timeout: 1s, dedicated: {dedicated}}}\n\
         routes: {{main: {{by_prefix: {{prefixes: {{a: {{member: p/a}}, b: {{member: p/b}}}}, default: {{member: p/c}}}}}}}}\n\
         listeners: [{{address: \"127.0.0.1:1\", protocol: redis, route: main}}]\n",
        "{address: 10.0.0.1:1, name: a}, {address: 10.0.0.2:1, name: b}, {address: 10.0.0.3:1, name: c}",
    ))
}

fn ask(words: &str) -> String {
    let words: Vec<&str> = words.split(' ').collect();
    let word = |word: &&str| format!("${}\r\n{word}\r\n", word.len());
    format!(
        "*{}\r\n{}",
        words.len(),
        words.iter().map(word).collect::<String>()
    )
}

/// A server's confirmation, or the client's.
fn confirmed(word: &str, name: &str, count: u32) -> String {
    format!(
        "*3\r\n${}\r\n{word}\r\n${}\r\n{name}\r\n:{count}\r\n",
        word.len(),
        name.len()
    )
}

fn message(channel: &str, text: &str) -> String {
    ask(&format!("message {channel} {text}"))
}

/// A client that has subscribed this, which its servers have confirmed.
fn subscriber(world: &mut World, channels: &str) -> usize {
    let client = world.client();
    world.say(client, ask(&format!("SUBSCRIBE {channels}")).as_bytes());
    for (server, count) in [("a", 1), ("b", 1), ("c", 1)] {
        let its: Vec<&str> = channels
            .split(' ')
            .filter(|name| name.starts_with(server))
            .collect();
        for (at, name) in its.iter().enumerate() {
            world.reply(server, &confirmed("subscribe", name, count + at as u32));
        }
    }
    assert_eq!(
        world.heard(client).matches("subscribe").count(),
        channels.split(' ').count()
    );
    for server in ["a", "b", "c"] {
        world.sent(server);
    }
    client
}

#[test]
fn confirmations_leave_in_the_order_of_the_request_whatever_server_is_first() {
    let mut world = channels("{}");
    let client = world.client();
    world.say(client, ask("SUBSCRIBE a1 b1 a2").as_bytes());
    assert_eq!(world.sent("a"), ask("SUBSCRIBE a1 a2"));
    assert_eq!(world.sent("b"), ask("SUBSCRIBE b1"));
    assert_eq!(world.lanes("c").len(), 0, "nothing is asked of c");
    world.reply("b", &confirmed("subscribe", "b1", 1));
    world.reply("b", &message("b1", "early"));
    assert_eq!(
        world.heard(client),
        "",
        "a1 comes first, and the message behind b1"
    );
    world.reply("a", &confirmed("subscribe", "a1", 1));
    let first = confirmed("subscribe", "a1", 1) + &confirmed("subscribe", "b1", 2);
    assert_eq!(world.heard(client), first);
    world.reply("a", &(confirmed("subscribe", "a2", 2) + &message("a1", "x")));
    let rest = [
        confirmed("subscribe", "a2", 3),
        message("b1", "early"),
        message("a1", "x"),
    ];
    assert_eq!(world.heard(client), rest.concat());
}

#[test]
fn a_message_passes_while_its_server_has_no_part_in_what_is_confirmed() {
    let mut world = channels("{}");
    let client = subscriber(&mut world, "a1 b1");
    world.say(client, ask("SUBSCRIBE a2 c1").as_bytes());
    world.reply("b", &message("b1", "x"));
    world.reply("a", &message("a1", "y"));
    assert_eq!(world.heard(client), message("b1", "x") + &message("a1", "y"));
    world.reply("c", &confirmed("subscribe", "c1", 1));
    world.reply("a", &confirmed("subscribe", "a2", 2));
    assert_eq!(
        world.heard(client),
        confirmed("subscribe", "a2", 3) + &confirmed("subscribe", "c1", 4)
    );
}

#[test]
fn messages_of_several_servers_are_whole_however_their_bytes_come() {
    let mut world = channels("{}");
    let client = subscriber(&mut world, "a1 b1");
    let (first, second) = (message("a1", "from-a"), message("b1", "from-b"));
    let (begin, end) = first.split_at(20);
    world.reply("a", begin);
    world.reply("b", &second);
    world.reply("a", end);
    assert_eq!(world.heard(client), second + &first);
}

#[test]
fn a_pattern_is_at_every_server_and_confirmed_once() {
    let mut world = channels("{}");
    let client = world.client();
    world.say(client, ask("PSUBSCRIBE x* y*").as_bytes());
    for server in ["c", "a", "b"] {
        assert_eq!(world.sent(server), ask("PSUBSCRIBE x* y*"));
        assert_eq!(world.heard(client), "");
        world.reply(server, &confirmed("psubscribe", "x*", 1));
    }
    assert_eq!(world.heard(client), confirmed("psubscribe", "x*", 1));
    for server in ["a", "b", "c"] {
        world.reply(server, &confirmed("psubscribe", "y*", 2));
    }
    assert_eq!(world.heard(client), confirmed("psubscribe", "y*", 2));
    // A server counts its own channels and the patterns, which are everywhere.
    for (server, name, told) in [("a", "a1", 3), ("b", "b1", 4)] {
        world.say(client, ask(&format!("SUBSCRIBE {name}")).as_bytes());
        world.reply(server, &confirmed("subscribe", name, 3));
        assert_eq!(world.heard(client), confirmed("subscribe", name, told));
    }
    // All patterns: servers may name them in any order, and messages come until the last has confirmed.
    world.say(client, ask("PUNSUBSCRIBE").as_bytes());
    let pmessage = ask("pmessage x* x1 z");
    for (server, left) in [("a", 1), ("b", 1), ("c", 0)] {
        assert!(world.sent(server).ends_with(&ask("PUNSUBSCRIBE")));
        world.reply("c", if server == "c" { "" } else { &pmessage });
        let names = if server == "a" { ["x*", "y*"] } else { ["y*", "x*"] };
        let both = confirmed("punsubscribe", names[0], left + 1) + &confirmed("punsubscribe", names[1], left);
        world.reply(server, &both);
    }
    let told = confirmed("punsubscribe", "x*", 3) + &confirmed("punsubscribe", "y*", 2);
    assert_eq!(world.heard(client), pmessage.repeat(2) + &told);
}

#[test]
fn what_is_left_is_counted_and_a_connection_without_subscriptions_is_given_back() {
    let mut world = channels("{}");
    let client = subscriber(&mut world, "a1 a2 b1");
    world.say(client, ask("UNSUBSCRIBE a1 b1 none").as_bytes());
    for (server, counts) in [("b", [1, 0, 0]), ("a", [1, 1, 1])] {
        assert_eq!(world.sent(server), ask("UNSUBSCRIBE a1 b1 none"));
        let names = ["a1", "b1", "none"].iter().zip(counts);
        let said: String = names
            .map(|(name, count)| confirmed("unsubscribe", name, count))
            .collect();
        world.reply(server, &said);
    }
    let told = [("a1", 2), ("b1", 1), ("none", 1)].map(|(name, count)| confirmed("unsubscribe", name, count));
    assert_eq!(world.heard(client), told.concat());
    // Another client gets the connection to b.
    let other = world.client();
    world.say(other, ask("SUBSCRIBE b2").as_bytes());
    assert_eq!(world.lanes("b").len(), 1);
    assert_eq!(world.sent("b"), ask("SUBSCRIBE b2"));
    world.reply("b", &(confirmed("subscribe", "b2", 1) + &message("b2", "x")));
    assert_eq!(
        world.heard(other),
        confirmed("subscribe", "b2", 1) + &message("b2", "x")
    );
    assert_eq!(world.heard(client), "");
    world.say(client, ask("UNSUBSCRIBE").as_bytes());
    assert_eq!(world.sent("a"), ask("UNSUBSCRIBE"));
    world.reply("a", &confirmed("unsubscribe", "a2", 0));
    world.say(client, ask("UNSUBSCRIBE").as_bytes());
    world.say(client, ask("SUNSUBSCRIBE s").as_bytes());
    let none = "*3\r\n$11\r\nunsubscribe\r\n$-1\r\n:0\r\n".to_owned();
    let expected = [
        confirmed("unsubscribe", "a2", 0),
        none,
        confirmed("sunsubscribe", "s", 0),
    ];
    assert_eq!(
        world.heard(client),
        expected.concat(),
        "the proxy knows that there are none"
    );
    assert_eq!(world.sent("a"), "");
}

#[test]
fn a_subscriber_in_resp2_may_ask_for_little_until_its_last_subscription_ends() {
    let mut world = channels("{}");
    let client = subscriber(&mut world, "a1 b1");
    world.say(
        client,
        [ask("GET a"), ask("PING"), ask("PING x")].concat().as_bytes(),
    );
    let heard = world.heard(client);
    assert!(
        heard.starts_with("-ERR Can't execute 'get': only (P|S)SUBSCRIBE"),
        "{heard}"
    );
    assert!(
        heard.ends_with("*2\r\n$4\r\npong\r\n$0\r\n\r\n*2\r\n$4\r\npong\r\n$1\r\nx\r\n"),
        "{heard}"
    );
    world.say(client, [ask("UNSUBSCRIBE"), ask("GET a")].concat().as_bytes());
    world.reply("a", &confirmed("unsubscribe", "a1", 0));
    world.reply("b", &confirmed("unsubscribe", "b1", 0));
    world.reply("a", "$1\r\nv\r\n");
    let told = confirmed("unsubscribe", "a1", 1) + &confirmed("unsubscribe", "b1", 0);
    assert_eq!(world.heard(client), told + "$1\r\nv\r\n");
    let mut world = channels("{}");
    let client = subscriber(&mut world, "a1 b1");
    let lanes = [world.lane("a"), world.lane("b")];
    world.say(client, [ask("RESET"), ask("PING")].concat().as_bytes());
    assert_eq!(world.heard(client), "+RESET\r\n+PONG\r\n");
    assert!(lanes.iter().all(|&lane| world.seats[lane].closed.is_some()));
}

#[test]
fn a_lost_server_closes_the_subscriber_and_its_other_connections() {
    // `during`: a change is under way, in which this server has a part.
    for during in [None, Some("a2 b2"), Some("a2"), Some("b2")] {
        let mut world = channels("{}");
        let client = subscriber(&mut world, "a1 b1");
        let other = subscriber(&mut world, "a3");
        if let Some(names) = during {
            world.say(client, ask(&format!("SUBSCRIBE {names}")).as_bytes());
        }
        let [a, b] = [world.lanes("a")[0], world.lane("b")];
        world.leave(b);
        let heard = world.heard(client);
        assert_eq!(heard.contains("-ERR 10.0.0.2:1: "), during.is_some(), "{heard}");
        assert_eq!(world.seats[client].closed, Some(false), "{during:?}");
        assert!(world.seats[a].closed.is_some(), "{during:?}");
        world.reply("a", &message("a3", "x"));
        assert_eq!(world.heard(other), message("a3", "x"));
    }
}

#[test]
fn a_client_that_leaves_takes_all_its_connections_with_it() {
    for (confirmed_by_b, is_broken) in [(false, false), (true, false), (true, true)] {
        let mut world = channels("{}");
        let client = world.client();
        world.say(client, ask("SUBSCRIBE a1 b1 c1").as_bytes());
        if confirmed_by_b {
            world.reply("b", &confirmed("subscribe", "b1", 1));
        }
        let lanes = ["a", "b", "c"].map(|server| world.lane(server));
        match is_broken {
            true => world.reset(client),
            false => world.leave(client),
        }
        assert!(world.seats[client].closed.is_some());
        assert!(lanes.iter().all(|&lane| world.seats[lane].closed.is_some()));
    }
}

#[test]
fn a_server_that_confirms_nothing_is_late_and_ends_the_subscription() {
    let mut world = channels("{}");
    let client = world.client();
    world.say(client, ask("SUBSCRIBE a1 b1").as_bytes());
    world.reply("a", &confirmed("subscribe", "a1", 1));
    world.pass(Duration::from_millis(900));
    assert_eq!(world.heard(client), confirmed("subscribe", "a1", 1));
    world.pass(Duration::from_millis(300));
    assert_eq!(world.heard(client), "-ERR 10.0.0.2:1: timeout\r\n");
    assert_eq!(world.seats[client].closed, Some(false));
    // A subscriber without a request is never late.
    let client = subscriber(&mut world, "a1 b1");
    world.pass(Duration::from_secs(60));
    assert_eq!(world.seats[client].closed, None);
}

#[test]
fn a_confirmation_that_nobody_has_asked_for_ends_its_connection() {
    for said in [
        confirmed("subscribe", "a2", 2),
        confirmed("unsubscribe", "a1", 0),
        confirmed("ssubscribe", "a1", 1),
    ] {
        let mut world = channels("{}");
        let client = subscriber(&mut world, "a1 b1");
        let lane = world.lane("a");
        world.say(lane, said.as_bytes());
        assert!(world.seats[lane].closed.is_some(), "{said}");
        assert_eq!(world.heard(client), "");
        assert!(world.seats[client].closed.is_some(), "{said}");
    }
}

#[test]
fn a_refusal_of_one_server_answers_the_request() {
    let mut world = channels("{}");
    let client = world.client();
    world.say(client, ask("SUBSCRIBE a1").as_bytes());
    world.reply("a", "-NOPERM no\r\n");
    assert_eq!(world.heard(client), "-NOPERM no\r\n");
    world.say(client, ask("SUBSCRIBE b1").as_bytes());
    world.reply("b", &confirmed("subscribe", "b1", 1));
    assert_eq!(
        world.heard(client),
        confirmed("subscribe", "b1", 1),
        "the client goes on"
    );
    // One of two servers refuses: what the client has subscribed is not what it has asked for.
    world.say(client, ask("SUBSCRIBE a1 b2").as_bytes());
    world.reply("b", &confirmed("subscribe", "b2", 2));
    world.reply("a", "-NOPERM no\r\n");
    assert_eq!(world.heard(client), "-NOPERM no\r\n");
    assert_eq!(world.seats[client].closed, Some(false));
}

#[test]
fn clients_that_want_each_others_connections_do_not_wait_for_ever() {
    let mut world = channels("{max: 1, wait: 30s}");
    let first = subscriber(&mut world, "b1");
    let second = subscriber(&mut world, "a1");
    // This one may wait for b, as its connection is to a. The other one may not wait for a.
    world.say(second, ask("SUBSCRIBE b2").as_bytes());
    assert_eq!(world.heard(second), "");
    world.say(first, ask("SUBSCRIBE a2").as_bytes());
    let heard = world.heard(first);
    assert!(heard.starts_with("-ERR 10.0.0.1:1: all 1 connections"), "{heard}");
    assert_eq!(world.seats[first].closed, None, "it has what it had");
    world.reply("b", &message("b1", "x"));
    assert_eq!(world.heard(first), message("b1", "x"));
    world.leave(first);
    world.reply("b", &confirmed("subscribe", "b2", 1));
    assert_eq!(world.heard(second), confirmed("subscribe", "b2", 2));
}

#[test]
fn a_change_is_sent_only_when_there_is_a_connection_to_every_server() {
    let mut world = channels("{max: 1, wait: 300ms}");
    let holder = subscriber(&mut world, "b1");
    let client = world.client();
    world.say(client, ask("SUBSCRIBE a1 b2 c1").as_bytes());
    assert_eq!((world.sent("a"), world.sent("c")), (String::new(), String::new()));
    world.pass(Duration::from_millis(500));
    let heard = world.heard(client);
    assert!(heard.starts_with("-ERR 10.0.0.2:1: all 1 connections"), "{heard}");
    // What it has waited with is free again, and the client as before.
    let other = subscriber(&mut world, "a1 c1");
    world.say(client, ask("GET a").as_bytes());
    world.reply("a", "$1\r\nv\r\n");
    assert_eq!(world.heard(client), "$1\r\nv\r\n");
    // A client that leaves while it waits holds nothing either.
    world.leave(other);
    world.say(client, ask("SUBSCRIBE a1 b2").as_bytes());
    world.leave(client);
    subscriber(&mut world, "a1 c1");
    world.reply("b", &message("b1", "x"));
    assert_eq!(world.heard(holder), message("b1", "x"));
}

#[test]
fn a_channels_messages_are_published_at_its_server_and_counted_there() {
    let mut world = channels("{}");
    let client = world.client();
    world.say(
        client,
        [
            ask("PUBLISH b1 x"),
            ask("SPUBLISH a1 y"),
            ask("PUBSUB NUMSUB b1 c1 b2"),
        ]
        .concat()
        .as_bytes(),
    );
    assert_eq!(world.sent("a"), ask("SPUBLISH a1 y"));
    assert_eq!(world.sent("b"), ask("PUBLISH b1 x") + &ask("PUBSUB NUMSUB b1 b2"));
    assert_eq!(world.sent("c"), ask("PUBSUB NUMSUB c1"));
    world.reply("c", "*2\r\n$2\r\nc1\r\n:3\r\n");
    world.reply("a", ":7\r\n");
    world.reply("b", ":5\r\n*4\r\n$2\r\nb1\r\n:1\r\n$2\r\nb2\r\n:2\r\n");
    assert_eq!(
        world.heard(client),
        ":5\r\n:7\r\n*6\r\n$2\r\nb1\r\n:1\r\n$2\r\nc1\r\n:3\r\n$2\r\nb2\r\n:2\r\n"
    );
}

#[test]
fn a_subscriber_is_closed_when_another_server_may_get_its_messages() {
    // A server has come.
    let mut world = channels("{}");
    let client = subscriber(&mut world, "a1");
    world.reload(
        "pools: {p: {protocol: redis, servers: [{address: 10.0.0.1:1, name: a}, {address: 10.0.0.9:1, name: z}]}}\n\
         listeners: [{address: \"127.0.0.1:1\", protocol: redis, route: p}]\n",
    );
    world.pass(Duration::from_secs(1));
    assert_eq!(world.seats[client].closed, Some(false));
}

#[test]
fn subscriber_that_takes_nothing_holds_its_server_back_and_is_closed_in_time() {
    let mut world = channels("{}");
    let client = subscriber(&mut world, "a1 b1");
    let other = subscriber(&mut world, "a2");
    world.seats[client].frozen = true;
    let (lane, text) = (world.lanes("b")[0], "x".repeat(30_000));
    let mut said = 0;
    while !world.seats[lane].paused {
        world.say(lane, message("b1", &text).as_bytes());
        said += 1;
    }
    assert!((9..=12).contains(&said), "{said} messages were read");
    assert!(
        world.engine.clients.memory() < 1 << 20,
        "{}",
        world.engine.clients.memory()
    );
    world.pass(Duration::from_secs(5));
    assert_eq!(world.seats[client].closed, None);
    world.reply("a", &message("a2", "x"));
    assert_eq!(world.heard(other), message("a2", "x"));
    world.pass(Duration::from_secs(7));
    assert_eq!(world.seats[client].closed, Some(true));
    assert!(world.seats[lane].closed.is_some());
}

#[test]
fn long_message_reaches_a_slow_subscriber_whole_and_others_wait_behind_it() {
    let mut world = channels("{}");
    let client = subscriber(&mut world, "a1 b1");
    let (a, b) = (world.lanes("a")[0], world.lanes("b")[0]);
    let (long, short) = (message("b1", &"x".repeat(2_000_000)), message("a1", "short"));
    let (mut heard, mut most) = (String::new(), 0);
    for (number, piece) in long.as_bytes().chunks(9_000).enumerate() {
        while world.seats[b].paused {
            world.thaw(client);
            heard += &world.heard(client);
        }
        world.seats[client].frozen = true;
        if number == 50 {
            world.say(a, short.as_bytes());
            assert!(world.seats[a].paused, "its message has to wait");
        }
        world.say(b, piece);
        most = most.max(world.engine.clients.memory());
    }
    world.thaw(client);
    heard += &world.heard(client);
    assert_eq!(heard.len(), long.len() + short.len());
    assert!(heard == long + &short);
    assert!(!world.seats[a].paused && !world.seats[b].paused);
    assert!(most < 1 << 20, "{most} bytes were kept");
}

#[test]
fn long_message_leaves_before_the_answer_to_a_command_that_blocks() {
    let mut world = channels("{}");
    let client = subscriber(&mut world, "b1");
    world.say(client, ask("UNSUBSCRIBE b1").as_bytes());
    let (long, lane) = (message("b1", &"x".repeat(100_000)), world.lane("b"));
    let (begin, end) = long.as_bytes().split_at(50_000);
    world.say(lane, begin);
    assert!(!world.heard(client).is_empty(), "it leaves as it comes");
    world.say(lane, end);
    let heard = world.heard(client);
    assert!(heard.ends_with("x\r\n"));
    world.say(lane, confirmed("unsubscribe", "b1", 0).as_bytes());
    assert_eq!(world.heard(client), confirmed("unsubscribe", "b1", 0));
}

#[test]
fn message_that_stops_in_the_middle_closes_its_subscriber() {
    let mut world = channels("{}");
    let client = subscriber(&mut world, "b1");
    let (long, lane) = (message("b1", &"x".repeat(1_000_000)), world.lanes("b")[0]);
    world.say(lane, &long.as_bytes()[..500_000]);
    assert_eq!(world.seats[client].closed, None);
    world.pass(Duration::from_secs(3));
    assert_eq!(
        world.seats[client].closed,
        Some(true),
        "its client could not tell what comes next"
    );
    assert!(world.seats[lane].closed.is_some());
}

#[test]
fn confirmation_of_any_length_is_counted_and_not_passed_on_as_it_comes() {
    let mut world = channels("{}");
    let name = format!("b{}", "1".repeat(60_000));
    let client = world.client();
    world.say(client, ask(&format!("SUBSCRIBE {name}")).as_bytes());
    let lane = world.lane("b");
    let told = confirmed("subscribe", &name, 1);
    let (begin, end) = told.as_bytes().split_at(30_000);
    world.say(lane, begin);
    assert_eq!(world.heard(client), "");
    world.say(lane, end);
    assert_eq!(world.heard(client), told);
}

#[test]
fn client_that_leaves_in_the_middle_of_a_message_gets_the_rest_first() {
    let mut world = channels("{}");
    let client = subscriber(&mut world, "b1");
    let (long, lane) = (message("b1", &"x".repeat(100_000)), world.lanes("b")[0]);
    let (begin, end) = long.as_bytes().split_at(50_000);
    world.say(lane, begin);
    world.say(client, ask("QUIT").as_bytes());
    assert_eq!(world.seats[client].closed, None);
    world.say(lane, end);
    assert_eq!(world.heard(client), long + "+OK\r\n");
    assert!(world.seats[client].closed.is_some() && world.seats[lane].closed.is_some());
}
