//! Dedicated lanes for one request each: which one is taken, what is left on it, and what it means for health.

use std::{
    thread,
    time::{Duration, Instant},
};

use proxima::{members::QuotaWish, protocol::Protocols};

use crate::{
    client::Client,
    conversation::over,
    dedicated::{self, DEDICATED, hear},
    lines::{LINES, Lines},
    proxy::{PATIENT, Proxy, becomes},
    server::{self, PASSWORD, digest},
};

static KNOWN: Lines = Lines::fitting(PASSWORD);
static FITTING: Protocols = Protocols::new(&[&KNOWN]);

fn one(settings: &str, protocols: &Protocols, test: impl Fn(&Proxy)) {
    over("p", &[|| server::start("one")], settings, protocols, test);
}

fn ask(client: &mut Client, line: &str) -> String {
    dedicated::ask(client, line).unwrap()
}

#[test]
fn clients_take_turns_on_few_lanes_and_no_two_are_on_one_at_a_time() {
    one(PATIENT, &LINES, |proxy| {
        let mut clients: Vec<Client> = (0..8).map(|_| Client::each(proxy.address)).collect();
        for _ in 0..20 {
            for client in &mut clients {
                client.say("WHO k\nPUT k v\nGET k\n").unwrap();
            }
            for client in &mut clients {
                assert!(hear(client).unwrap().starts_with("= connection "));
                assert_eq!(hear(client).unwrap(), "+");
                assert!(hear(client).unwrap().starts_with("= v of "));
            }
        }
        assert!(proxy.metrics().open_lanes <= 8);
        assert_eq!(
            proxy
                .metrics()
                .members
                .iter()
                .map(|member| member.dedicated)
                .sum::<u64>(),
            0
        );
        // One after the other, all use one.
        let connections: Vec<String> = clients.iter_mut().map(|client| ask(client, "WHO k")).collect();
        assert!(
            connections.iter().all(|connection| *connection == connections[0]),
            "{connections:?}"
        );
    });
}

#[test]
fn a_lane_is_reset_before_another_client_has_it_and_closed_if_that_fails() {
    one(PATIENT, &LINES, |proxy| {
        let (mut ann, mut bob) = (Client::new(proxy.address), Client::new(proxy.address));
        assert_eq!(ask(&mut ann, "HOLD k"), "+");
        assert_eq!(ask(&mut ann, "VAR k mine"), "+");
        let own = ask(&mut ann, "TELLME k");
        let connection = own
            .strip_prefix("= mine, ")
            .unwrap_or_else(|| panic!("{own}"))
            .to_owned();
        ann.say("FREE k\nGET k\n").unwrap();
        assert_eq!(hear(&mut ann).unwrap(), "+");
        // The lane is nobody's before its server has answered: this client gets another one, or waits.
        let next = ask(&mut bob, "TELLME k");
        assert!(next.starts_with("= nothing, "), "{next}");
        // It is reset when that is over, and one of several that hold lanes has it.
        let mut holders: Vec<Client> = Vec::new();
        let is_taken = (0..DEDICATED - 2).any(|_| {
            thread::sleep(Duration::from_millis(5));
            let mut client = Client::new(proxy.address);
            assert_eq!(ask(&mut client, "HOLD k"), "+");
            let told = ask(&mut client, "TELLME k");
            holders.push(client);
            told == format!("= nothing, {connection}")
        });
        assert!(is_taken, "nobody has {connection}");
        drop(holders);
        // A server that does not forget.
        let mut cid = Client::new(proxy.address);
        assert_eq!(ask(&mut cid, "VAR k sticky"), "+");
        for _ in 0..50 {
            let mut client = Client::new(proxy.address);
            let told = ask(&mut client, "TELLME k");
            assert!(told.starts_with("= nothing, "), "{told}");
        }
    });
}

#[test]
fn the_idle_lane_that_suits_best_is_taken() {
    one(PATIENT, &FITTING, |proxy| {
        // Two lanes at a time, of which one knows two texts.
        let (mut ann, mut bob) = (Client::each(proxy.address), Client::each(proxy.address));
        assert_eq!(ask(&mut ann, "HOLD k"), "+");
        assert!(ask(&mut ann, "RUN k a").starts_with("= a for k: text 0 of 1"));
        assert!(ask(&mut ann, "RUN k b").starts_with("= b for k: text 1 of 2"));
        assert_eq!(ask(&mut bob, "HOLD k"), "+");
        assert!(ask(&mut bob, "RUN k c").starts_with("= c for k: text 0 of 1"));
        for client in [&mut ann, &mut bob] {
            assert_eq!(ask(client, "FREE k"), "+");
        }
        for _ in 0..5 {
            let told = ask(&mut bob, "RUN k a");
            assert!(
                told.starts_with("= a for k: text 0 of 2"),
                "bob's own was used last: {told}"
            );
        }
    });
}

