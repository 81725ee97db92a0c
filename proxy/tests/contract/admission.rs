//! Logins of clients that wait: for a server's word, and for the client itself.

use std::{
    thread,
    time::{Duration, Instant},
};

use crate::{
    client::Client,
    conversation::{each, over},
    lines::{LINES, answer},
    proxy::{PATIENT, Proxy, Served, back_ends},
    server,
};

/// A client that has been greeted.
fn greeted(proxy: &Proxy) -> Client {
    let mut client = Client::silent(proxy.address);
    assert_eq!(client.hear().unwrap(), "HELLO pepper");
    client
}

#[test]
fn a_login_waits_for_what_a_server_says_of_it() {
    for route in ["p", "{failover: p}", "{log: p}"] {
        each(route, &LINES, |proxy| {
            let mut ann = greeted(proxy);
            // What it asks is served behind its login, whenever it was sent.
            ann.say("ASK ann\nWHOAMI k\nGET nothing\n").unwrap();
            let welcome = ann.hear().unwrap();
            assert!(
                welcome.starts_with("WELCOME ann, connection "),
                "{route}: {welcome}"
            );
            assert!(ann.hear().unwrap().starts_with("= ann, connection "), "{route}");
            assert_eq!(ann.hear().unwrap(), "= nothing", "{route}");
            let mut mallory = greeted(proxy);
            mallory.say("ASK mallory\nPUT k v\n").unwrap();
            assert_eq!(mallory.hear().unwrap(), "? the server denies it", "{route}");
            assert!(mallory.is_closed());
            assert_eq!(ann.ask("GET k").unwrap(), "= nothing", "{route}");
            let failures = proxy
                .metrics()
                .members
                .iter()
                .map(|member| member.failures)
                .sum::<u64>();
            assert_eq!(failures, 0, "no server is to blame");
        });
    }
}

#[test]
fn a_login_whose_turn_comes_later_goes_on_by_itself() {
    each("p", &LINES, |proxy| {
        let mut queue: Vec<Client> = (0..5).map(|_| greeted(proxy)).collect();
        for client in &mut queue {
            client.say("QUEUE\n").unwrap();
        }
        let mut gone = greeted(proxy);
        gone.say("QUEUE\n").unwrap();
        gone.reset();
        for client in &mut queue {
            // What is sent meanwhile waits behind the login.
            client.say("GET nothing\n").unwrap();
            assert_eq!(client.hear().unwrap(), "WELCOME");
            assert_eq!(client.hear().unwrap(), "= nothing");
        }
    });
}

#[test]
fn a_login_that_no_server_decides_is_refused() {
    let settings = "timeout: 200ms, eject: {failures: 0}";
    over("p", &[|| server::start("mute")], settings, &LINES, |proxy| {
        let mut client = greeted(proxy);
        client.say("ASK ann\nGET k\n").unwrap();
        let refused = client.hear().unwrap();
        assert!(
            refused.starts_with("? nobody knows: ") && refused.ends_with("timeout"),
            "{refused}"
        );
        assert!(client.is_closed());
        // One that leaves meanwhile leaves nothing behind.
        let mut client = greeted(proxy);
        client.say("ASK ann\n").unwrap();
        proxy.has_read();
        client.reset();
        let ends = (0..500).any(|_| {
            thread::sleep(Duration::from_millis(5));
            let metrics = proxy.metrics();
            (metrics.open_clients, metrics.in_flight) == (0, 0)
        });
        assert!(ends, "something is left");
    });
}

#[test]
fn a_login_begins_anew_behind_what_was_asked_before() {
    each("p", &LINES, |proxy| {
        let mut salts = Vec::new();
        for _ in 0..3 {
            let mut client = Client::new(proxy.address);
            client.say("PUT k v\nMANY k 100\nRELOG k\nGET k\n").unwrap();
            assert_eq!(client.hear().unwrap(), "+");
            assert_eq!(client.hear_many().unwrap().len(), 101);
            assert_eq!(client.hear().unwrap(), "+");
            let greeting = client.hear().unwrap();
            salts.push(greeting.strip_prefix("HELLO ").unwrap().to_owned());
            // What came right behind was no login.
            assert_eq!(client.hear().unwrap(), "DENIED");
            assert!(client.is_closed());
            let mut client = Client::new(proxy.address);
            client.say("RELOG k\n").unwrap();
            assert_eq!(client.hear().unwrap(), "+");
            let greeting = client.hear().unwrap();
            let salt = greeting.strip_prefix("HELLO ").unwrap();
            client
                .say(&format!("LOGIN app {}\nGET k\n", answer(salt, "open sesame")))
                .unwrap();
            assert_eq!(client.hear().unwrap(), "WELCOME");
            assert!(client.hear().unwrap().starts_with("= v of "));
            salts.push(salt.to_owned());
        }
        salts.sort();
        salts.dedup();
        assert_eq!(salts.len(), 6, "nobody gets another's salt: {salts:?}");
    });
}

#[test]
fn a_client_that_does_not_log_in_is_closed_after_its_time() {
    for io in back_ends() {
        let served = Served {
            protocol: "lines",
            pool: "p",
            servers: vec![server::start("one").to_string()],
            route: "p",
            settings: PATIENT,
            listener: "",
        };
        let proxy = Proxy::limited(io, LINES, &[served], "{request_timeout: 1s}").unwrap();
        let mut idle = Client::new(proxy.address);
        let (begun, mut silent, mut slow) = (Instant::now(), greeted(&proxy), greeted(&proxy));
        while begun.elapsed() < Duration::from_millis(2500) && slow.say("L").is_ok() {
            thread::sleep(Duration::from_millis(100));
        }
        assert!(silent.is_closed() && slow.is_closed());
        assert_eq!(proxy.metrics().clients.unfinished, 2);
        // One that has logged in may be silent.
        assert_eq!(idle.ask("GET k").unwrap(), "= nothing");
    }
}