/// Nothing but dedicated requests reaches these servers. The first one is silent after its login, the second one
/// closes the connection at the first request, which may be the request's fault, and the third one in the login.
#[test]
fn a_server_that_answers_no_dedicated_request_is_ejected() {
    let settings = "timeout: 200ms, eject: {failures: 3, probe_initial: 1m, probe_max: 1m}";
    for name in ["mute", "rude", "shut"] {
        over("p", &[move || server::start(name)], settings, &LINES, |proxy| {
            let begun = Instant::now();
            let most = Duration::from_secs(if name == "rude" { 1 } else { 10 });
            while proxy.members[0].is_up() && begun.elapsed() < most {
                let mut client = Client::each(proxy.address);
                let failed = ask(&mut client, "GET k");
                assert!(failed.starts_with("? proxy: "), "{failed}");
            }
            assert_eq!(proxy.members[0].is_up(), name == "rude", "{name}");
        });
    }
}

#[test]
fn a_large_request_waits_for_a_dedicated_lane_in_its_turn() {
    one("timeout: 2s, eject: {failures: 0}", &LINES, |proxy| {
        let mut holders: Vec<Client> = (0..DEDICATED).map(|_| Client::new(proxy.address)).collect();
        for holder in &mut holders {
            assert_eq!(ask(holder, "HOLD k"), "+");
        }
        let value = "0123456789".repeat(50_000);
        let blob = format!("BLOB k {}\n{value}GET k\n", value.len());
        let mut client = Client::each(proxy.address);
        client.say(&blob).unwrap();
        proxy.has_read();
        let mut late = Client::each(proxy.address);
        late.say("GET k\n").unwrap();
        proxy.has_read();
        assert_eq!(ask(&mut holders[0], "FREE k"), "+");
        let expected = format!("= {} of one", digest(value.as_bytes()));
        assert_eq!(hear(&mut client).unwrap(), "+");
        assert_eq!(hear(&mut client).unwrap(), expected);
        assert_eq!(hear(&mut late).unwrap(), expected, "it was behind");
        // One that waits too long is refused, its value is read to its end, and its client goes on.
        assert_eq!(ask(&mut holders[0], "HOLD k"), "+");
        let mut refused = Client::each(proxy.address);
        refused.say(&blob.replace("GET k", "AS ann")).unwrap();
        let answer = hear(&mut refused).unwrap();
        assert!(answer.ends_with("(dedicated.max) are in use"), "{answer}");
        assert_eq!(hear(&mut refused).unwrap(), "+");
        // One that leaves meanwhile takes no lane with it.
        let mut gone = Client::each(proxy.address);
        gone.say(&blob[..blob.len() / 2]).unwrap();
        proxy.has_read();
        drop(gone);
        assert_eq!(ask(&mut holders[0], "FREE k"), "+");
        assert_eq!(ask(&mut late, "GET k"), expected);
    });
}

#[test]
fn idle_lanes_end_after_their_time() {
    let settings = "timeout: 1m, eject: {failures: 0}, dedicated: {idle: 4, idle_timeout: 300ms}";
    one(settings, &LINES, |proxy| {
        let mut client = Client::each(proxy.address);
        let first = ask(&mut client, "WHO k");
        for _ in 0..5 {
            thread::sleep(Duration::from_millis(100));
            assert_eq!(ask(&mut client, "WHO k"), first, "it is in use");
        }
        becomes("the lane has ended", || proxy.metrics().open_lanes == 0);
        assert_ne!(ask(&mut client, "WHO k"), first);
    });
}

#[test]
fn lanes_of_all_workers_are_bounded_together() {
    let settings = "timeout: 1s, eject: {failures: 0}, dedicated: {total: 3, wait: 300ms}";
    one(settings, &LINES, |proxy| {
        let mut holders: Vec<Client> = (0..3).map(|_| Client::new(proxy.address)).collect();
        for holder in &mut holders {
            assert_eq!(ask(holder, "HOLD k"), "+");
        }
        let mut late = Client::each(proxy.address);
        let answer = ask(&mut late, "GET k");
        assert!(answer.contains("(dedicated.total) are in use"), "{answer}");
        // It waits no more: other workers need give nothing back.
        assert!(!proxy.members[0].health.quota().is_wanted(QuotaWish::Nothing));
        assert_eq!(ask(&mut holders[1], "FREE k"), "+");
        assert!(ask(&mut late, "GET k").starts_with("= "));
        // Another worker wants one, and this one has an idle one: it is given back.
        let quota = proxy.members[0].health.quota();
        assert!(!quota.take(3));
        quota.wish(QuotaWish::Nothing, QuotaWish::More);
        becomes("the idle lane is given back", || quota.take(3));
        quota.wish(QuotaWish::More, QuotaWish::Nothing);
        let answer = ask(&mut late, "GET k");
        assert!(answer.contains("(dedicated.total) are in use"), "{answer}");
        // What another worker gives back serves a client that waits here.
        late.say("GET k\n").unwrap();
        proxy.has_read();
        quota.give_back();
        assert!(hear(&mut late).unwrap().starts_with("= "));
    });
}

#[test]
fn lanes_are_opened_ahead_where_several_clients_had_to_wait_for_one() {
    one(PATIENT, &FITTING, |proxy| {
        let mut clients: Vec<Client> = (0..4).map(|_| Client::new(proxy.address)).collect();
        for client in &mut clients {
            client.say("HOLD k\n").unwrap();
        }
        for client in &mut clients {
            assert_eq!(hear(client).unwrap(), "+");
        }
        let is_ahead = (0..1000).any(|_| {
            thread::sleep(Duration::from_millis(5));
            proxy.metrics().open_lanes > 4
        });
        assert!(is_ahead, "{} lanes", proxy.metrics().open_lanes);
    });
}
